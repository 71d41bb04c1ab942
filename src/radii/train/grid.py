"""Grids of networks: one recipe for every combination of values, trained in processes or on a cluster; it resumes.

grid: {architecture.name: ["dense:64x1", "dense:64x2:tanh"], optimiser.learning_rate: [0.01, 0.001], epochs: [5, 10]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from radii.errors import InputError
from radii.runners import Runner, SerialRunner, Task
from radii.train.hyperparameters import changed
from radii.train.recipe import Recipe, parse_recipe
from radii.train.run import train

MOST = 10_000  # networks of one grid


@dataclass(frozen=True)
class Member:
    """One network of a grid: its values, its recipe and its folder."""

    values: Mapping[str, Any]
    recipe: Recipe
    folder: Path

    @property
    def network(self) -> Path:
        """The ONNX file that training it writes."""
        return self.folder / f"{self.recipe.name}.onnx"

    @property
    def trained(self) -> bool:
        """Whether the folder holds this very recipe's network: another recipe's is refused when it is trained."""
        try:
            card = json.loads((self.folder / "card.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        mine = json.loads(self.recipe.model_dump_json(exclude={"output", "method"}))
        return self.network.exists() and {**card.get("recipe", {}), "method": None} == {**mine, "method": None}


@dataclass(frozen=True)
class Trained:
    """A member after its turn; `failure` says why there is no network."""

    member: Member
    value: Any = field(default=None, repr=False)  # what `after` made of it
    failure: str = ""


After = Callable[[str, dict[str, Any]], Any]  # called in the worker with the network's file and `options`


def members(recipe: Recipe, folder: Path) -> list[Member]:
    """The networks of a recipe with a grid, in order; every recipe is checked before the first is trained."""
    axes = recipe.grid or {}
    if not axes or any(not values for values in axes.values()):
        raise InputError("grid: expected keys with lists of values, such as epochs: [5, 10], got an empty one")
    found: list[Member] = []
    for combination in product(*axes.values()):
        if len(found) == MOST:
            raise InputError(f"grid: expected at most {MOST} networks, got more; leave values out")
        values = dict(zip(axes, combination))
        name = "-".join([recipe.name, *(f"{key.split('.')[-1]}={value}" for key, value in values.items())])
        plain = re.sub(r"[^\w.=+-]+", "_", name)
        made = changed(recipe, {**values, "name": plain})
        found.append(Member(values, made, folder / plain))
    if len({one.recipe.name for one in found}) < len(found):
        raise InputError("grid: expected different values along every key, got some twice")
    return found


def train_members(
    chosen: list[Member],
    runner: Runner | None = None,
    after: After | None = None,
    options: dict[str, Any] | None = None,
) -> Iterator[Trained]:
    """Trains what is not trained yet and gives each network as it is done; one that fails does not stop the others."""
    by_key = {one.recipe.name: one for one in chosen}
    tasks = [
        Task(key=key, function=_work, args=(one.recipe.model_dump_json(), str(one.folder), one.trained, after, options))
        for key, one in by_key.items()
    ]
    with runner if runner is not None else SerialRunner() as running:
        for outcome in running.run(tasks):
            failure = "" if outcome.failure is None else outcome.failure.message
            yield Trained(by_key[outcome.key], outcome.value, failure)


def _work(body: str, folder: str, trained: bool, after: After | None, options: dict[str, Any] | None) -> Any:
    recipe = parse_recipe(json.loads(body))
    network = Path(folder) / f"{recipe.name}.onnx"
    if not trained:
        train(recipe, output=folder, resume=True)
    return None if after is None else after(str(network), options or {})
