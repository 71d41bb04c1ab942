"""The game of a fixed number of attacks, as the encodings of Gross et al. (2021) put it, and its answers.

An encoding asks for |A| deterministic attacks and their probabilities at once, at one ε (the paper's equations 4 to 8).
What it finds is replayed on the original models, and only what the replay confirms counts. What it proves holds for
attacks of so many deterministic ones: for all attacks when there are as many as members (docs/ensembles-encodings.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import choice, number, whole
from radii._check import epsilon as check_epsilon
from radii._html import table
from radii.ensembles.attack import Attack
from radii.ensembles.game import ROUNDING, snapped
from radii.ensembles.members import Merged, fools
from radii.errors import InputError
from radii.logit_query import Region
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm, Query
from radii.problem.answer import Reason

Vector = NDArray[np.float64]
METHODS = ("milp", "smt")
OBJECTIVES = ("value", "check", "sum")
NORMS = {"milp": ("l1", "linf"), "smt": ("l1", "linf", "l2")}
FARTHER = (1.0, 1 + 1e-5, 1 + 1e-4, 1 + 1e-3, 1 + 1e-2)  # a solver's points lie on borders: a step beyond them too
MOST_ATTACKS = 64


@dataclass(frozen=True)
class Form:
    """What is asked of an encoding: how many attacks, and what is maximised.

    `check` looks for an attack that gets α, as the paper's encodings do; `sum` is its MaxMILP, which adds the losses of
    all members up (and keeps α where one is given); `value` maximises the value itself.

    `bounds` of the MILP give the constants M: linear bounds (`crown`) and intervals also fix every ReLU and loss whose
    sign they prove, before the solver starts; `plain` leaves all of them to it, with one M per layer from intervals.
    """

    method: str
    attacks: int
    objective: str = "value"
    alpha: float | None = None
    solver: str = "highs"
    bounds: str = "crown"

    def __post_init__(self) -> None:
        from radii.verifiers._mip_solve import PACKAGES

        choice(self.method, "method", METHODS)
        choice(self.solver, "milp solver", PACKAGES)
        choice(self.objective, "objective", OBJECTIVES)
        choice(self.bounds, "bounds", ("crown", "interval", "plain"))
        whole(self.attacks, "attacks", low=1, high=MOST_ATTACKS)
        if self.alpha is not None:
            number(self.alpha, "alpha", low=0.0, high=1.0, strict=True)
        if self.objective == "check" and self.alpha is None:
            raise InputError("alpha: expected a value for the objective check, got none")
        if self.method == "smt" and self.objective != "check":
            raise InputError(f"method smt: expected alpha and the objective check, got {self.objective}")

    @staticmethod
    def of(method: str, attacks: int | None, alpha: float | str | None, objective: str | None, **more: Any) -> Form:
        """The form with what follows from the rest left out: `check` where there is an α, else `value`."""
        if attacks is None:
            raise InputError(f"attacks: expected the number of deterministic attacks for method {method}, got none")
        level = None if alpha is None else number(alpha, "alpha", low=0.0, high=1.0)
        if method == "smt" and level is None:
            raise InputError("alpha: expected a value for method smt, got none")
        return Form(method, attacks, objective or ("value" if level is None else "check"), level, **more)


@dataclass(frozen=True, eq=False)
class Asked:
    """An ensemble, its points and the size of the attacks: what a form is filled with."""

    members: tuple[Classifier, ...]
    instances: tuple[Instance, ...]
    norm: Norm
    epsilon: float
    form: Form

    def __post_init__(self) -> None:
        from radii.verifiers.encode import unsupported

        known = NORMS[self.form.method]
        if self.norm.name not in known:
            raise InputError(
                f"method {self.form.method}: expected the norm {' or '.join(known)}, got {self.norm.name}; "
                "use the method decomposed"
            )
        for one in self.members:
            missing = unsupported(one.graph)
            if missing:
                raise InputError(
                    f"method {self.form.method}: expected piecewise-linear classifiers, got {', '.join(missing)} in "
                    f"{one.name}; use the method decomposed"
                )

    @cached_property
    def merged(self) -> Merged:
        """All members as one network."""
        return Merged.of(self.members)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Where each member's outputs start among those of all."""
        place = {one.fingerprint: k for k, one in enumerate(self.merged.members)}
        return tuple(place[one.fingerprint] * one.classes for one in self.members)

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """The ball of each point."""
        domain = self.members[0].domain
        asked = [Query(one, self.epsilon, Classification(), self.norm) for one in self.instances]
        return tuple(Region.ball(query, domain) for query in asked)

    def replay(self, inputs: Any, chances: Vector) -> Attack:
        """The randomised attack that moves point j to inputs[i][j] with chance i, as the original models take it.

        Of each input and points a little farther out the one that fools most members is taken.
        """
        dtype = self.merged.dtype
        chances = np.clip(chances, 0.0, None)
        chances = chances / chances.sum()
        tried = np.stack(
            [
                [[region.settle(_beyond(x, region, factor), dtype) for factor in FARTHER] for x, region in pairs]
                for pairs in ([*zip(row, self.regions)] for row in inputs)
            ]
        )  # (attacks, points, factors, size)
        flat = tried.reshape(-1, tried.shape[-1])
        outputs = [one.reference(flat.reshape(-1, *one.input_shape)) for one in self.members]
        labels = np.tile(np.repeat([one.label for one in self.instances], len(FARTHER)), len(tried))
        fooled = np.stack([fools(values, labels) for values in outputs], -1).reshape(*tried.shape[:3], -1)
        centers = np.stack([np.asarray(one.x, dtype=np.float64).ravel() for one in self.instances])
        distances = np.array(
            [[[self.norm.distance(x, c) for x in tries] for tries, c in zip(row, centers)] for row in tried]
        )
        fooled &= (distances <= self.epsilon)[..., None]
        best = fooled.sum(-1).argmax(-1)[..., None]
        points = np.take_along_axis(tried, best[..., None], 2)[:, :, 0]
        return Attack(
            self.epsilon,
            points.reshape(len(tried), len(self.instances), *self.instances[0].x.shape),
            chances,
            np.take_along_axis(fooled, best[..., None], 2)[:, :, 0],
            np.take_along_axis(distances, best, 2)[:, :, 0],
        )


def _beyond(x: Any, region: Region, factor: float) -> Vector:
    """The point, or one a little farther from the middle, in float64."""
    value = np.asarray(x, dtype=np.float64).ravel()
    assert region.center is not None
    return value if factor == 1.0 else np.asarray(region.center + (value - region.center) * factor)


@dataclass(frozen=True, eq=False)
class Encoded:
    """What an encoding answered at one ε: `attack` was replayed, `high` is proven for attacks of the form's number.

    `claimed` is the value of the solver's own best attack, which the replay need not confirm; `reason` says why a
    question stayed open.
    """

    form: Form
    epsilon: float
    attack: Attack | None
    high: float = 1.0
    claimed: float | None = None
    finished: bool = False  # whether the solver came to an end: optimal, infeasible or good enough
    reason: Reason | None = None
    detail: str = ""
    cpu_seconds: float = 0.0

    @property
    def value(self) -> tuple[float, float]:
        """What attacks of the form's number get: [witnessed, not excluded]."""
        low = 0.0 if self.attack is None else snapped(self.attack.value)
        return low, max(low, self.high)

    def robust(self, alpha: float) -> bool | None:
        """Whether no attack of the form's number gets α; None while that is open."""
        low, high = self.value
        return False if low >= alpha - ROUNDING else True if high < alpha - ROUNDING else None


@dataclass(frozen=True, eq=False)
class EncodedGame:
    """An ensemble against randomised attacks of a fixed number, answered by an encoding at the sizes that were asked.

    It has the methods of `Game` that an encoding can answer; there is no mix and no radius.
    """

    members: tuple[Classifier, ...]
    instances: tuple[Instance, ...]
    norm: Norm
    form: Form
    answers: dict[float, Encoded] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(one.name or one.fingerprint[:8] for one in self.members)

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of all sizes."""
        return sum(one.cpu_seconds for one in self.answers.values())

    @property
    def enough(self) -> bool:
        """Whether so many attacks are as good as any number."""
        return self.form.attacks >= len(self.members)

    def at(self, epsilon: float | str) -> Encoded:
        """The answer at a size that was asked."""
        size = check_epsilon(epsilon)
        if size not in self.answers:
            known = ", ".join(f"{one:g}" for one in self.answers)
            raise InputError(f"epsilon: expected a size that was asked ({known}), got {size:g}")
        return self.answers[size]

    def value(self, epsilon: float | str) -> tuple[float, float]:
        """What the best attack of so many deterministic ones gets: [witnessed, not excluded]."""
        return self.at(epsilon).value

    def attack(self, epsilon: float | str) -> Attack | None:
        """The attack that was found and replayed; None where there is none."""
        return self.at(epsilon).attack

    def robust(self, epsilon: float | str, alpha: float | str) -> bool | None:
        """Whether no attack of so many deterministic ones gets α; None while that is open."""
        return self.at(epsilon).robust(number(alpha, "alpha", low=0.0, high=1.0))

    def result(self, epsilon: float | str) -> dict[str, Any]:
        """The answer at one ε as plain values."""
        one, names = self.at(epsilon), np.array(self.names)
        attacks: list[dict[str, Any]] = []
        if one.attack is not None:
            attacks = [
                {"probability": chance, "fooled": [names[row].tolist() for row in rows]}
                for chance, rows in zip(one.attack.probabilities.tolist(), one.attack.fooled)
            ]
        return {
            "epsilon": one.epsilon,
            "value": list(one.value),
            "attacks": attacks,
            "mix": None,
            "method": self.form.method,
            "objective": self.form.objective,
            "reason": None if one.reason is None else str(one.reason.value),
            "detail": one.detail,
            "cpu_seconds": one.cpu_seconds,
        }

    def _repr_html_(self) -> str:
        """What was found, for notebooks."""
        rows = [
            ("members", ", ".join(self.names)),
            ("points", len(self.instances)),
            ("norm", self.norm.name),
            ("method", f"{self.form.method}, {self.form.attacks} attacks, {self.form.objective}"),
            *((f"value at {size:g}", "[{:.6g}, {:.6g}]".format(*one.value)) for size, one in self.answers.items()),
            ("CPU seconds", self.cpu_seconds),
        ]
        return table("ensemble, encoded", rows)


def encoded(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    epsilons: Sequence[float],
    form: Form,
    seconds: float | None = 60.0,
    memory: int | None = None,
    tell: Callable[[int, float], None] | None = None,
) -> EncodedGame:
    """The answers of an encoding at some sizes, each within so many CPU seconds; tells (sizes done, the next one)."""
    from radii.ensembles import milp, smt

    if not epsilons:
        raise InputError(f"epsilon: expected the sizes of the attacks for method {form.method}, got none")
    sizes = dict.fromkeys(check_epsilon(one) for one in epsilons)
    asked = [Asked(tuple(members), tuple(instances), norm, size, form) for size in sizes]
    solve = {"milp": milp.solve, "smt": smt.solve}[form.method]
    answers = {}
    for done, one in enumerate(asked):
        if tell is not None:
            tell(done, one.epsilon)
        answers[one.epsilon] = solve(one, seconds, memory)
    return EncodedGame(tuple(members), tuple(instances), norm, form, answers)
