"""Votes: a classifier whose members each vote for their class, and radii of votes that are proven.

A vote is no network: its outputs are counts. But whether class t at least ties with the label y is a finite choice of
conditions on the members' outputs. Let T be members whose top class is t and N further members that do not have y alone
on top: t at least ties when 2·w(T) + w(N) reaches the sum of all weights. So a violation is a disjunction of clauses
over the merged network, one per smallest pair (T, N) and per class of each member in N. Where T is a single member and
any t counts, "its top class is some t" is the same as "it is fooled", and one row per member is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.decide import Budget, Decider, Measurer, witness_at
from radii.ensembles.combined import Combined, CombinedSearch
from radii.ensembles.joint import MOST_WAYS, SHRINKS, not_excluded
from radii.ensembles.joint_attack import nearest_joint
from radii.ensembles.members import MOST_CLAUSES, Merged
from radii.errors import InputError
from radii.models.classifier import Floats
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

MOST_VOTERS = 7  # all 3^7 ways to split members into T, N and others are looked through
ATTACKED = 6  # sets of members that are attacked together, those of fewest members first
SLACK = 1e-12  # of the sum of weights: sums that differ by rounding alone are equal


@dataclass(frozen=True, eq=False, repr=False)
class Vote(Combined):
    """Each member votes for its top class, for all of them where they tie; the outputs are the weights of the votes."""

    kind = "vote"
    most = MOST_VOTERS

    def reference(self, x: Any) -> Floats:
        """The votes of the original models."""
        batch, _ = self._accept(x)
        return self.votes(self.merged.reference(batch))

    def _outputs(self, batch: Floats) -> Floats:
        return self.votes(self.merged(batch))

    def votes(self, outputs: Floats) -> Floats:
        """The weights of the votes for every class, from the outputs of all members (batch, members·classes)."""
        each = outputs.reshape(len(outputs), len(self.members), -1)
        tops = each == each.max(-1, keepdims=True)
        found: Floats = np.einsum("m,bmk->bk", np.array(self.weights), tops).astype(np.float32)
        return found

    def search(self, decider: Decider) -> VoteSearch:
        """A decider that asks another one about the vote."""
        return VoteSearch(decider)


@dataclass(frozen=True, slots=True)
class Voted(Property):
    """The label keeps more votes than any other class (or than `target`); asked of the merged network of a vote.

    `among` lists for each member the classes that count; None counts all.
    """

    kind = "voted"
    weights: tuple[float, ...]
    target: int | None = None
    among: tuple[tuple[int, ...], ...] | None = None

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        found = []
        for clause in self.ways(classes, label):
            found.append(clause)
            if len(found) > MOST_CLAUSES:
                raise InputError(f"vote: expected at most {MOST_CLAUSES} ways to lose it, got more")
        if not found:
            raise InputError("vote: expected some way to lose it, got none")
        return OutputSpec(tuple(found))

    def count(self, classes: int, label: int, most: int) -> int:
        """How many ways there are to lose the vote; counted no further than `most`."""
        total = 0
        for _ in self.ways(classes, label):
            total += 1
            if total > most:
                break
        return total

    def ways(self, classes: int, label: int) -> Iterator[Clause]:
        """Every way to lose the vote."""
        each = classes // len(self.weights)
        others = tuple(c for c in range(each) if c != label)
        among = [others] * len(self.weights) if self.among is None else [tuple(one) for one in self.among]
        targets = others if self.target is None else (self.target,)
        for tops, fooled in pairs(self.weights, merging=self.target is None):
            for t in targets if tops else (-1,):
                if all(t in among[c] for c in tops):
                    yield from _clauses(tops, fooled, t, among, each, label)


def _clauses(
    tops: Sequence[int], fooled: Sequence[int], t: int, among: Sequence[Sequence[int]], each: int, label: int
) -> Iterator[Clause]:
    size = each * len(among)
    fixed = [_row(size, c * each + k, c * each + t) for c in tops for k in range(each) if k != t]
    for way in product(*(among[c] for c in fooled)):
        rows = [*fixed, *(_row(size, c * each + label, c * each + k) for c, k in zip(fooled, way))]
        yield Clause(np.array(rows), np.zeros(len(rows)))


def _row(size: int, low: int, high: int) -> NDArray[np.float64]:
    """The condition that output `low` is at most output `high`."""
    row = np.zeros(size)
    row[low], row[high] = 1.0, -1.0
    return row


def pairs(weights: Sequence[float], merging: bool = True) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The smallest pairs (T, N) that lose the vote; `merging` puts a T of one member into N."""
    total, found = sum(weights), set[tuple[tuple[int, ...], tuple[int, ...]]]()
    for state in product((0, 1, 2), repeat=len(weights)):
        if sum(s * w for s, w in zip(state, weights)) < total * (1 - SLACK):
            continue
        tops, fooled = (tuple(c for c, s in enumerate(state) if s == kind) for kind in (2, 1))
        if merging and len(tops) == 1:
            tops, fooled = (), tuple(sorted(tops + fooled))
        found.add((tops, fooled))

    def covers(one: tuple[tuple[int, ...], tuple[int, ...]], other: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
        return one != other and set(one[0]) <= set(other[0]) and set(one[1]) <= set(other[0]) | set(other[1])

    return sorted(pair for pair in found if not any(covers(one, pair) for one in found))


@dataclass(frozen=True)
class VoteSearch(CombinedSearch):
    """Asks another decider about votes, as clauses over the merged network."""

    of = Vote

    def posed(self) -> Property:
        return Voted((1.0, 1.0))

    def settle(self, combined: Vote, query: Query, budget: Budget) -> Answer:
        asked = Voted(combined.weights, target_of(query.property))
        size, asked = _pruned(combined, asked, query.instance, query.norm, query.epsilon)
        if asked.count(combined.merged.classes, query.instance.label, 1) == 0 and size >= query.epsilon:
            return Answer.robust(Proof("linear bounds", "real", "radii native"))
        if size < query.epsilon:
            return Answer.unknown(Reason.INCOMPLETE, "too many ways to lose the vote in this ball")
        answer = self.inner.decide(combined.merged, [replace(query, property=asked)], budget)[0]
        if answer.witness is None:
            return answer
        seen = self.replayed(combined, query, answer)
        cost = {"cpu_seconds": answer.cpu_seconds, "wall_seconds": answer.wall_seconds}
        if seen is not None:
            return Answer.broken(seen, **cost)
        return Answer.unknown(Reason.INCOMPLETE, "the witness does not replay on the vote", **cost)

    def prove(
        self, combined: Vote, query: Query, top: float, budget: Budget, tolerance: Tolerance, seen: Witness | None
    ) -> Radius:
        classes, label = combined.merged.classes, query.instance.label
        asked = Voted(combined.weights, target_of(query.property))
        size, asked = _pruned(combined, asked, query.instance, query.norm, top)
        if asked.count(classes, label, 1) == 0:
            return Radius(size, tolerance=tolerance, proof=Proof("linear bounds", "real", "radii native"))
        if asked.count(classes, label, MOST_WAYS) > MOST_WAYS or size <= 0:
            return Radius(tolerance=tolerance)
        assert isinstance(self.inner, Measurer)
        asking = (combined.merged, [query.instance], asked, query.norm, budget)
        return self.inner.measure(*asking, tolerance=tolerance, limit=size)[0]

    def attack(self, combined: Vote, query: Query) -> Witness | None:
        """From joint attacks on sets that can lose the vote."""
        if target_of(query.property) is not None:
            return None  # the inner search attacks towards the target itself
        found = []
        for tops, fooled in sorted(pairs(combined.weights), key=lambda pair: len(pair[0]) + len(pair[1]))[:ATTACKED]:
            members = Merged.of([combined.members[c] for c in (*tops, *fooled)])
            points = nearest_joint(members, query.instance.x, query.instance.label, query.norm, seed=self.seed)
            found += [witness_at(combined, query, point) for point in points]
        return min((one for one in found if one is not None), key=lambda one: one.distance, default=None)


def _pruned(vote: Vote, asked: Voted, instance: Instance, norm: Norm, top: float) -> tuple[float, Voted]:
    """A ball, and the vote with only the classes that linear bounds of each member do not exclude in it."""
    size = top
    for _ in range(SHRINKS):
        among = tuple(not_excluded(one, instance, norm, size) for one in vote.members)
        asked = replace(asked, among=among)
        if size <= 0 or asked.count(vote.merged.classes, instance.label, MOST_WAYS) <= MOST_WAYS:
            break
        size *= 0.8
    return size, asked
