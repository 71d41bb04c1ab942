"""Portfolio: a cascade of deciders from cheap to dear; each gets the queries that those before it left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from radii.decide import Budget, Decider, SpecDecider, supports
from radii.errors import Contradiction, InputError, ToolMissing
from radii.logit_query import check_spec
from radii.models.classifier import Classifier
from radii.problem import Answer, Norm, Property, Query, Reason, SpecQuery, Verdict


@dataclass(frozen=True)
class Portfolio:
    """Asks its members in turn until one answers; a query's budget is what the members before have left of it."""

    members: tuple[Decider, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise InputError("portfolio: expected at least one verifier, got none")

    @property
    def identity(self) -> str:
        return f"portfolio({' > '.join(member.identity for member in self.members)})"

    @property
    def proves(self) -> bool:
        return any(member.proves for member in self.members)

    @property
    def refutes(self) -> bool:
        return any(member.refutes for member in self.members)

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why no member can answer queries of this kind; empty when one can."""
        said = [supports(member, property, norm, operators) for member in self.members]
        return "" if "" in said else "; ".join(dict.fromkeys(said))

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, with what all members together spent on it."""
        _check(classifier, queries)
        answers: dict[int, Answer] = {}
        for member in self.members:
            pending = [i for i in range(len(queries)) if i not in answers or answers[i].verdict is Verdict.UNKNOWN]
            # A decider gets one budget per batch, so only queries that have cost the same so far share a batch.
            for group in _alike(pending, answers, budget):
                left = _left(answers.get(group[0]), budget)
                if left is None:
                    continue
                found = _ask(member, classifier, [queries[i] for i in group], left)
                answers.update((i, _joined(answers.get(i), new)) for i, new in zip(group, found))
        return [answers[i] for i in range(len(queries))]

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """The first answer of a member that takes specifications."""
        check_spec(classifier, query)
        answer: Answer | None = None
        for member in self.members:
            left = _left(answer, budget)
            if isinstance(member, SpecDecider) and left is not None:
                answer = _joined(answer, _ask_spec(member, classifier, query, left))
                if answer.verdict is not Verdict.UNKNOWN:
                    break
        return answer or Answer.unknown(Reason.UNSUPPORTED, "no member of the portfolio takes specifications")


def _check(classifier: Classifier, queries: Sequence[Query]) -> None:
    """Refuses what no member could take, so that a member's own refusal can only mean that it does not support it."""
    for query in queries:
        classifier.check_inputs(query.instance.x, query.instance.label, strict=False)
        query.property.check(classifier.classes, query.instance.label)


def _ask(member: Decider, classifier: Classifier, queries: list[Query], budget: Budget) -> list[Answer]:
    try:
        return member.decide(classifier, queries, budget)
    except ToolMissing:  # asked for by name: to go on without it would answer another question
        raise
    except InputError as error:  # the next member may know the operator or the property
        return [Answer.unknown(Reason.UNSUPPORTED, str(error)) for _ in queries]


def _ask_spec(member: SpecDecider, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
    try:
        return member.decide_spec(classifier, query, budget)
    except ToolMissing:
        raise
    except InputError as error:
        return Answer.unknown(Reason.UNSUPPORTED, str(error))


def _alike(pending: list[int], answers: dict[int, Answer], budget: Budget) -> list[list[int]]:
    if budget.seconds is None or not answers:
        return [pending] if pending else []
    cheap = [i for i in pending if answers[i].cpu_seconds < 0.01 * budget.seconds]
    dear = [i for i in pending if i not in set(cheap)]
    return ([cheap] if cheap else []) + [[i] for i in dear]


def _left(answer: Answer | None, budget: Budget) -> Budget | None:
    if budget.seconds is None or answer is None:
        return budget
    seconds = budget.seconds - answer.cpu_seconds
    return replace(budget, seconds=seconds) if seconds > 0 else None


def _joined(old: Answer | None, new: Answer) -> Answer:
    """The newer answer with both costs; when neither answers, the reason that says most."""
    if old is None:
        return new
    if {old.verdict, new.verdict} == {Verdict.ROBUST, Verdict.BROKEN}:
        raise Contradiction(f"portfolio: one member says {old.verdict}, another {new.verdict}")
    weak = new.verdict is Verdict.UNKNOWN and new.reason in (Reason.UNSUPPORTED, Reason.INCOMPLETE)
    kept = old if weak and old.reason is not Reason.UNSUPPORTED else new
    return replace(
        kept,
        cpu_seconds=old.cpu_seconds + new.cpu_seconds,
        wall_seconds=old.wall_seconds + new.wall_seconds,
        nodes=old.nodes + new.nodes,
        peak_memory=max(old.peak_memory, new.peak_memory),
    )
