"""Query: does the property hold everywhere in the ball of one ε around one instance?"""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import epsilon as check_epsilon
from radii.problem.ball import Ball, Domain
from radii.problem.instance import Instance
from radii.problem.norm import LINF, Norm
from radii.problem.properties import Classification
from radii.problem.property import Property


@dataclass(frozen=True, slots=True)
class Query:
    """One question for a decider; the classifier it is asked of supplies the domain."""

    instance: Instance
    epsilon: float
    property: Property = Classification()
    norm: Norm = LINF

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "norm", Norm.of(self.norm))

    def ball(self, domain: Domain) -> Ball:
        """The perturbations the query speaks of."""
        return Ball(self.instance.x, self.epsilon, self.norm, domain)
