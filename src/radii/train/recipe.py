"""Recipes: what a YAML file may say about a training run, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from radii._check import SEEDS, nearest, number
from radii._parts import Part, parsed
from radii._yaml import read_yaml
from radii.errors import InputError

SHIPPED = "radii.train.recipes"


def _above(name: str, low: float = 0.0, high: float = float("inf"), strict: bool = True) -> BeforeValidator:
    return BeforeValidator(
        lambda value: None if value is None else number(value, name, low=low, high=high, strict=strict)
    )


def _mapping(key: str) -> BeforeValidator:
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class ArchitecturePart(Part):
    """A name such as convSmall, dense:256x2 or cnn7:8, and what is put into it."""

    where: ClassVar[str] = "architecture"
    name: str
    batch_norm: bool = False
    initialisation: Literal["torch", "ibp"] = "torch"


class DataPart(Part):
    """The data set; `classes` keeps some, numbered anew; `validation` is the share of training inputs held out."""

    where: ClassVar[str] = "data"
    source: str
    root: str | None = None
    classes: tuple[int, ...] = ()
    first: int | None = Field(default=None, ge=1)
    validation: Annotated[float, _above("data validation", high=0.5)] = 0.05
    options: dict[str, Any] = Field(default_factory=dict)


class OptimiserPart(Part):
    """Gradient descent: `clip` is the largest norm of a step's gradient, `l1` the weight of all weights' sizes."""

    where: ClassVar[str] = "optimiser"
    name: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, _above("learning_rate")] = 1e-3
    momentum: Annotated[float, _above("momentum", high=1.0, strict=False)] = 0.9
    weight_decay: Annotated[float, _above("weight_decay", strict=False)] = 0.0
    l1: Annotated[float, _above("l1", strict=False)] = 0.0
    clip: Annotated[float | None, _above("clip")] = None


class SchedulePart(Part):
    """How the learning rate falls, and over which epochs ε grows from 0 to its full size.

    `at` multiplies the rate by `factor` at these epochs, `every` does so every so many; "cosine" lets it fall to 0.
    """

    where: ClassVar[str] = "schedule"
    at: tuple[int, ...] = ()
    every: int | None = Field(default=None, ge=1)
    factor: Annotated[float, _above("factor", high=1.0)] = 0.2
    cosine: bool = False
    ramp: tuple[Annotated[float, _above("ramp", strict=False)], Annotated[float, _above("ramp", strict=False)]] = (0, 0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.ramp[1] < self.ramp[0]:
            raise InputError(f"schedule: expected a ramp from an epoch to a later one, got {list(self.ramp)}")
        if sum((bool(self.at), self.every is not None, self.cosine)) > 1:
            raise InputError("schedule: expected one of at, every and cosine, got more; leave the others out")
        return self


class EvaluationPart(Part):
    """What is measured after each epoch, on held-out inputs, and at which ε (the method's own unless given)."""

    where: ClassVar[str] = "evaluation"
    epsilon: Annotated[float | None, _above("evaluation epsilon", strict=False)] = None
    inputs: int = Field(default=1000, ge=1)
    steps: int = Field(default=20, ge=1)


class BalancePart(Part):
    """Weights and sizes of ε per class, from the robust errors of the last epoch (see `docs/training.md`)."""

    where: ClassVar[str] = "balance"
    name: Literal["kl", "similarity", "fixed"] = "kl"
    temperature: Annotated[float, _above("temperature")] = 0.5
    strength: Annotated[float, _above("strength")] = 1.0
    clamp: tuple[Annotated[float, _above("clamp")], Annotated[float, _above("clamp")]] = (0.5, 2.0)
    epsilon: bool = False
    after: int = Field(default=1, ge=0)
    weights: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.clamp[0] > 1 or self.clamp[1] < 1:
            raise InputError(f"balance: expected a clamp around 1, got {list(self.clamp)}")
        if (self.name == "fixed") != bool(self.weights):
            raise InputError("balance: expected weights, one per class, for the name fixed and for no other")
        return self


class PrunePart(Part):
    """Iterative magnitude pruning: `share` of the weights end at 0, in so many iterations of pruning and training."""

    where: ClassVar[str] = "prune"
    share: Annotated[float, _above("prune share", high=1.0)]
    iterations: int = Field(default=1, ge=1, le=100)
    rewind: int = Field(default=0, ge=0)
    scope: Literal["global", "layer"] = "global"


class BayesPart(Part):
    """Draws from the posterior of the weights by Hamiltonian Monte Carlo, and the predictor that they make up.

    Each chain starts where `epochs` of plain training end; `networks` of all draws, evenly spread, are averaged.
    """

    where: ClassVar[str] = "bayes"
    sampler: Literal["hmc", "nuts"] = "hmc"
    draws: int = Field(default=100, ge=4)  # of each chain, after its warm-up
    warmup: int = Field(default=50, ge=0)
    chains: int = Field(default=2, ge=1, le=100)
    step: Annotated[float, _above("bayes step")] = 0.005  # of the leapfrog integrator
    steps: int = Field(default=10, ge=1)  # of it per draw, with hmc
    depth: int = Field(default=5, ge=1, le=10)  # at most 2^depth steps per draw, with nuts
    adapt: bool = True  # the step while warming up, until 4 of 5 draws are accepted
    prior: Annotated[float, _above("bayes prior")] = 1.0  # standard deviation of every weight before the data
    networks: int = Field(default=10, ge=1, le=1000)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.networks > self.chains * self.draws:
            raise InputError(
                f"bayes: expected at most {self.chains * self.draws} networks, one per draw, got {self.networks}"
            )
        return self


class Recipe(Part):
    """A whole run: architecture × data × method × optimiser × schedule × seed."""

    where: ClassVar[str] = "recipe"
    name: str = Field(min_length=1, pattern=r"^[^/\\]+$")
    about: str = ""
    architecture: Annotated[ArchitecturePart, _mapping("name")]
    data: Annotated[DataPart, _mapping("source")]
    method: Annotated[dict[str, Any], _mapping("name")] = Field(default_factory=lambda: {"name": "standard"})
    optimiser: Annotated[OptimiserPart, _mapping("name")] = OptimiserPart()
    schedule: SchedulePart = SchedulePart()
    evaluation: EvaluationPart = EvaluationPart()
    balance: Annotated[BalancePart | None, _mapping("name")] = None
    prune: PrunePart | None = None
    bayes: Annotated[BayesPart | None, _mapping("sampler")] = None
    search: dict[str, Any] | None = None  # what `radii train --search` tries, by dotted keys
    grid: dict[str, list[Any]] | None = None  # a network for every combination of these values, by dotted keys
    epochs: int = Field(default=10, ge=1)
    batch: int = Field(default=128, ge=2)
    keep: Literal["best", "last"] = "best"
    seed: int = Field(default=0, ge=0, le=SEEDS)
    threads: int = Field(default=1, ge=1)
    output: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.prune is not None and self.prune.rewind >= self.epochs:
            raise InputError(f"prune: expected to rewind to an epoch before {self.epochs}, got {self.prune.rewind}")
        if self.bayes is not None:
            others = {
                "method": self.method.get("name") != "standard",
                "prune": self.prune is not None,
                "balance": self.balance is not None,
                "architecture batch_norm": self.architecture.batch_norm,
            }
            if clash := [name for name, there in others.items() if there]:
                raise InputError(
                    f"bayes: expected the method standard without prune, balance and batch_norm, got {clash[0]}; "
                    "a posterior is that of the cross entropy alone"
                )
        return self


def read_recipe(what: str | Path, **changes: Any) -> Recipe:
    """The recipe in a YAML file, or the one of this name that ships with radii; `changes` replace its keys."""
    file = Path(what)
    if str(what) in shipped():
        file = Path(str(files(SHIPPED).joinpath(f"{what}.yaml")))
    elif not file.suffix and not file.exists():
        known = shipped()
        raise InputError(
            f"recipe: expected a YAML file or a name that 'radii train --list' shows, got {str(what)!r}"
            f"{nearest(str(what), known)}"
        )
    body = read_yaml(file, "a recipe with architecture, data and method")
    return parse_recipe({**body, **changes}, str(what), file.stem)


def parse_recipe(body: Mapping[str, Any], where: str = "recipe", name: str = "network") -> Recipe:
    """The recipe that a mapping says; `name` is used when it gives none."""
    from radii.train.methods.base import make

    found = parsed(Recipe, body, where, name)
    try:
        make(found.method)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return found


def shipped() -> list[str]:
    """The names of the recipes that come with radii, in order."""
    return sorted(item.name.removesuffix(".yaml") for item in files(SHIPPED).iterdir() if item.name.endswith(".yaml"))
