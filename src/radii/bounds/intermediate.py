"""Intermediate bounds: every pre-activation and every margin of a batch of images, over their balls.

Layer by layer: intervals first, then backward linear bounds for the neurons that intervals leave undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluLines
from radii.bounds.backward import Linear, Magnitudes, backward
from radii.bounds.deviations import Deviations
from radii.bounds.interval import of_input, through
from radii.bounds.region import Region
from radii.bounds.tuning import DEFAULT, Bounding
from radii.models.convolutions import Conv, ConvTranspose
from radii.models.graph import Graph
from radii.models.operators import Affine, Relu, Reshape, Scale, Select, Transpose


@dataclass(frozen=True, eq=False)
class Root:
    """A lowered graph over a region: the lines of every ReLU node, the magnitudes and deviations of every value."""

    graph: Graph
    region: Region
    lines: dict[int, ReluLines]
    magnitudes: Magnitudes
    deviations: Deviations
    tuning: Bounding = DEFAULT

    def rows(self, index: Tensor) -> Root:
        """The same for these images of the batch."""
        lines = {k: v.rows(index) for k, v in self.lines.items()}
        return replace(
            self,
            region=self.region.rows(index),
            lines=lines,
            magnitudes=self.magnitudes.rows(index),
            deviations=self.deviations.rows(index),
        )

    @property
    def undecided(self) -> int:
        """How many neurons of the images may take both signs."""
        return sum(int(v.unstable.sum()) for v in self.lines.values())

    def margins(self, rows: Tensor, slopes: dict[int, Tensor] | None = None) -> Linear:
        """Linear lower bounds of rows·logits, for rows of shape (batch, rows, classes)."""
        return backward(self.graph, len(self.graph.nodes) - 1, rows, self.lines, self.magnitudes, slopes=slopes)

    def best_margins(self, rows: Tensor, steps: int | None = None) -> tuple[Tensor, Tensor]:
        """Linear lower bounds a·x + c of rows·logits, their slopes optimised for the least values on the balls."""
        slopes = {k: v.slope_low[:, None].repeat(1, rows.shape[1], 1) for k, v in self.lines.items()}
        steps = self.tuning.steps if steps is None else steps
        start = self.margins(rows, slopes)
        a, c = start.a, start.shifted()
        best = self.region.lowest(a, c)
        for step in range(steps if slopes else 0):
            for value in slopes.values():
                value.requires_grad_(True)
            with torch.enable_grad():
                linear = self.margins(rows, slopes)
                lowest = self.region.lowest(linear.a, linear.shifted())
                gradients = torch.autograd.grad(lowest.sum(), list(slopes.values()), allow_unused=True)
            better = lowest.detach() > best
            best = torch.where(better, lowest.detach(), best)
            a = torch.where(better[..., None], linear.a.detach(), a)
            c = torch.where(better, linear.shifted().detach(), c)
            rate = self.tuning.rate * self.tuning.decay**step
            slopes = {
                k: (v if g is None else v + rate * g / (g.abs().amax(-1, keepdim=True) + 1e-12))
                .detach()
                .clamp(0.0, 1.0)
                for (k, v), g in zip(slopes.items(), gradients)
            }
        return a, c


def bound_root(
    graph: Graph,
    region: Region,
    known: dict[int, tuple[Tensor, Tensor]] | None = None,
    frozen: Collection[int] = (),
    go_on: Callable[[], bool] = lambda: True,
    tuning: Bounding = DEFAULT,
) -> Root:
    """Bounds of every ReLU's input over the region; `graph` is lowered and in float64.

    `known` holds bounds of ReLU inputs (by ReLU node) that are already proven on a region that contains this one; those
    of `frozen` nodes are taken as they are. Once `go_on` says no, what is left gets intervals only.
    """
    low0, high0 = of_input(graph, region)
    low, high = [low0], [high0]
    # All of it grows layer by layer.
    root = Root(graph, region, {}, Magnitudes([], []), Deviations(graph, region.center, low, high), tuning)
    lines, magnitudes = root.lines, root.magnitudes
    magnitudes.grow(graph, low0, high0)
    for index, node in enumerate(graph.nodes[1:], start=1):
        if isinstance(node.operator, Relu):
            before = node.inputs[0]
            ends = low[before].flatten(1), high[before].flatten(1)
            if known is not None and index in known:
                ends = torch.maximum(ends[0], known[index][0]), torch.minimum(ends[1], known[index][1])
            exact = region.norm.name == "linf" and _interval_is_exact(graph, before)
            if not exact and index not in frozen and go_on():
                ends = tighten(root, before, ends, go_on)
            shape = low[before].shape
            low[before], high[before] = ends[0].reshape(shape), ends[1].reshape(shape)
            magnitudes.narrow(before, *ends)
            lines[index] = ReluLines.of(*ends)
        a, b = through(node, [low[i] for i in node.inputs], [high[i] for i in node.inputs])
        low.append(a)
        high.append(b)
        magnitudes.grow(graph, a, b)
    return root


def _interval_is_exact(graph: Graph, node: int) -> bool:
    """Whether a node is one affine operator away from the input but for operators that move or scale single values.

    Then backward bounds over a box say nothing that intervals do not.
    """
    mixed = 0
    while node:
        operator, inputs = graph.nodes[node].operator, graph.nodes[node].inputs
        if len(inputs) != 1 or not isinstance(operator, Affine):
            return False
        mixed += not isinstance(operator, (Reshape, Transpose, Select, Scale))
        node = inputs[0]
    return mixed <= 1


def tighten(
    root: Root, node: int, ends: tuple[Tensor, Tensor], go_on: Callable[[], bool] = lambda: True
) -> tuple[Tensor, Tensor]:
    """The ends of a pre-activation after backward bounds on the coordinates that may take both signs.

    The root knows the lines of every ReLU before the node. Once `go_on` says no, the other coordinates stay. Through
    convolutions the rows go in float32, which is six times faster; measured from the centre, its rounding costs little.
    """
    graph, region, low, high = root.graph, root.region, ends[0].clone(), ends[1].clone()
    undecided = (low < 0) & (high > 0)
    width = max(graph.nodes[i].size for i in range(node + 1))
    coarse = root.deviations.coarse(node, root.lines) if _heavy(root, node, int(undecided.sum())) else None
    for images, neurons, valid in _chunks(undecided, max(1, root.tuning.coefficients // width)):
        if not go_on():
            break
        batch = torch.arange(len(images), device=low.device)[:, None]
        rows = low.new_zeros((len(images), neurons.shape[1], graph.nodes[node].size))
        rows[batch, torch.arange(neurons.shape[1], device=low.device)[None], neurons] = valid.to(rows.dtype)
        rows, part = torch.cat([rows, -rows], 1), region.rows(images)
        if coarse is not None:
            both, part = coarse.backward(rows, images), part.shifted()
        else:
            chosen = {k: v.rows(images) for k, v in root.lines.items()}
            both = backward(graph, node, rows, chosen, root.magnitudes.rows(images))
        # Coefficients that overflowed say nothing.
        least = part.lowest(both.a, both.shifted()).nan_to_num(nan=-torch.inf)
        count = neurons.shape[1]
        at = (images[:, None].expand_as(neurons)[valid], neurons[valid])
        low[at] = torch.maximum(low[at], least[:, :count][valid])
        high[at] = torch.minimum(high[at], -least[:, count:][valid])
    return low, high


def _heavy(root: Root, node: int, rows: int) -> bool:
    """Whether so many rows pass through convolutions on their way back that they had better do so in float32."""
    size = sum(n.size for n in root.graph.nodes[:node] if isinstance(n.operator, (Conv, ConvTranspose)))
    return rows * size > root.tuning.heavy


def _chunks(undecided: Tensor, limit: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Groups of images with their undecided neurons, padded to a rectangle; at most `limit` ends at once."""
    counts = undecided.sum(1)
    order = torch.argsort(counts, descending=True)
    order = order[counts[order] > 0]
    start = 0
    while start < len(order):
        most = int(counts[order[start]])
        take = max(1, limit // (2 * most))
        images = order[start : start + take]
        ranked = undecided[images].to(torch.int8).argsort(stable=True, dim=1, descending=True)[:, :most]
        valid = undecided[images].gather(1, ranked)
        step = max(1, limit // 2 // len(images))
        for first in range(0, most, step):
            yield images, ranked[:, first : first + step], valid[:, first : first + step]
        start += take
