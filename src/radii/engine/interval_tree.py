"""IntervalTree: best-first branch and bound over intervals of pre-activations (or of few inputs), on certified radii.

The tree of networks with Sigmoid, Tanh or products. Like `Tree` it holds open nodes of all objectives: no violation is
closer than the least radius over them, and when none is open there is none in the ball.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from radii._torch import Tensor, torch
from radii.bounds.backward_curves import Pull
from radii.bounds.intermediate_curves import Climb, Cut, Place, Relaxed, climb, relax
from radii.bounds.interval import of_input
from radii.bounds.operands import Operands
from radii.bounds.region import Region
from radii.bounds.rounding import gamma
from radii.engine.curve_tuning import IntervalTrees
from radii.engine.input_branching import caused, unit_losses
from radii.engine.input_split import region_of
from radii.engine.interval_nodes import IntervalNodes, divide, operand_splits
from radii.engine.output_rows import OutputRows
from radii.engine.search_tree import SearchTree
from radii.engine.tuning import DEFAULT
from radii.problem import Reason


@dataclass(eq=False)
class IntervalTree(SearchTree[IntervalNodes]):
    """Branch and bound of margins on one ball; `goal` is the radius to prove."""

    margins: OutputRows
    ball: Region  # of one image
    goal: float
    operands: Operands
    shift: Tensor
    tuning: IntervalTrees = DEFAULT.intervals
    beyond: tuple[tuple[float, float], ...] = DEFAULT.trees.beyond
    visited: int = 0
    minimisers: Tensor | None = None

    @property
    def inputs(self) -> bool:
        """Whether inputs are split."""
        return self.ball.center.shape[1] <= self.tuning.few_inputs

    @property
    def incomplete(self) -> Reason | None:
        """Why the search must stop when nothing is left to split: intervals are as thin as rounding allows."""
        return Reason.INCOMPLETE

    @property
    def batch(self) -> int:
        """How many nodes are split at once."""
        width = max(node.size for node in self.margins.graph.nodes)
        return max(
            self.tuning.least_batch, min(self.tuning.batch, self.tuning.rows // max(1, self.operands.size * width))
        )

    def start(self, net: Relaxed) -> None:
        """Bounds the roots from the relaxation of the whole ball."""
        self._whole, self._bounding = (net.high - net.low)[0], net.tuning
        objectives = torch.arange(len(self.margins.rows))
        linear = net.margins(self.margins.rows[None])
        proved = net.place.lowest(linear.a, linear.c - self.shift - _slack(linear.c, self.shift))[0] > 0
        low, high = of_input(self.margins.graph, self.ball)
        box = low.flatten(), high.flatten()
        nodes = IntervalNodes.roots(net, objectives[~proved], box)
        self.visited += len(objectives)
        whole = net.rows(torch.zeros(len(nodes), dtype=torch.int64))
        self.open = self._climb(whole, nodes, self.tuning.first_steps)

    def step(self) -> bool:
        """Splits the most pressing nodes and bounds their parts; False when nothing is left to split."""
        free = self.open.place >= 0
        if not bool(free.any()):
            return False
        urgency = torch.where(free, self.open.radius, torch.full_like(self.open.radius, torch.inf))
        order = torch.argsort(urgency, stable=True)
        count = min(self.batch, int(free.sum()))
        take, rest = self.open.pick(order[:count]), self.open.pick(order[count:])
        kept = self._bound(divide(take, self.inputs))
        self.open = IntervalNodes.join([rest, kept])
        return True

    def _bound(self, nodes: IntervalNodes) -> IntervalNodes:
        """The nodes of these that stay open, with their intervals tightened."""
        self.visited += len(nodes)
        nodes.radius = torch.maximum(nodes.radius, self._distance(nodes))
        nodes = nodes.pick((nodes.radius < self.goal).nonzero()[:, 0])
        if not len(nodes):
            return nodes
        width = max(node.size for node in self.margins.graph.nodes)
        wanted = None
        if self.operands.size * width > self.tuning.work:
            wanted = torch.zeros(self.operands.size, dtype=torch.bool)
        net = relax(self.operands, self._place(nodes), nodes.low, nodes.high, wanted, tuning=self._bounding)
        alive = (~net.empty).nonzero()[:, 0]
        return self._climb(net.rows(alive), nodes.pick(alive), self.tuning.steps)

    def _place(self, nodes: IntervalNodes) -> Place:
        ball = self.ball.rows(torch.zeros(len(nodes), dtype=torch.int64))
        if self.inputs:
            return Place((region_of(nodes.box_low, nodes.box_high), ball))
        cut = Cut.of(self.ball, nodes.a, nodes.c) if self.ball.norm.name == "linf" else None
        return Place((ball,), cut)

    def _climb(self, net: Relaxed, nodes: IntervalNodes, steps: int) -> IntervalNodes:
        """Bounds the margins of nodes whose relaxation is there; returns those that stay open."""
        if not len(nodes):
            self.minimisers = None
            return nodes
        rows = self.margins.rows[nodes.objective][:, None]
        slants = replace(net.slants, under=nodes.under[:, None], over=nodes.over[:, None])
        pull = Pull(nodes.pull[:, None], nodes.set_low[:, None], nodes.set_high[:, None])
        found = climb(net, rows, steps, slants, None if self.inputs else pull, self.shift[nodes.objective][:, None])
        # Written so that NaN stays open: only a bound above 0 closes a node.
        left = (~(found.value[:, 0] > 0)).nonzero()[:, 0]
        net, nodes, found = net.rows(left), nodes.pick(left), found.rows(left)
        nodes.low, nodes.high, nodes.a, nodes.c = net.low, net.high, found.a[:, 0], found.c[:, 0]
        nodes.under, nodes.over = found.slants.under[:, 0], found.slants.over[:, 0]
        if found.pull is not None:
            nodes.pull = found.pull[:, 0]
        ball = self.ball.rows(torch.zeros(len(nodes), dtype=torch.int64))
        nodes.radius = torch.maximum(nodes.radius, ball.root(found.a, found.c)[:, 0])
        near = (nodes.radius < self.goal).nonzero()[:, 0]
        net, nodes, found = net.rows(near), nodes.pick(near), found.rows(near)
        self._choose(net, nodes, found)
        self.minimisers = self._candidates(net, nodes) if len(nodes) else None
        return nodes

    def _choose(self, net: Relaxed, nodes: IntervalNodes, found: Climb) -> None:
        """Where each node is to be split, in place."""
        if not len(nodes):
            return
        lost = unit_losses(net, {k: a[:, 0] for k, a in found.met.items()}, found.slants)
        if not self.inputs:
            nodes.place, nodes.point = operand_splits(net, lost, self._whole, self.tuning)
            return
        width = nodes.box_high - nodes.box_low
        score = caused(net, lost, width)
        flat = self.tuning.flat * score.amax(1, keepdim=True) * width / width.amax(1, keepdim=True)
        axis = (score + flat + 1e-300 * width).argmax(1)
        rows = torch.arange(len(nodes))
        low, high = nodes.box_low[rows, axis], nodes.box_high[rows, axis]
        thick = width[rows, axis] > self.tuning.thin * torch.maximum(low.abs(), high.abs())
        nodes.place, nodes.point = torch.where(thick, axis, torch.full_like(axis, -1)), 0.5 * low + 0.5 * high

    def _candidates(self, net: Relaxed, nodes: IntervalNodes) -> Tensor:
        """Where the bounds are least: in the node, and in the ball just beyond the certified radius."""
        a = nodes.a[:, None]
        center = self.ball.center
        ball = self.ball.rows(torch.zeros(len(nodes), dtype=torch.int64))
        points = [net.place.minimiser(a)[:, 0] - center]
        for factor, step in self.beyond:
            near = torch.minimum(nodes.radius * factor + step, ball.epsilon)
            points.append(ball.minimiser(a, near[:, None])[:, 0] - center)
        return torch.cat(points)

    def _distance(self, nodes: IntervalNodes) -> Tensor:
        """How far each node's box is from the centre, not more."""
        center = self.ball.center
        gap = torch.maximum(nodes.box_low - center, center - nodes.box_high).clamp_min(0.0)
        size: Tensor = torch.linalg.vector_norm(gap, ord=self.ball.norm.order, dim=1)
        return size * (1.0 - 2 * gamma(gap.shape[1] + 4))


def _slack(value: Tensor, shift: Tensor) -> Tensor:
    """What subtracting the shift rounds."""
    return 2.0**-51 * (value.abs() + shift.abs())
