"""What a piecewise-linear network does on a whole polygon of inputs, by cutting it where an activation bends.

On a cell where every activation keeps to one piece, outputs are affine, so their extremes are at its corners. With one
or two inputs a polygon is the whole region, and the least margin found is that of the region (up to float64); with more
inputs it is that of a plane through it, which finds what points drawn at random do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fuzzing.build import Array, Network, Step

CELLS = 600  # corners of this many cells are looked at, per polygon
CUTS = 20 * CELLS  # rounding can leave a bend inside a sliver however often it is cut: then the polygon is given up
NEAR = 1e-13  # of the largest value: nearer to a bend than this is on it


def corners(network: Network, polygon: Array, after: tuple[Step, ...] = ()) -> Iterator[tuple[Array, Array]]:
    """For each cell the inputs at its corners and the last value there; `after` are steps behind the network's last.

    `polygon` has its corners in order, (corners, inputs); two corners are a segment.
    """
    steps = (*network.steps, *after)
    uses = {name: i for i, step in enumerate(steps) for name in step.inputs}
    start = {"x": polygon.reshape(len(polygon), *network.shape)}
    stack, cells, cuts = [(0, start, polygon)], 0, 0
    while stack and cells < CELLS and cuts < CUTS:
        cuts += 1
        at, values, points = stack.pop()
        while at < len(steps):
            step = steps[at]
            parts = _parts(step, values)
            if parts is not None:
                for part in parts:
                    cut = {k: np.tensordot(part, v, (1, 0)) for k, v in values.items() if uses.get(k, -1) >= at}
                    stack.append((at, cut, part @ points))
                break
            values = {**values, step.name: step.apply(*(values[name] for name in step.inputs))}
            at += 1
        else:
            cells += 1
            yield points, values[steps[-1].name].reshape(len(points), -1)


def _parts(step: Step, values: dict[str, Array]) -> list[Array] | None:
    """The two sides of the first bend inside a cell, as mixtures of its corners; None when there is no such bend."""
    if step.bends is None:
        return None
    value = values[step.inputs[0]]
    heights = step.bends(value)
    # Heights of a pooling are differences of values, and carry the rounding of those.
    size = np.maximum(np.abs(heights).max(0), np.abs(value).max())
    inside = (heights.min(0) < -NEAR * size) & (heights.max(0) > NEAR * size) & np.isfinite(size)
    if not inside.any():
        return None
    height = heights[:, int(np.argmax(inside))]
    return [mix for mix in (side(height), side(-height)) if len(mix) > 1]


def side(height: Array) -> Array:
    """The corners of the part of a polygon where a height at its corners is at least 0: (new, old) mixtures."""
    count, rows = len(height), []
    eye = np.eye(count)
    for i in range(count):
        j = (i + 1) % count
        if height[i] >= 0:
            rows.append(eye[i])
        if (height[i] > 0 > height[j] or height[i] < 0 < height[j]) and not (count == 2 and i == 1):
            share = height[i] / (height[i] - height[j])
            rows.append((1 - share) * eye[i] + share * eye[j])
    return np.array(rows).reshape(-1, count)
