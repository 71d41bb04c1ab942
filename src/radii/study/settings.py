"""RadiusSettings: what is asked of every input and what it may cost, from the keywords of the public functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from radii._check import SEEDS, choice, nearest, number, whole
from radii.decide import Budget, Decider, Reacher
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import LINF, Classification, Norm, Property, Tolerance
from radii.problem.property import known_property, measured
from radii.problem.tolerance import share_of, tolerance_of, written
from radii.search import Grid, GridSearch, Iterative, KBinary
from radii.search.direct import refuse_asker
from radii.store import Setting


class Options(TypedDict, total=False):
    """Keywords of `radii.radius` and `radii.distribution`; every one has a default.

    `seconds`, `memory` and `nodes` are per input (per query with `grid`), seconds of CPU time. `tolerance` is the gap
    that counts as closed: a number, or "5%" of the upper end. `limit` is the largest ε of interest. `grid` asks the
    verifier about these ε by k-binary search instead of letting it measure. `evidence` keeps what `radii check`
    re-verifies lower ends with.
    """

    target: int | None
    property: Property | str | Mapping[str, Any]
    norm: Norm | str
    seconds: float | None
    memory: int | str | None
    nodes: int | None
    tolerance: float | str | None
    limit: float | str | None
    grid: Any
    verifier: Decider | str
    seed: int
    evidence: bool


# The gap that counts as closed: of radii in units of ε, of reaches as a share of what is proven.
TOLERANCE = {"radius": 0.002, "reach": 0.02}

# Searches over a grid; batches gain nothing from speculation, so one query per input at a time unless k says more.
_SEARCHES: dict[str, type[KBinary] | type[Iterative]] = {"kbinary": KBinary, "iterative": Iterative}


@dataclass(frozen=True, kw_only=True)
class RadiusSettings:
    """What is asked of every input, how its radius is searched, and within which budget."""

    property: Property = Classification()
    norm: Norm = LINF
    budget: Budget = Budget()
    tolerance: Tolerance = 0.0  # 0 takes the default of what is measured
    limit: float | None = None
    grid: Grid | None = None
    k: int = 1
    method: str = "kbinary"
    verifier: Decider | str = "native"
    seed: int = 0
    evidence: bool = False
    reach: float | None = None  # the ε whose reach is asked for; None asks for radii

    @staticmethod
    def of(options: Options | Mapping[str, Any], reach: float | str | None = None) -> RadiusSettings:
        """The settled form of the keywords; an unknown one is refused with the nearest that exists.

        With `reach`, reaches in balls of that ε are asked for instead of radii: the property may leave its threshold
        out, and `tolerance` is a share of what is proven.
        """
        given = dict(cast(Mapping[str, Any], options))
        known = Options.__annotations__
        for key in given:
            if key not in known:
                raise InputError(f"{key}: expected one of {', '.join(known)}{nearest(key, known)}")
        spent = {key: given.pop(key) for key in ("seconds", "memory", "nodes") if key in given}
        given = {key: value for key, value in given.items() if key != "tolerance" or value is not None}
        if "tolerance" in given:
            given["tolerance"] = tolerance_of(given["tolerance"])
        target = given.pop("target", None)
        if target is not None:
            if known_property(given.get("property", Classification())) != Classification():
                raise InputError(f"target: expected no target beside property={given['property']!r}")
            given["property"] = Classification(target)
        return RadiusSettings(**given, budget=Budget(**spent), reach=cast(Any, reach))

    def __post_init__(self) -> None:
        reach = None if self.reach is None else number(self.reach, "reach", low=0.0, strict=True)
        settled = {
            "reach": reach,
            "property": known_property(self.property) if reach is None else measured(self.property),
            "norm": Norm.of(self.norm),
            "tolerance": TOLERANCE["radius" if reach is None else "reach"]
            if self.tolerance == 0
            else (tolerance_of if reach is None else share_of)(self.tolerance),
            "limit": None if self.limit is None else number(self.limit, "limit", low=0.0, strict=True),
            "grid": None if self.grid is None else Grid.of(self.grid),
            "k": whole(self.k, "k", low=1),
            "method": choice(self.method, "search method over a grid", _SEARCHES),
            "seed": whole(self.seed, "seed", high=SEEDS),
        }
        for key, value in settled.items():
            object.__setattr__(self, key, value)
        if self.evidence and self.grid is not None:
            raise InputError("evidence: expected search direct, which can record it, got a search over a grid")
        if reach is not None:
            for name in ("grid", "limit", "evidence"):
                if getattr(self, name):
                    raise InputError(f"{name}: expected none for a reach, which is measured at one ε; remove it")

    def setting(self, decider: Decider) -> Setting:
        """The part of a stored unit's key that says what was asked and how."""
        parameters: dict[str, Any] = {"tolerance": written(self.tolerance), "limit": self.limit}
        if self.grid is not None:
            parameters = {"grid": list(self.grid.epsilons), "k": self.k}
        elif self.reach is not None:
            parameters = {"tolerance": share_of(self.tolerance)}
        return Setting.of(
            self.property,
            self.norm,
            search="direct" if self.grid is None else self.method,
            search_parameters=parameters,
            verifier=self.verifier if isinstance(self.verifier, str) else re.split(r"[^\w-]", decider.identity)[0],
            identity=decider.identity,
            seed=self.seed,
            epsilon=self.reach,
        )

    def machine(self) -> GridSearch:
        """A fresh search over the grid."""
        if self.grid is None:
            raise InputError("grid: expected values of ε to ask about, got none")
        return _SEARCHES[self.method](self.grid, k=self.k)

    def decider(self) -> Decider:
        """The verifier that was asked for; one that is made by name gets the seed."""
        from radii.verifiers.catalogue import located, make

        made = located(make(self.verifier), Path.cwd())
        made = seeded(made, self.seed) if made is not self.verifier else made
        return recording(made) if self.evidence else made

    def check(self, classifier: Classifier, decider: Decider) -> None:
        """Refuses what the decider says it cannot answer, in one line that names verifiers that could."""
        from radii.verifiers.support import refuse_unsupported

        if self.reach is not None:
            self.reacher(decider)
            self.property.quantity(classifier.classes, 0, np.zeros(classifier.classes))
        elif self.grid is None:
            refuse_asker(decider)
        refuse_unsupported(decider, classifier, self.property, self.norm, direct=self.grid is None)

    @staticmethod
    def reacher(decider: Decider) -> Reacher:
        """The decider itself if it measures reaches; another is refused."""
        if isinstance(decider, Reacher):
            return decider
        raise InputError(f"verifier: expected one that measures reaches (native), got {decider.identity}")

    def costs(self) -> dict[str, Any]:
        """The budget as plain values."""
        return asdict(self.budget)


def recording(decider: Decider) -> Decider:
    """The decider with evidence switched on; one that cannot record any is refused."""
    if "evidence" not in getattr(decider, "__dataclass_fields__", {}):
        raise InputError(f"evidence: expected a verifier that records it (native), got {decider.identity}")
    return cast(Decider, replace(cast(Any, decider), evidence=True))


def seeded(decider: Decider, seed: int) -> Decider:
    """The decider with this seed, if it has one."""
    if "seed" not in getattr(decider, "__dataclass_fields__", {}):
        return decider
    return cast(Decider, replace(cast(Any, decider), seed=seed))
