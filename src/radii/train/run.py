"""`radii.train`: a recipe in, a trained classifier out; files of the run in its output folder."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from radii._torch import torch
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.load import load_classifier
from radii.train.checkpoint import write_atomically
from radii.train.curve import learning_curve
from radii.train.export import to_classifier
from radii.train.loop import CHECKPOINT, Epoch, fit
from radii.train.prune import fit_pruned
from radii.train.recipe import Recipe, parse_recipe, read_recipe
from radii.train.task import TrainingTask, prepare, with_extra

Progress = Callable[[Epoch, int], None]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: the classifier, the history of its epochs, and the folder of its files (None: not kept)."""

    classifier: Classifier
    history: tuple[Epoch, ...] = field(repr=False)
    recipe: Recipe = field(repr=False)
    folder: Path | None = None

    @property
    def card(self) -> dict[str, Any]:
        """Recipe, seed, versions, data fingerprint and accuracies; also in the metadata of the ONNX file."""
        return self.classifier.card

    def to_frame(self) -> Any:
        """The history as a pandas data frame, one row per epoch."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.history], columns=[one.name for one in fields(Epoch)])

    def plot(self, path: str | Path) -> Path:
        """The learning curve as a PNG file."""
        target = Path(path)
        write_atomically(target, learning_curve(self.history, self.recipe.name))
        return target


def train(
    recipe: str | Path | Mapping[str, Any] | Recipe | None = None,
    *,
    data: Any = None,
    test: Any = None,
    model: torch.nn.Module | None = None,
    extra: tuple[Any, Any] | None = None,
    notes: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """Trains a network by a recipe: a YAML file, a shipped name (`radii train --list`), a mapping, or keywords.

    Keywords are keys of the recipe and replace them: `radii.train("mnist5k-pgd", epochs=3, seed=1)`. `data` and `test`
    take data sets (or pairs of arrays) instead of loading what the recipe names, `model` a torch module instead of
    building its architecture. `extra` are further training inputs and labels, none of them held out, and `notes` what
    the card says of them. With `output` (here or in the recipe) every epoch ends with a checkpoint in that folder,
    and `resume=True` goes on from it. `progress` is called with each finished epoch and how many there are.

    >>> import radii
    >>> run = radii.train("mnist5k-standard", epochs=2)
    >>> run.classifier, len(run.history)
    (Classifier(mnist5k-standard: 1x28x28 -> 10), 2)
    """
    chosen = _recipe(recipe, data, model, changes)
    if chosen.grid is not None:
        raise InputError("grid: expected a recipe of one network, got a grid; 'radii train' trains all of its networks")
    if output is not None:
        chosen = chosen.model_copy(update={"output": str(output)})
    folder = None if chosen.output is None else Path(chosen.output)
    if folder is not None:
        _refuse_overwriting(folder, chosen, resume)
    elif resume:
        raise InputError("resume: expected an output folder with a checkpoint, got none; give output")
    task = prepare(chosen, None if isinstance(data, (str, Mapping)) else data, test, model)
    if extra is not None:
        task = with_extra(task, *extra)
    if notes is not None:
        task = replace(task, notes=dict(notes))
    if folder is not None:
        _make(folder)
    task, history = _fitted(task, folder, resume, progress)
    run = Run(to_classifier(task, history), tuple(history), chosen, folder)
    if folder is None:
        return run
    _write(run, task, folder)
    return Run(
        load_classifier(folder / f"{chosen.name}.onnx", domain=run.classifier.domain), run.history, chosen, folder
    )


def _fitted(
    task: TrainingTask, folder: Path | None, resume: bool, tell: Progress | None
) -> tuple[TrainingTask, list[Epoch]]:
    """The task with its trained model, pruned or sampled where the recipe says so, and the history."""
    if task.recipe.bayes is not None:
        from radii.train.bayes import sample

        found = sample(task, folder, resume, tell)
        return replace(
            task, model=found.model, notes={**task.notes, "posterior": asdict(found.diagnostics)}
        ), found.history
    run_it = fit if task.recipe.prune is None else fit_pruned
    return task, run_it(task, folder, resume, tell)


def _recipe(recipe: Any, data: Any, model: torch.nn.Module | None, changes: dict[str, Any]) -> Recipe:
    if isinstance(data, (str, Mapping)):
        changes["data"] = data
    elif data is not None:
        changes.setdefault("data", {"source": getattr(data, "name", "arrays")})
    if model is not None:
        changes.setdefault("architecture", {"name": type(model).__name__})
    if isinstance(recipe, (str, Path)):
        return read_recipe(recipe, **changes)
    if isinstance(recipe, Recipe):
        recipe = recipe.model_dump(exclude_unset=True)
    if recipe is not None and not isinstance(recipe, Mapping):
        raise InputError(f"recipe: expected a file, a name, a mapping or keywords, got {type(recipe).__name__}")
    return parse_recipe({**(recipe or {}), **changes})


def _refuse_overwriting(folder: Path, recipe: Recipe, resume: bool) -> None:
    there = [
        name
        for name in (CHECKPOINT, f"iteration-0/{CHECKPOINT}", f"chain-0/{CHECKPOINT}", f"{recipe.name}.onnx")
        if (folder / name).exists()
    ]
    if there and not resume:
        raise InputError(
            f"{folder}: expected an output folder without a run, got one with {there[0]}; resume it (--resume), "
            "or give another output"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"output: expected a folder that can be written, got {folder} ({error.strerror})") from None


def _write(run: Run, task: TrainingTask, folder: Path) -> None:
    """The network, its card, the history and the learning curve."""
    write_atomically(folder / f"{run.recipe.name}.onnx", run.classifier.onnx_bytes)
    write_atomically(folder / "card.json", (json.dumps(run.card, indent=2, ensure_ascii=False) + "\n").encode())
    text = io.StringIO()
    rows = csv.DictWriter(text, [one.name for one in fields(Epoch)], lineterminator="\n")
    rows.writeheader()
    rows.writerows(asdict(row) for row in run.history)
    write_atomically(folder / "history.csv", text.getvalue().encode())
    run.plot(folder / "curve.png")
