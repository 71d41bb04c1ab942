"""Study files of ensembles: classifiers, data, norm, sizes or levels, and the method that answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from radii._check import SEEDS, number
from radii._check import epsilon as check_epsilon
from radii._parts import Part, parsed
from radii._yaml import read_yaml
from radii.decide import Budget
from radii.ensembles.encoded import Form
from radii.ensembles.members import check_members
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm
from radii.study.file import (
    BudgetPart,
    ClassifierPart,
    DataPart,
    SearchPart,
    as_method,
    as_path,
    as_source,
)
from radii.study.patterns import Tell
from radii.study.settings import RadiusSettings
from radii.study.sources import Source, classifiers, inputs, settled


def _sizes(value: Any) -> list[float]:
    given = value if isinstance(value, (list, tuple)) else [value]
    return [check_epsilon(one) for one in given]


def _levels(value: Any) -> list[float]:
    given = value if isinstance(value, (list, tuple)) else [value]
    found = [number(one, "alpha", low=0.0, high=1.0) for one in given]
    if not all(found):
        raise InputError("alpha: expected values above 0 and at most 1, got 0")
    return found


class EnsembleFile(Part):
    """A game: an ensemble and a data set; `epsilon` lists the sizes that count, none means every one up to a limit."""

    where = "ensemble"
    name: str = Field(min_length=1)
    classifiers: list[Annotated[ClassifierPart, BeforeValidator(as_path)]] = Field(min_length=1)
    data: Annotated[DataPart, BeforeValidator(as_source)]
    norm: str = "linf"
    epsilon: Annotated[list[float], BeforeValidator(_sizes)] = Field(default_factory=list)
    alpha: Annotated[list[float], BeforeValidator(_levels)] = Field(default_factory=list)
    method: Literal["decomposed", "milp", "smt"] = "decomposed"
    attacks: int | None = None  # of milp and smt: how many deterministic attacks are mixed
    objective: Literal["value", "check", "sum"] | None = None
    solver: str | None = None
    width: float = Field(default=0.0, ge=0.0, le=1.0)
    search: Annotated[SearchPart, BeforeValidator(as_method)] = SearchPart()
    budget: BudgetPart = BudgetPart()
    seed: int = Field(default=0, ge=0, le=SEEDS)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.search.method != "direct":
            raise InputError(f"ensemble: expected search direct, got {self.search.method}")
        self._tolerance()
        if self.method != "decomposed":
            self.form()
            return self
        for key in ("attacks", "objective", "solver"):
            if getattr(self, key) is not None:
                raise InputError(f"{key}: expected it only with method milp or smt, got it with decomposed")
        return self

    def form(self) -> Form:
        """What is asked of an encoding."""
        if not self.epsilon:
            raise InputError(f"epsilon: expected the sizes of the attacks for method {self.method}, got none")
        if len(self.alpha) > 1:
            raise InputError(f"alpha: expected one value for method {self.method}, got {len(self.alpha)}")
        level = self.alpha[0] if self.alpha else None
        return Form.of(self.method, self.attacks, level, self.objective, solver=self.solver or "highs")

    def _tolerance(self) -> float:
        """How near the ends of a radius must come; games compare radii, so per cent of one mean nothing to another."""
        return number(self.search.tolerance or 0.002, "ensemble tolerance", low=0.0, strict=True)

    def settings(self) -> RadiusSettings:
        """What is asked of every set of members."""
        limit = self.search.limit
        if limit is None and self.epsilon:
            limit = max(self.epsilon) or None
        return RadiusSettings(
            norm=Norm.of(self.norm),
            budget=Budget(**self.budget.values()),
            tolerance=self._tolerance(),
            limit=limit,
            seed=self.seed,
        )


def read_ensemble(path: str | Path) -> EnsembleFile:
    """The ensemble study in a YAML file; what is wrong with it is said in one line with the file's name."""
    file = Path(path)
    body = read_yaml(file, "an ensemble study with classifiers and data")
    if "classifiers" in body and not isinstance(body["classifiers"], list):
        body = {**body, "classifiers": [body["classifiers"]]}
    return parsed(EnsembleFile, body, str(file), file.stem)


def resolved(
    said: EnsembleFile, base: Path, tell: Tell | None = None
) -> tuple[tuple[Source, ...], tuple[Classifier, ...], tuple[Instance, ...]]:
    """The members with how to load them again, and the inputs; nothing is computed yet."""
    if any(part.combine for part in said.classifiers):
        raise InputError("ensemble: expected networks from files as members, got a combination; name its members")
    seconds = said.budget.values()["seconds"]
    found = [
        (source, one)
        for source, one in classifiers(said.classifiers, base, tell, twice=True, seconds=seconds)
        if isinstance(source, Source)
    ]
    members = check_members([classifier for _, classifier in found])
    data = inputs(settled(said.data, base), said.seed)
    for one in members:
        one.check_inputs(data.x, data.y)
    instances = of_interest(data.instances, members, said.data.model_dump())
    return tuple(source for source, _ in found), members, instances


def of_interest(
    found: Sequence[Instance], members: Sequence[Classifier], part: Mapping[str, Any]
) -> tuple[Instance, ...]:
    """The inputs that a data part means: all of them, or those that every member gets right."""
    right = [part.get("only") != "correct" or all(int(m.predict(i.x)) == i.label for m in members) for i in found]
    instances = tuple(i for i, good in zip(found, right) if good)
    if not instances:
        raise InputError(f"data: expected at least one input, got none ({part['source']})")
    return instances


def planned_body(said: EnsembleFile, sources: tuple[Source, ...], base: Path) -> dict[str, Any]:
    """What a store keeps of the study, so that its game is found again from anywhere."""
    settings = said.settings()
    game = {
        "members": [asdict(one) for one in sources],
        "norm": settings.norm.name,
        "tolerance": settings.tolerance,
        "limit": settings.limit,
        "epsilon": said.epsilon,
        "alpha": said.alpha,
        "method": said.method,
    }
    return {"name": said.name, "ensemble": game, "data": [settled(said.data, base)], "seed": said.seed}
