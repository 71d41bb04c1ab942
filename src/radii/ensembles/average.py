"""Means of softmax probabilities of more than two classes, and radii of them that are proven.

A mean of probabilities is a network, but its softmax has no operator that the engine bounds. So the engine is asked
about linear conditions on the members' logits that every violation in a ball meets (`ensembles.softmax_cells`). That is
not complete: cells are cut until the budget ends, and what is open then stays an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.attacks.batches import known_surface
from radii.attacks.effort import Effort
from radii.attacks.geometry import Room
from radii.attacks.min_norm import Hunt, noise_of
from radii.attacks.rows import Rows
from radii.attacks.surrogate import Surface
from radii.bounds.bound import bound
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.decide import Budget, Clock, Decider, Measurer, witness_at
from radii.engine.output_rows import lowered_outputs
from radii.ensembles.combined import Combined, CombinedSearch
from radii.ensembles.softmax_cells import Cell
from radii.models.classifier import Classifier, Floats
from radii.problem import (
    Answer,
    Clause,
    Instance,
    Norm,
    OutputSpec,
    Proof,
    Property,
    Query,
    Radius,
    Reason,
    Tolerance,
    Witness,
)
from radii.problem.property import target_of
from radii.problem.tolerance import closing_gap

ROWS = 6  # of the attack: the likeliest classes, and any of them
BALLS = 8  # sizes that are tried between what is proven and what is witnessed
CUTS = 64  # of cells, in one ball
FIRST = 0.4  # of the budget for the first search, and of what is left for each ball


@dataclass(frozen=True, eq=False, repr=False)
class Average(Combined):
    """The weighted mean of the members' softmax probabilities."""

    kind = "mean of probabilities"
    most = 16

    def reference(self, x: Any) -> Floats:
        """The mean of the original models' probabilities, in float64."""
        batch, _ = self._accept(x)
        each = [one.reference(batch.reshape(len(batch), *one.input_shape)) for one in self.members]
        ready = [one.operators[-1:] == ("Softmax",) for one in self.members]
        return self._mean([np.asarray(v, np.float64) if done else _softmax(v) for v, done in zip(each, ready)])

    def _outputs(self, batch: Floats) -> Floats:
        logits = self.merged(batch).reshape(len(batch), len(self.members), -1)
        return self._mean([_softmax(logits[:, i]) for i in range(len(self.members))])

    def probabilities(self, x: Any) -> Floats:
        """The outputs: they are probabilities."""
        return self(x)

    def _mean(self, each: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("m,mbk->bk", self.shares, np.stack(each)))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights, with sum 1."""
        return np.array(self.weights) / sum(self.weights)

    def search(self, decider: Decider) -> AverageSearch:
        """A decider that asks another one about the mean."""
        return AverageSearch(decider)


@dataclass(frozen=True, slots=True, eq=False)
class Averaged(Property):
    """None of some conditions is met: those that every violation of a mean of probabilities meets in one ball."""

    kind = "averaged"
    clauses: tuple[Clause, ...] = ()

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return OutputSpec(self.clauses)


@dataclass(frozen=True)
class AverageSearch(CombinedSearch):
    """Asks another decider about means of probabilities, as conditions on the logits of all members."""

    of = Average

    def posed(self) -> Property:
        return Averaged()

    def settle(self, combined: Average, query: Query, budget: Budget) -> Answer:
        clock = Clock()
        seen = self.attack(combined, query)
        if seen is not None and seen.distance <= query.epsilon:
            return Answer.broken(seen, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        found = self._close(combined, query, budget, clock, seen)
        return replace(found, cpu_seconds=clock.cpu, wall_seconds=clock.wall)

    def prove(
        self, combined: Average, query: Query, top: float, budget: Budget, tolerance: Tolerance, seen: Witness | None
    ) -> Radius:
        """One search with uncut cells, then balls between what it proves and the witness, their cells cut."""
        clock = Clock()
        proof, best = Proof("branch and bound over cells", "real", "radii native"), seen
        ball = _Ball.around(combined, replace(query, epsilon=top), seen)
        if not ball.cells:
            return Radius(top, tolerance=tolerance, proof=proof)
        assert isinstance(self.inner, Measurer)
        asking = (combined.merged, [query.instance], ball.ask(ball.cells), query.norm, _part(budget, clock))
        lower = self.inner.measure(*asking, tolerance=tolerance, limit=top)[0].lower or 0.0
        high = top
        for _ in range(BALLS):
            size = 0.5 * (lower + high)
            if high - lower <= closing_gap(tolerance, high) or _over(budget, clock):
                break
            asked = replace(query, epsilon=size)
            answer = self._close(combined, asked, _part(budget, clock), Clock(), best)
            if answer.witness is not None:
                best, high = answer.witness, float(np.nextafter(answer.witness.distance, 0.0))
            elif answer.proof is not None:
                lower = size
            else:
                high = size
        return Radius(lower or None, tolerance=tolerance, witness=best, proof=proof if lower else None)

    def attack(self, combined: Average, query: Query) -> Witness | None:
        """From a minimum-norm attack on the mean itself."""
        points = nearest_average(combined, query, self.seed)
        found = [witness_at(combined, query, point) for point in points]
        return min((one for one in found if one is not None), key=lambda one: one.distance, default=None)

    def _close(self, combined: Average, query: Query, budget: Budget, clock: Clock, seen: Witness | None) -> Answer:
        """Whether the mean keeps the label in a ball: cells are asked together, and cut where an input meets them."""
        ball = _Ball.around(combined, query, seen)
        groups, cuts = [ball.cells] if ball.cells else [], 0
        while groups:
            group = groups.pop()
            left = None if budget.seconds is None else budget.seconds - clock.cpu
            if cuts > CUTS or (left is not None and left <= 0):
                return Answer.unknown(Reason.TIME, "cells of probabilities were left open")
            asked = replace(query, property=ball.ask(group))
            answer = self.inner.decide(combined.merged, [asked], replace(budget, seconds=left))[0]
            if answer.witness is None and answer.proof is None:
                return Answer.unknown(answer.reason or Reason.INCOMPLETE, answer.detail)
            if answer.witness is None:
                continue
            broken = self.replayed(combined, query, answer)
            if broken is not None:
                return Answer.broken(broken)
            logits = _logits(combined, answer.witness.x)
            met = [one for one in group if ball.met(one, logits)]
            if not met:
                return Answer.unknown(Reason.INCOMPLETE, "an input on the border of a cell")
            cuts += len(met)
            rest = [one for one in group if one not in met]
            halves = [half for one in met for half in one.halves(ball.shares, ball.label, logits)]
            groups += [part for part in (rest, ball.open(halves)) if part]
        return Answer.robust(Proof("branch and bound over cells", "real", "radii native"))


@dataclass(frozen=True, eq=False)
class _Ball:
    """A ball around an input: the cells that are open in it."""

    shares: tuple[float, ...]
    label: int
    largest: float  # no logit of the ball is larger in size
    cells: list[Cell]

    @staticmethod
    def around(combined: Average, query: Query, seen: Witness | None) -> _Ball:
        label, target = query.instance.label, target_of(query.property)
        spans = [_span(one, query.instance, query.norm, query.epsilon) for one in combined.members]
        low, largest = np.stack([low for low, _ in spans]), max(size for _, size in spans)
        at = _logits(combined, query.instance.x if seen is None else seen.x)
        targets = [t for t in range(combined.classes) if t != label] if target is None else [target]
        ball = _Ball(tuple(combined.shares.tolist()), label, largest, [])
        return replace(ball, cells=ball.open([Cell(t, low, at) for t in targets]))

    def open(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those of some cells that their ends do not settle."""
        return [one for one in cells if one.possible(self.shares, self.label)]

    def ask(self, cells: Sequence[Cell]) -> Averaged:
        """What is asked about cells."""
        return Averaged(tuple(one.clause(self.shares, self.label, self.largest) for one in cells))

    def met(self, cell: Cell, logits: NDArray[np.float64]) -> bool:
        """Whether logits meet a cell's clause, but for rounding."""
        clause = cell.clause(self.shares, self.label, self.largest)
        value = clause.coefficients @ logits.ravel() - clause.bounds
        return bool((value <= 1e-6 * (1.0 + np.abs(clause.coefficients).sum(1) * self.largest)).all())


def _span(member: Classifier, instance: Instance, norm: Norm, size: float) -> tuple[NDArray[np.float64], float]:
    """Proven low ends of f_s − f_c for all classes c and s in a ball, and the largest size of a logit there."""
    classes = member.classes
    unit = torch.eye(classes, dtype=torch.float64)
    rows = (unit[None] - unit[:, None]).reshape(-1, classes)  # row c·classes + s is f_s − f_c
    with proving():
        center = torch.from_numpy(instance.x.reshape(1, -1).copy())
        region = Region.around(center, torch.tensor([size], dtype=torch.float64), norm, member.domain)
        a, c = bound(lowered_outputs(member), region).best_margins(torch.cat([rows, unit, -unit])[None])
        least = region.lowest(a, c)[0].numpy()
    low = least[: classes * classes].reshape(classes, classes).copy()
    np.fill_diagonal(low, 0.0)
    return low, float(np.abs(least[classes * classes :]).max())


def _logits(combined: Average, x: Any) -> NDArray[np.float64]:
    values = combined.merged(np.asarray(x).reshape(1, *combined.input_shape))
    return np.asarray(values, np.float64).reshape(len(combined.members), -1)


def _softmax(logits: Any) -> NDArray[np.float64]:
    values = np.asarray(logits, np.float64)
    powers = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _part(budget: Budget, clock: Clock) -> Budget:
    left = None if budget.seconds is None else max(1e-3, FIRST * (budget.seconds - clock.cpu))
    return replace(budget, seconds=left)


def _over(budget: Budget, clock: Clock) -> bool:
    return budget.seconds is not None and clock.cpu >= budget.seconds


@dataclass(frozen=True, eq=False)
class MeanFooled:
    """Another class has at least the mean probability of the label; `targets` says which class, −1 for any."""

    weights: Tensor  # (members,)
    label: int
    targets: Tensor  # (rows,)

    def margin(self, surface: Surface, x: Tensor) -> Tensor:
        return self._margins(surface.outputs(x))

    def slope(self, surface: Surface, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        return surface.differentiate(x, leak, self._margins)

    def _margins(self, outputs: Tensor) -> Tensor:
        """The logarithm of the label's mean probability less that of its rival."""
        each = outputs.reshape(len(outputs), len(self.weights), -1).log_softmax(2)
        mean = torch.logsumexp(each + self.weights.log()[:, None], 1)
        others = mean.clone()
        others[:, self.label] = -torch.inf
        chosen = mean.gather(1, self.targets.clamp_min(0)[:, None])[:, 0]
        rival = torch.where(self.targets < 0, others.amax(1), chosen)
        return mean[:, self.label] - rival

    @property
    def free(self) -> Tensor:
        return torch.zeros(len(self), dtype=torch.bool, device=self.targets.device)

    def take(self, index: Tensor) -> MeanFooled:
        return MeanFooled(self.weights, self.label, self.targets[index])

    def __len__(self) -> int:
        return len(self.targets)


def nearest_average(combined: Average, query: Query, seed: int = 0) -> list[Floats]:
    """Points near an input that break the mean as the attack sees it, nearest first; flat arrays."""
    merged, effort = combined.merged, Effort.of("standard")
    surface, label, target = known_surface(merged), query.instance.label, target_of(query.property)
    center = torch.from_numpy(np.array(query.instance.x, dtype=merged.dtype).reshape(1, -1))
    likely = np.argsort(-combined.reference(query.instance.x[None])[0])
    named = [int(t) for t in likely if t != label][:ROWS] if target is None else [target] * ROWS
    targets = torch.tensor([*named, -1, -1] if target is None else named)
    aims = MeanFooled(torch.from_numpy(combined.shares.astype(merged.dtype)), label, targets)
    hunt = Hunt(merged, surface, query.norm, effort, noise_of(surface, effort, seed), np.inf)
    rows = Rows(surface, query.norm, Room(center.expand(len(aims), -1), hunt.low, hunt.high), aims)
    hunt.run(rows, 1, len(rows))
    order = rows.best.argsort()
    return [rows.point[i].numpy() for i in order if bool(rows.best[i].isfinite())]
