"""Votes: a classifier whose members each vote for their class, and radii of votes that are proven.

A vote is no network: its outputs are counts. But whether class t at least ties with the label y is a finite choice of
conditions on the members' outputs. Let T be members whose top class is t and N further members that do not have y alone
on top: t at least ties when 2·w(T) + w(N) reaches the sum of all weights. So a violation is a disjunction of clauses
over the merged network, one per smallest pair (T, N) and per class of each member in N. Where T is a single member and
any t counts, "its top class is some t" is the same as "it is fooled", and one row per member is enough.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from radii._check import whole
from radii.decide import Budget, Clock, Decider, Measurer, witness_at
from radii.engine.prepare import working
from radii.ensembles.joint import MOST_WAYS, SHRINKS, not_excluded, room
from radii.ensembles.joint_attack import nearest_joint
from radii.ensembles.members import MOST_CLAUSES, Merged
from radii.errors import InputError, UnsupportedOperator
from radii.models.classifier import Classifier, Floats
from radii.models.graph import Graph
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
from radii.problem.radius import Cost

MOST_VOTERS = 7  # all 3^7 ways to split members into T, N and others are looked through
ATTACKED = 6  # sets of members that are attacked together, those of fewest members first
SLACK = 1e-12  # of the sum of weights: sums that differ by rounding alone are equal


@dataclass(frozen=True, eq=False, repr=False)
class Vote(Classifier):
    """Each member votes for its top class, for all of them where they tie; the outputs are the weights of the votes."""

    members: tuple[Classifier, ...] = ()
    weights: tuple[float, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Classifier], weights: Sequence[float], name: str) -> Self:
        """The vote of members with these weights."""
        if len(members) > MOST_VOTERS:
            raise InputError(f"vote: expected at most {MOST_VOTERS} members, got {len(members)}")
        pairs = sorted(zip(members, weights, strict=True), key=lambda pair: pair[0].fingerprint)
        first = pairs[0][0]
        return cls(
            onnx_bytes=b"",
            input_shape=first.input_shape,
            classes=first.classes,
            name=name,
            domain=first.domain,
            members=tuple(one for one, _ in pairs),
            weights=tuple(float(weight) for _, weight in pairs),
        )

    @cached_property
    def merged(self) -> Merged:
        """The members as one network, in the same order."""
        return Merged.of(self.members)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the members' and their weights."""
        said = f"vote|{self.weights}|" + "|".join(one.fingerprint for one in self.members)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @cached_property
    def graph(self) -> Graph:
        """None: counts are no continuous function of the inputs."""
        raise UnsupportedOperator(f"{self.name}: a vote has no graph of its own", ("Vote",))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The floats that the members take."""
        return self.merged.dtype

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The members' operators: what verifiers see of a vote."""
        return self.merged.operators

    def reference(self, x: Any) -> Floats:
        """The votes of the original models."""
        batch, _ = self._accept(x)
        return self.votes(self.merged.reference(batch))

    def _outputs(self, batch: Floats) -> Floats:
        return self.votes(self.merged(batch))

    def save(self, path: Any) -> Any:
        """Refused: an ONNX file of a vote could not be read again."""
        raise InputError(f"{self.name}: expected a network to write, got a vote; save its members")

    def votes(self, outputs: Floats) -> Floats:
        """The weights of the votes for every class, from the outputs of all members (batch, members·classes)."""
        each = outputs.reshape(len(outputs), len(self.members), -1)
        tops = each == each.max(-1, keepdims=True)
        found: Floats = np.einsum("m,bmk->bk", np.array(self.weights), tops).astype(np.float32)
        return found


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
class VoteSearch:
    """Asks another decider about votes, as clauses over the merged network."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True
    inner: Decider
    seed: int = field(default=0, compare=False)

    @property
    def identity(self) -> str:
        return f"vote 1 of {self.inner.identity}"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer; empty when it can."""
        if property.speaks_of != "classes":
            return f"a vote has classes and no other outputs: it takes classification, not {property.kind}"
        ask: Callable[..., str] | None = getattr(self.inner, "supports", None)
        return "" if ask is None else ask(Voted((1.0, 1.0)), norm, operators)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query."""
        return [self._decide(_vote(classifier), query, budget) for query in queries]

    def _decide(self, vote: Vote, query: Query, budget: Budget) -> Answer:
        asked = Voted(vote.weights, target_of(query.property))
        seen = witness_at(vote, query, query.instance.x)
        if seen is not None:
            return Answer.broken(seen)
        size, asked = _pruned(vote, asked, query.instance, query.norm, query.epsilon)
        if asked.count(vote.merged.classes, query.instance.label, 1) == 0 and size >= query.epsilon:
            return Answer.robust(Proof("linear bounds", "real", "radii native"))
        if size < query.epsilon:
            return Answer.unknown(Reason.INCOMPLETE, "too many ways to lose the vote in this ball")
        posed = Query(query.instance, query.epsilon, asked, query.norm)
        answer = self.inner.decide(vote.merged, [posed], budget)[0]
        if answer.witness is None:
            return answer
        seen = witness_at(vote, query, answer.witness.x)
        cost = {"cpu_seconds": answer.cpu_seconds, "wall_seconds": answer.wall_seconds}
        if seen is not None and seen.distance <= query.epsilon:
            return Answer.broken(seen, **cost)
        return Answer.unknown(Reason.INCOMPLETE, "the witness does not replay on the vote", **cost)

    def measure(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        budget: Budget,
        *,
        tolerance: Tolerance,
        limit: float | None = None,
        progress: Callable[[int, Radius], None] | None = None,
    ) -> list[Radius]:
        """One radius per instance, in order."""
        vote, found = _vote(classifier), list[Radius]()
        for position, instance in enumerate(instances):
            found.append(self._measure(vote, instance, property, norm, budget, tolerance, limit))
            if progress is not None:
                progress(position, found[-1])
        return found

    def _measure(
        self,
        vote: Vote,
        instance: Instance,
        property: Property,
        norm: Norm,
        budget: Budget,
        tolerance: Tolerance,
        limit: float | None,
    ) -> Radius:
        clock, query = Clock(), Query(instance, 0.0, property, norm)
        if not isinstance(self.inner, Measurer):
            raise InputError(f"vote: expected a verifier that measures radii, got {self.inner.identity}")
        outputs = vote.reference(instance.x[None])[0]
        if witness_at(vote, query, instance.x) is not None:
            return Radius.wrong(_prediction(outputs, instance.label), cost=Cost(cpu_seconds=clock.cpu))
        with working(vote.merged):
            seen = self._attack(vote, query)
            top = min(room(vote, instance, norm), np.inf if limit is None else limit)
            if seen is not None and seen.distance <= top:
                top = float(np.nextafter(seen.distance, 0.0))  # the witness lies on the border: inside it none may
            if not np.isfinite(top):
                raise InputError("vote: no witness was found and the domain is unbounded; give a limit (the largest ε)")
            size, asked = _pruned(vote, Voted(vote.weights, target_of(property)), instance, norm, top)
            if asked.count(vote.merged.classes, instance.label, 1) == 0:
                radius = Radius(size, tolerance=tolerance, proof=Proof("linear bounds", "real", "radii native"))
            elif asked.count(vote.merged.classes, instance.label, MOST_WAYS) > MOST_WAYS or size <= 0:
                radius = Radius(tolerance=tolerance)
            else:
                left = None if budget.seconds is None else max(1e-3, budget.seconds - clock.cpu)
                asking = (vote.merged, [instance], asked, norm, replace(budget, seconds=left))
                radius = self.inner.measure(*asking, tolerance=tolerance, limit=size)[0]
        nearer = None if radius.witness is None else witness_at(vote, query, radius.witness.x)
        best = min((one for one in (seen, nearer) if one is not None), key=lambda one: one.distance, default=None)
        cost = replace(radius.cost, queries=1, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        return Radius.found(
            radius.lower,
            None if best is None else best.distance,
            tolerance=tolerance,
            limit=limit,
            witness=best,
            proof=radius.proof,
            prediction=_prediction(outputs, instance.label),
            cost=cost,
            note=radius.note,
        )

    def _attack(self, vote: Vote, query: Query) -> Witness | None:
        """The nearest replayed point at which the vote is lost, from joint attacks on sets that can lose it."""
        if target_of(query.property) is not None:
            return None  # the inner search attacks towards the target itself
        found = []
        for tops, fooled in sorted(pairs(vote.weights), key=lambda pair: len(pair[0]) + len(pair[1]))[:ATTACKED]:
            members = Merged.of([vote.members[c] for c in (*tops, *fooled)])
            points = nearest_joint(members, query.instance.x, query.instance.label, query.norm, seed=self.seed)
            found += [witness_at(vote, query, point) for point in points]
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


def _prediction(votes: Floats, label: int) -> int:
    return label if votes[label] == votes.max() else int(np.argmax(votes))


def _vote(classifier: Classifier) -> Vote:
    if not isinstance(classifier, Vote):
        raise InputError("vote: expected a vote (radii.combine), got a single network")
    whole(len(classifier.members), "members", low=2)
    return classifier


def suited(decider: Decider, classifier: Classifier) -> Decider:
    """The decider that answers for a classifier: one that knows votes, where it is one."""
    return VoteSearch(decider) if isinstance(classifier, Vote) and not isinstance(decider, VoteSearch) else decider
