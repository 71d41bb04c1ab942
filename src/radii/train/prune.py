"""Iterative magnitude pruning with rewinding (IMP; Frankle and Carbin 2019, late rewinding Frankle et al. 2020).

    train once; then, in each iteration: set the smallest weights to 0, take the others back to what they were after
    epoch `rewind` (0: before training), and train again with the zeros held

After iteration k of n a share (1 − share)^(k/n) of the weights is left. Biases and batch norm are never pruned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from radii._torch import Tensor, torch
from radii.train import checkpoint
from radii.train.loop import CHECKPOINT, Epoch, Tell, fit
from radii.train.task import TrainingTask

REWIND = "rewind.pt"
Weights = Mapping[str, Tensor]


def fit_pruned(
    task: TrainingTask, folder: Path | None = None, resume: bool = False, tell: Tell | None = None
) -> list[Epoch]:
    """Trains and prunes the task's model in place; the history of all iterations, epochs counted on.

    With a folder every iteration has a folder of its own there with its checkpoint, so that a run can be resumed.
    """
    part = task.recipe.prune
    assert part is not None
    start, masks, history = _copy(task.model), dict[str, Tensor](), list[Epoch]()
    total = task.recipe.epochs * (part.iterations + 1)

    def told(row: Epoch, _: int) -> None:
        if tell is not None:
            tell(replace(row, epoch=len(history) + row.epoch), total)

    for k in range(part.iterations + 1):
        place = None if folder is None else folder / f"iteration-{k}"
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        if k == 0 and part.rewind:
            start, rows = _first(task, place, resume, told, part.rewind)
        else:
            if k:
                masks = kept(task.model, (1 - part.share) ** (k / part.iterations), part.scope, masks)
                task.model.load_state_dict(start)
            rows = fit(replace(task, masks=masks), place, resume, told)
        history += [replace(row, epoch=len(history) + row.epoch) for row in rows]
    return history


def _first(
    task: TrainingTask, place: Path | None, resume: bool, tell: Tell, rewind: int
) -> tuple[dict[str, Tensor], list[Epoch]]:
    """The first training, and the weights after epoch `rewind` of it."""
    found: dict[str, Tensor] = {}
    file = None if place is None else place / REWIND
    if file is not None and resume:
        if file.exists():
            found.update(checkpoint.load(file)["model"])
        else:  # killed before those weights were kept: the first training begins again
            file.with_name(CHECKPOINT).unlink(missing_ok=True)

    def told(row: Epoch, count: int) -> None:
        if row.epoch == rewind:
            found.update(_copy(task.model))
            if file is not None:
                checkpoint.save(file, {"model": found})
        tell(row, count)

    rows = fit(task, place, resume, told)
    return found, rows


def kept(model: torch.nn.Module, share: float, scope: str, masks: Weights) -> dict[str, Tensor]:
    """Masks that keep this share of all weights: the largest of the network (`global`) or of each matrix (`layer`).

    What was pruned before stays pruned.
    """
    sizes = {name: weight.detach().abs() for name, weight in matrices(model).items()}
    for name, mask in masks.items():
        sizes[name] = sizes[name].masked_fill(~mask, -1.0)
    if scope == "layer":
        return {name: size >= _least(size.flatten(), share) for name, size in sizes.items()}
    least = _least(torch.cat([size.flatten() for size in sizes.values()]), share)
    return {name: size >= least for name, size in sizes.items()}


def _least(sizes: Tensor, share: float) -> Tensor:
    """The size of the smallest weight that is kept; at least one is."""
    return sizes.sort(descending=True).values[max(1, round(share * len(sizes))) - 1].clamp_min(0)


def matrices(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The weights that can be pruned: those of dense layers and convolutions."""
    return {name: weight for name, weight in model.named_parameters() if weight.ndim > 1}


def _copy(model: torch.nn.Module) -> dict[str, Tensor]:
    state: dict[str, Any] = model.state_dict()
    return {name: value.detach().clone() for name, value in state.items()}
