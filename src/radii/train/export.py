"""From a trained module to a classifier: batch norm folded into the weights, ONNX, and the training card."""

from __future__ import annotations

import copy
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from radii import __version__
from radii._torch import torch
from radii.models.card import with_card
from radii.models.classifier import Classifier
from radii.models.from_torch import export
from radii.models.load import load_classifier
from radii.train.evaluate import accuracies
from radii.train.loop import Epoch
from radii.train.methods.base import described
from radii.train.task import Labelled, TrainingTask


def to_classifier(task: TrainingTask, history: Sequence[Epoch]) -> Classifier:
    """The task's model, trained, as a classifier whose card says how it came about."""
    model, _ = export(folded(task.model), task.shape)
    domain = (task.domain.low, task.domain.high)
    return load_classifier(with_card(model, card(task, history)), domain=domain, name=task.recipe.name)


def card(task: TrainingTask, history: Sequence[Epoch]) -> dict[str, Any]:
    """Recipe, seed, versions, data fingerprint and accuracies of a trained model."""
    recipe = task.recipe
    return {
        "recipe": {**recipe.model_dump(mode="json", exclude={"output"}), "method": described(task.method)},
        "seed": recipe.seed,
        "data": {"source": recipe.data.source, "fingerprint": task.fingerprint, "inputs": len(task.train)},
        "epochs": len(history),
        "weights": _weights(task.model),
        "cpu_seconds": round(sum(row.seconds for row in history), 1),
        "accuracies": {
            "epsilon": task.epsilon,
            "validation": _measured(task, task.validation),
            "test": None if task.test is None else _measured(task, task.test),
        },
        **task.notes,
        "versions": {
            "radii": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }


def _weights(model: torch.nn.Module) -> dict[str, int]:
    """How many weights there are in dense layers and convolutions, and how many of them are 0."""
    found = [weight.detach() for weight in model.parameters() if weight.ndim > 1]
    return {"all": sum(one.numel() for one in found), "zero": sum(int((one == 0).sum()) for one in found)}


def _measured(task: TrainingTask, data: Labelled) -> dict[str, Any]:
    found = accuracies(task.model, data.x, data.y, task.epsilon, task.domain, task.recipe.evaluation.steps)
    common = float(torch.bincount(data.y).max()) / len(data)  # the accuracy of always saying the most common class
    measured = {**asdict(found), "guessing": common}
    return {"inputs": len(data), **{key: _short(value) for key, value in measured.items()}}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def folded(model: torch.nn.Module) -> torch.nn.Module:
    """The same function without batch norm: its factors go into the weights before it, computed in float64."""
    copied = copy.deepcopy(model).eval()
    if not isinstance(copied, torch.nn.Sequential):
        return copied
    parts: list[torch.nn.Module] = []
    for part in copied:
        before = parts[-1] if parts else None
        if isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)) and isinstance(
            before, (torch.nn.Linear, torch.nn.Conv2d)
        ):
            parts[-1] = _merged(before, part)
        else:
            parts.append(part)
    return torch.nn.Sequential(*parts)


def _merged(
    layer: torch.nn.Linear | torch.nn.Conv2d, norm: torch.nn.BatchNorm1d | torch.nn.BatchNorm2d
) -> torch.nn.Module:
    if norm.running_mean is None or norm.running_var is None:
        return torch.nn.Sequential(layer, norm)
    with torch.no_grad():
        factor = (norm.running_var.double() + norm.eps).rsqrt()
        shift = -norm.running_mean.double() * factor
        if norm.affine:
            factor, shift = factor * norm.weight.double(), shift * norm.weight.double() + norm.bias.double()
        weight = layer.weight.double() * factor.reshape(-1, *(1 for _ in layer.weight.shape[1:]))
        bias = shift if layer.bias is None else layer.bias.double() * factor + shift
        layer.weight = torch.nn.Parameter(weight.to(layer.weight.dtype))
        layer.bias = torch.nn.Parameter(bias.to(layer.weight.dtype))
    return layer
