"""Bottlenecks: layers that only a few live neurons pass, and what those must not be for the margins to hold.

All that comes after such a layer is a function of a few numbers y. Splitting their box leaves parts in which some
margin may fail. Directions w with w·y ≤ t on all of these turn the margins into a few objectives w·y > t of the layers
before: whoever breaks a margin in the ball breaks one of them, and the layers after it have left the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from radii._torch import Tensor, torch
from radii.bounds.intermediate import Root
from radii.bounds.rounding import U64
from radii.engine.attained import Attained
from radii.engine.input_split import Boxes, Cover, Goals
from radii.engine.tuning import DEFAULT, Tuning
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Reshape


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """A ReLU node that everything after it comes from, and which of its values can be other than 0."""

    relu: int
    live: Tensor  # flat indices

    @staticmethod
    def of(root: Root, most: int = DEFAULT.bottlenecks.live) -> Bottleneck | None:
        """The narrowest one of a root with one image, if any has few live values and layers that matter after it."""
        found: list[Bottleneck] = []
        relus = list(root.lines)
        for place, relu in enumerate(relus):
            if any(i < relu for node in root.graph.nodes[relu + 1 :] for i in node.inputs):
                continue
            later = sum(int(root.lines[k].unstable.sum()) for k in relus[place + 1 :])
            live = (~(root.lines[relu].high[0] <= 0)).nonzero()[:, 0]  # NaN is not known to be inactive
            if later and 0 < len(live) <= most:
                found.append(Bottleneck(relu, live))
        return min(found, key=lambda neck: len(neck.live), default=None)

    def after(self, graph: Graph, rows: Tensor, shift: Tensor) -> Graph:
        """The graph of rows·outputs − shift as a function of the live values."""
        spread = rows.new_zeros((graph.nodes[self.relu].size, len(self.live)))
        spread[self.live, torch.arange(len(self.live))] = 1.0
        shape = graph.nodes[self.relu].shape
        nodes = [
            Node(None, (), (len(self.live),)),
            Node(Dense(spread), (0,), (len(spread),)),
            Node(Reshape(shape), (1,), shape),
        ]
        later = graph.nodes[self.relu + 1 :]
        nodes.extend(replace(node, inputs=tuple(i - self.relu + 2 for i in node.inputs)) for node in later)
        nodes.append(Node(Reshape((graph.nodes[-1].size,)), (len(nodes) - 1,), (graph.nodes[-1].size,)))
        nodes.append(Node(Dense(rows, -shift), (len(nodes) - 1,), (len(rows),)))
        return Graph(tuple(nodes))


def forbidden(
    root: Root, neck: Bottleneck, rows: Tensor, shift: Tensor, tuning: Tuning = DEFAULT
) -> tuple[Tensor, Tensor] | None:
    """Directions w (m, live) and thresholds t (m,): where w·y > t for all of them, rows·outputs > shift.

    None when the values that break a margin cannot be told from those that points of the ball reach.
    """
    limits, lines = tuning.bottlenecks, root.lines[neck.relu]
    low, high = lines.low[0, neck.live].clamp_min(0.0), lines.high[0, neck.live]
    if not bool(((low <= high) & high.isfinite()).all()):
        return None
    graph = neck.after(root.graph, rows, shift)
    cover = _unsafe(graph, low, high, tuning)
    part = root.graph.upto(neck.relu).to(torch.float32)
    samples = tuning.hidden.samples
    reached = Attained(lambda x: part(x.reshape(-1, *part.input_shape)).flatten(1)[:, neck.live], root.region, samples)
    while len(cover.open):
        directions = _directions(graph, cover.open, reached, (high - low).clamp_min(1e-9))
        top = directions.clamp_min(0) @ cover.open.high.T + directions.clamp_max(0) @ cover.open.low.T
        # (directions, parts): along a direction, how far a part lies below the least value that points of the ball were
        # seen to take, as a share of the gap between that value and the proven bound. At 0 or below the direction
        # does not separate the part; the larger, the less has to be proven to rule it out.
        least = reached.least(directions, limits.starts, limits.pushes, limits.shrink)
        proven = directions.clamp_min(0) @ low + directions.clamp_max(0) @ high
        distance = (least[:, None] - top) / (least - proven).clamp_min(1e-12)[:, None]
        if bool((distance.amax(0) > 0).all()):
            w, t = _chosen(directions, top, distance, limits.good)
            size = w.abs() @ torch.maximum(low.abs(), high.abs())
            return w, t + 8 * len(low) * U64 * size
        near = (~(distance.amax(0) > 0) & (_sizes(cover.open, low, high) > limits.finest)).nonzero()[:, 0]
        if not len(near) or cover.visited > 2 * limits.boxes or not cover.halve(near):
            return None
    return low.new_zeros((0, len(low))), low.new_zeros(0)


def _chosen(directions: Tensor, top: Tensor, distance: Tensor, good: float) -> tuple[Tensor, Tensor]:
    """Few of the directions that keep all parts at a good distance, and their thresholds."""
    fits = distance >= good * distance.amax(0)
    left = torch.ones(top.shape[1], dtype=torch.bool)
    picks, thresholds = [], []
    while bool(left.any()):
        picks.append(int((fits & left).sum(1).argmax()))
        mine = fits[picks[-1]] & left
        thresholds.append(top[picks[-1], mine].amax())
        left &= ~mine
    return directions[torch.tensor(picks)], torch.stack(thresholds)


def _sizes(boxes: Boxes, low: Tensor, high: Tensor) -> Tensor:
    """The longest side of each part, as a share of the whole box's."""
    return ((boxes.high - boxes.low) / (high - low).clamp_min(1e-300)).amax(1)


def _unsafe(graph: Graph, low: Tensor, high: Tensor, tuning: Tuning = DEFAULT) -> Cover:
    """Parts of the box that together hold every point at which an output may be 0 or less."""
    limits = tuning.bottlenecks
    cover = Cover(Goals(graph, torch.arange(graph.nodes[-1].size)[:, None]), low, high, tuning)
    while len(cover.open) and cover.visited < limits.boxes:
        # Parts that are unsafe at their middle and at both ends are left as they are: the border is what matters.
        boxes = cover.open
        points = torch.stack([boxes.low, 0.5 * (boxes.low + boxes.high), boxes.high], 1)
        broken = (graph(points.flatten(0, 1)).amin(1) <= 0).reshape(len(boxes), 3).all(1)
        size = _sizes(boxes, low, high)
        order = torch.argsort(size, descending=True, stable=True)
        order = order[(~broken & (size > limits.finest))[order]]
        if not len(order) or not cover.halve(order):
            break
    return cover


def _directions(graph: Graph, unsafe: Boxes, reached: Attained, width: Tensor) -> Tensor:
    """Candidates: every single value up and down, each output's gradient where it fails, and away from the middle."""
    middle = 0.5 * (unsafe.low + unsafe.high)
    with torch.enable_grad():
        y = middle.clone().requires_grad_(True)
        outputs = graph(y)
        gradients = [torch.autograd.grad(outputs[:, j].sum(), y, retain_graph=True)[0] for j in range(outputs.shape[1])]
    unit = torch.eye(len(width), dtype=width.dtype)
    found = [unit, -unit, (reached.values.mean(0) - middle.mean(0))[None] / width]
    for j, gradient in enumerate(gradients):
        failing = outputs[:, j] <= 0
        if bool(failing.any()):
            found.append((gradient[failing].mean(0) * width)[None])
    scaled = torch.cat(found).detach()
    scaled = scaled[scaled.abs().amax(1) > 0]
    return scaled / scaled.abs().amax(1, keepdim=True) / width
