"""Cascade: deciders one after the other, each asked only what the ones before could not answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii.decide import Budget, Decider
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Query, Verdict


@dataclass(frozen=True)
class Cascade:
    """The first answer of many deciders; cheap ones belong first. Each gets the whole budget."""

    members: tuple[Decider, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("cascade: expected at least one decider, got none")

    @property
    def identity(self) -> str:
        return "Cascade(" + ", ".join(member.identity for member in self.members) + ")"

    @property
    def proves(self) -> bool:
        return any(member.proves for member in self.members)

    @property
    def refutes(self) -> bool:
        return any(member.refutes for member in self.members)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer a query, in order: the first that is not UNKNOWN, else the last one."""
        answers = self.members[0].decide(classifier, queries, budget)
        for member in self.members[1:]:
            left = [i for i, answer in enumerate(answers) if answer.verdict is Verdict.UNKNOWN]
            if not left:
                break
            for i, answer in zip(left, member.decide(classifier, [queries[i] for i in left], budget)):
                answers[i] = answer
        return answers
