"""Spec: any disjunction of conjunctions of linear conditions on the outputs, decided over a box of inputs.

A clause is met where the greatest of its rows coefficients·outputs − bounds is at most 0. A gradient attack looks for
such an input; then the box is split (few inputs) or the signs of neurons are (many), with weights of a clause's rows
that each search chooses for itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from radii._memory import out_of_memory
from radii._torch import Tensor, torch
from radii.bounds.bound import bound
from radii.bounds.intermediate import Root, bound_root
from radii.bounds.intermediate_curves import Relaxed
from radii.bounds.lowering import is_smooth, lower, unbounded
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.bounds.tuning import Bounding
from radii.decide import Budget, Clock
from radii.engine.budget import Meter
from radii.engine.input_split import Cover, Goals, region_of
from radii.engine.maxima import searchable
from radii.engine.output_rows import OutputRows
from radii.engine.radius_search import RadiusSearch
from radii.engine.tuning import DEFAULT, Tuning
from radii.logit_query import LogitQuery, logit_spec
from radii.models.classifier import Classifier
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Relu, Reshape
from radii.problem import Answer, OutputSpec, Proof, Reason, SpecQuery, Witness


def decide_spec(
    classifier: Classifier, query: SpecQuery, budget: Budget, seed: int = 0, tuning: Tuning = DEFAULT
) -> Answer:
    """ROBUST when no input of the box violates the specification, BROKEN with one that does, else UNKNOWN."""
    question, clock = logit_spec(classifier, query, unbounded), Clock()
    if question.obstacle:
        return Answer.unknown(Reason.UNSUPPORTED, question.obstacle)
    meter = Meter(budget, memory=tuning.memory)
    attacker = BoxAttack(question, goals(classifier, query.spec), seed, tuning)
    try:
        reason = None if attacker.run() else _prove(question, attacker, meter)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        reason = Reason.MEMORY
    cost: dict[str, Any] = {"cpu_seconds": clock.cpu, "wall_seconds": clock.wall, "nodes": meter.nodes}
    if attacker.witness is not None:
        return Answer.broken(attacker.witness, **cost)
    if reason is not None:
        return Answer.unknown(reason, _DETAIL.get(reason, ""), **cost)
    return Answer.robust(Proof("branch and bound", "real", "radii native"), **cost)


_DETAIL = {
    Reason.MEMORY: "out of memory",
    Reason.INCOMPLETE: "the outputs come so near to a violation that rounding hides the answer",
}


def goals(classifier: Classifier, spec: OutputSpec) -> Goals:
    """The network with all rows of the specification as its outputs, lowered, in float64."""
    nodes = list(classifier.once("lowered with its last activations", lambda: lower(classifier.graph)).nodes)
    rows = torch.from_numpy(np.concatenate([c.coefficients for c in spec.clauses]))
    limits = torch.from_numpy(np.concatenate([c.bounds for c in spec.clauses]))
    flat = Node(Reshape((classifier.classes,)), (len(nodes) - 1,), (classifier.classes,))
    nodes += [flat, Node(Dense(rows, -limits), (len(nodes),), (len(rows),))]
    counts = [len(c.bounds) for c in spec.clauses]
    first, members = 0, []
    for count in counts:
        members.append([first + min(i, count - 1) for i in range(max(counts))])
        first += count
    return Goals(Graph(tuple(nodes)).to(torch.float64), torch.tensor(members))


def _prove(question: LogitQuery, attacker: BoxAttack, meter: Meter) -> Reason | None:
    """None when the specification is proven or a witness was met, else why not."""
    low, high = (torch.from_numpy(np.array(e, dtype=np.float64)) for e in (question.region.low, question.region.high))
    with proving():
        if len(low) <= attacker.tuning.boxes.few_inputs:
            return _by_boxes(attacker, low, high, meter)
        return _by_signs(attacker, low, high, meter)


def _by_boxes(attacker: BoxAttack, low: Tensor, high: Tensor, meter: Meter) -> Reason | None:
    cover = Cover(attacker.goals, low, high, attacker.tuning)
    while True:
        meter.nodes += cover.visited - meter.nodes
        if cover.done or attacker.strike(cover.points):
            return None
        if cover.stuck:
            return Reason.INCOMPLETE
        if cover.open.nbytes > attacker.tuning.boxes.held:
            return Reason.MEMORY
        if meter.over is not None:
            return meter.over
        cover.step()


def _by_signs(attacker: BoxAttack, low: Tensor, high: Tensor, meter: Meter) -> Reason | None:
    whole = region_of(low[None], high[None])
    graph = attacker.goals.graph
    unit = torch.eye(graph.nodes[-1].size, dtype=torch.float64)
    linear = _first_bounds(graph, whole, meter, attacker.tuning.bounds).margins(unit[None])
    meter.nodes += len(unit)
    proved = attacker.goals.of(whole.lowest(linear.a, linear.shifted())[0].nan_to_num(nan=-torch.inf)) > 0
    if bool(proved.all()):
        return None
    margins = searchable(_clauses(graph, unit, attacker.goals.members[~proved]))
    goal = float(whole.epsilon[0])

    def attack(points: Tensor) -> float | None:
        return 0.0 if attacker.strike(points) else None

    search = RadiusSearch(margins, lambda _: whole, goal, meter, attack, limit=goal, tuning=attacker.tuning)
    search.decide(goal)
    if attacker.witness is not None or (search.proven and search.lower >= goal):
        return None
    return search.stopped or Reason.INCOMPLETE


def _clauses(graph: Graph, unit: Tensor, members: Tensor) -> OutputRows:
    """Clauses of a graph's own outputs."""
    if members.shape[1] == 1:
        rows = unit[members[:, 0]]
        return OutputRows(graph, rows, rows.new_zeros(len(rows)))
    return OutputRows(graph, unit, unit.new_zeros(len(unit)), members)


def _first_bounds(graph: Graph, whole: Region, meter: Meter, tuning: Bounding) -> Root | Relaxed:
    """Cheap bounds: intervals alone settle many clauses of wide networks, for a small part of the price of others."""
    if is_smooth(graph):
        return bound(graph, whole, go_on=lambda: not meter.over, tuning=tuning)
    frozen = [i for i, node in enumerate(graph.nodes) if isinstance(node.operator, Relu)]
    return bound_root(graph, whole, frozen=frozen, tuning=tuning)


class BoxAttack:
    """The search for a witness: gradient descent on the greatest row of each clause, inside the box."""

    def __init__(self, question: LogitQuery, goals: Goals, seed: int, tuning: Tuning = DEFAULT) -> None:
        self.question, self.goals, self.tuning = question, goals, tuning
        self.few = question.region.low.size <= tuning.boxes.few_inputs
        self.witness: Witness | None = None
        self._random = torch.Generator().manual_seed(seed)
        self._rounds = 0
        low, high = question.region.low, question.region.high
        # The model's own floats nearest to the ends inside the box; where there is none no input can be replayed.
        dtype, self._dtype = question.classifier.dtype, question.classifier.torch_dtype
        self.low = torch.from_numpy(_rounded(low, np.inf, dtype)).flatten()
        self.high = torch.from_numpy(_rounded(high, -np.inf, dtype)).flatten()
        self.possible = bool((self.low <= self.high).all())
        dense = goals.graph.nodes[-1].operator
        assert isinstance(dense, Dense)
        assert dense.bias is not None
        self._rows, self._limits = dense.weight.to(self._dtype), -dense.bias.to(self._dtype)

    def margins(self, x: Tensor) -> Tensor:
        """The greatest row of each clause at points in the model's own floats: (points, clauses)."""
        logits = self.question.classifier.logits(x)
        return self.goals.of(logits @ self._rows.T - self._limits)

    def run(self) -> bool:
        """The attack from the middle, from random points and from the best of many samples; whether it succeeded."""
        if not self.possible:
            return False
        d, clauses, rule = len(self.low), len(self.goals.members), self.tuning.spec_attack
        count = rule.samples if self.few else rule.few_samples
        noise = torch.rand((count, d), generator=self._random).to(self._dtype)
        points = torch.cat([0.5 * self.low[None] + 0.5 * self.high[None], self.low + (self.high - self.low) * noise])
        with proving():
            margins = self.margins(points)
        if self._confirm(points, margins.amin(1)):
            return True
        best = margins.argsort(0)[: rule.starts if self.few else rule.few_starts]
        aim = torch.arange(clauses).expand_as(best)
        order = margins.gather(0, best).flatten().argsort()[: rule.runs]
        return self._descend(points[best.flatten()[order]], aim.flatten()[order], rule.steps)

    def strike(self, points: Tensor) -> bool:
        """Replays the best of these points, and now and then descends from them; whether there is a witness."""
        if not self.possible or not len(points):
            return False
        x = torch.minimum(torch.maximum(points.to(self._dtype), self.low), self.high)
        with proving():
            margins = self.margins(x)
        least, aim = margins.min(1)
        if self._confirm(x, least):
            return True
        self._rounds += 1
        if not self.tuning.attacking.refines(self._rounds):
            return False
        rule = self.tuning.spec_attack
        best = least.argsort()[: rule.refined]
        return self._descend(x[best], aim[best], rule.refined_steps)

    def _descend(self, x: Tensor, aim: Tensor, steps: int) -> bool:
        """Steps against the sign of the gradient, a share of the box's width that falls along a line."""
        width, rule = self.high - self.low, self.tuning.spec_attack
        for step in range(steps):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                margin = self.margins(x)[torch.arange(len(x)), aim]
                (grad,) = torch.autograd.grad(margin.sum(), x)
            if self._confirm(x.detach(), margin.detach()):
                return True
            share = rule.step * (1.0 - step / steps) ** 2 + rule.least_step
            x = torch.minimum(torch.maximum(x.detach() - share * width * grad.sign(), self.low), self.high)
        with proving():
            return self._confirm(x, self.margins(x)[torch.arange(len(x)), aim])

    def _confirm(self, x: Tensor, margin: Tensor) -> bool:
        """Replays the deepest violations on the original model."""
        order = margin.argsort()[: self.tuning.attacking.replays]
        for i in order[margin[order] <= 0]:
            self.witness = self.question.confirm(x[i].numpy())
            if self.witness is not None:
                return True
        return False


def _rounded(limit: Any, towards: float, dtype: np.dtype[Any]) -> Any:
    near = np.asarray(limit, dtype=dtype)
    wrong = near < limit if towards > 0 else near > limit
    return np.where(wrong, np.nextafter(near, towards, dtype=dtype), near)
