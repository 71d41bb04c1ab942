"""TrainingTask: a recipe with its data, untrained network and method; what cannot be trained is refused here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from radii._torch import Tensor, torch
from radii.data import Dataset, load_dataset
from radii.errors import DataError, InputError
from radii.models.load import load_classifier
from radii.problem import Domain
from radii.train.architectures import build
from radii.train.from_torch import refuse
from radii.train.methods.base import Method, make
from radii.train.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs and labels as two tensors: batches are taken by index."""

    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)

    def __len__(self) -> int:
        return len(self.y)

    def at(self, index: Tensor) -> Labelled:
        """The inputs at these positions."""
        return Labelled(self.x[index], self.y[index])


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """All that the loop needs, checked."""

    recipe: Recipe
    method: Method
    model: torch.nn.Module
    train: Labelled
    validation: Labelled
    test: Labelled | None
    domain: Domain
    classes: int
    shape: tuple[int, ...]
    fingerprint: str  # of the training data
    masks: Mapping[str, Tensor] = field(default_factory=dict)  # of weights by name: what is False stays 0
    notes: Mapping[str, Any] = field(default_factory=dict)  # what the card says besides

    @property
    def epsilon(self) -> float:
        """The ε of accuracies while training: the evaluation's own, or the method's."""
        own = self.recipe.evaluation.epsilon
        return self.method.epsilon if own is None else own


def prepare(recipe: Recipe, data: Any = None, test: Any = None, model: torch.nn.Module | None = None) -> TrainingTask:
    """The task of a recipe; `data` and `test` are data sets to use instead of loading them, `model` the network."""
    method = make(recipe.method)
    training = _dataset(data) if data is not None else load_split(recipe, "train")
    if data is None and test is None:
        test = _test(recipe)
    held = None if test is None else _dataset(test)
    domain = training.domain
    _check_epsilon(method.epsilon, "epsilon", domain)
    if recipe.evaluation.epsilon is not None:
        _check_epsilon(recipe.evaluation.epsilon, "evaluation epsilon", domain)
    if recipe.data.first is not None:
        training = training[: recipe.data.first]
    classes = training.classes
    if held is not None and (held.shape != training.shape or held.y.max() >= classes):
        raise DataError(f"{held.name}: expected test inputs like the training inputs, got other shapes or labels")
    method.check(classes)
    made = model if model is not None else _model(recipe, training.shape, classes)
    _check_model(made, training, classes)
    if method.bounds:
        refuse(made, method.name, backward=method.bounds == "backward")
    everything = labelled(training)
    rest, kept = split(len(everything), recipe.data.validation)
    if len(rest) < 2:
        raise DataError(f"{training.name}: expected at least 3 inputs to train on and hold out, got {len(everything)}")
    return TrainingTask(
        recipe,
        method,
        made,
        everything.at(rest),
        everything.at(kept[: recipe.evaluation.inputs]),
        None if held is None else labelled(held),
        domain,
        classes,
        training.shape,
        fingerprint(training),
    )


def with_extra(task: TrainingTask, x: Any, y: Any) -> TrainingTask:
    """The task with further inputs to train on, such as witnesses; they are part of its data's fingerprint."""
    more = Dataset(np.asarray(x, dtype=np.float32).reshape(-1, *task.shape), np.asarray(y), domain=task.domain)
    if len(more) and more.y.max() >= task.classes:
        raise DataError(f"extra: expected labels from 0 to {task.classes - 1}, got {int(more.y.max())}")
    added = labelled(more)
    both = Labelled(torch.cat([task.train.x, added.x]), torch.cat([task.train.y, added.y]))
    mark = hashlib.sha256(f"{task.fingerprint} {fingerprint(more)}".encode()).hexdigest()[:32]
    return replace(task, train=both, fingerprint=mark)


def split(count: int, share: float) -> tuple[Tensor, Tensor]:
    """Positions to train on and positions held out, drawn once and for all: the same for every seed of a recipe."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    held = max(1, round(share * count))
    return order[held:].sort().values, order[:held]


def labelled(data: Dataset) -> Labelled:
    """A data set as tensors."""
    return Labelled(torch.from_numpy(np.array(data.x)), torch.from_numpy(np.array(data.y)))


def fingerprint(data: Dataset) -> str:
    """A hash of inputs and labels."""
    digest = hashlib.sha256(data.x.tobytes())
    digest.update(data.y.tobytes())
    return digest.hexdigest()[:32]


def _dataset(data: Any) -> Dataset:
    if isinstance(data, tuple) and len(data) == 2:
        return Dataset(np.asarray(data[0], dtype=np.float32), np.asarray(data[1]))
    return load_dataset(data)


def load_split(recipe: Recipe, name: str) -> Dataset:
    """The training or test inputs that a recipe names, of the classes that it keeps."""
    part = recipe.data
    found = load_dataset(part.source, split=name, root=part.root, **part.options)
    if not part.classes:
        return found
    wanted = np.array(part.classes)
    if len(set(part.classes)) < len(wanted) or wanted.min() < 0 or wanted.max() >= found.classes:
        raise DataError(
            f"{found.name}: expected classes from 0 to {found.classes - 1}, each once, got {list(part.classes)}"
        )
    kept = found[np.flatnonzero(np.isin(found.y, wanted))]
    places = np.zeros(found.classes, dtype=np.int64)
    places[wanted] = np.arange(len(wanted))
    names = tuple(found.class_names[label] for label in part.classes)
    return Dataset(kept.x, places[kept.y], found.name, found.split, names, found.domain, kept.indices)


def _test(recipe: Recipe) -> Dataset | None:
    try:
        return load_split(recipe, "test")
    except InputError:  # a set without a test split is trained on all the same; its card then has no test accuracy
        return None


def _model(recipe: Recipe, shape: tuple[int, ...], classes: int) -> torch.nn.Module:
    part = recipe.architecture
    return build(
        part.name,
        shape,
        classes,
        batch_norm=part.batch_norm,
        initialisation=part.initialisation,
        seed=recipe.seed,
    )


def _check_model(model: torch.nn.Module, data: Dataset, classes: int) -> None:
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            outputs = model(torch.from_numpy(np.array(data.x[:2])))
    except RuntimeError as error:
        raise DataError(
            f"{data.name}: expected inputs that the network takes, got shape {data.shape} ({error})"
        ) from None
    finally:
        model.train(before)
    if outputs.ndim != 2 or outputs.shape[1] != classes:
        raise DataError(f"{data.name}: expected {classes} outputs, one per class, got {tuple(outputs.shape[1:])}")
    load_classifier(model, input_shape=data.shape, check=False)  # what cannot be read later is refused now


def _check_epsilon(value: float, name: str, domain: Domain) -> None:
    width = domain.high - domain.low
    if value > width:
        raise InputError(
            f"{name}: expected at most the width of the domain [{domain.low:g}, {domain.high:g}], got {value:g}; "
            "pixels from 0 to 255 are divided by 255, and so is ε"
        )
