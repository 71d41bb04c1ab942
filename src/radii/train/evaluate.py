"""Accuracies on held-out inputs: clean, attacked by PGD, certified by interval bounds.

These are for watching a run: intervals in the network's own floats, without a charge for rounding. What a network is
worth is proven by the engine (`radii.measures`, `radii.distribution`).
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.problem import Domain
from radii.train.from_torch import hindrances, read
from radii.train.methods.base import State, box
from radii.train.methods.pgd import attacked

CHUNK = 500


@dataclass(frozen=True, slots=True)
class Accuracies:
    """Shares of the inputs; None where a share was not asked for or the network cannot be bounded."""

    clean: float
    attacked: float | None = None
    certified: float | None = None


def accuracies(
    model: torch.nn.Module, x: Tensor, y: Tensor, epsilon: float, domain: Domain, steps: int = 20, seed: int = 0
) -> Accuracies:
    """The three accuracies of a model in evaluation mode; an attacked input is one that was right before."""
    before = model.training
    model.eval()
    bounded = epsilon > 0 and not hindrances(model)
    state = State(torch.Generator().manual_seed(seed), domain)
    size = torch.full((1, *(1 for _ in x.shape[1:])), epsilon, dtype=x.dtype)
    clean = hit = proven = 0
    try:
        for images, labels in zip(torch.split(x, CHUNK), torch.split(y, CHUNK)):
            with torch.no_grad():
                net = read(model, images)
                right = net.clean.argmax(1) == labels
                clean += int(right.sum())
                if bounded:
                    worst = net.worst(*box(images, size, domain), labels)
                    others = worst.scatter(1, labels[:, None], -torch.inf)
                    proven += int((right & (others.amax(1) < 0)).sum())
            if epsilon > 0:
                points = attacked(net, images, labels, size, state, steps, 2.5 / steps)
                with torch.no_grad():
                    hit += int((right & (net(points).argmax(1) == labels)).sum())
    finally:
        model.train(before)
    count = len(y)
    return Accuracies(clean / count, hit / count if epsilon > 0 else None, proven / count if bounded else None)


def estimate_statistics(model: torch.nn.Module, x: Tensor) -> None:
    """Batch norm's statistics from all clean inputs, as means over chunks (Shi et al. 2021); others are kept."""
    norms = [part for part in model.modules() if isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d))]
    if not norms:
        return
    moments = [part.momentum for part in norms]
    before = model.training
    model.train()
    for part in norms:
        part.reset_running_stats()
        part.momentum = None  # a plain mean over the chunks
    with torch.no_grad():
        for images in torch.split(x, CHUNK):
            if len(images) > 1:
                model(images)
    for part, moment in zip(norms, moments):
        part.momentum = moment
    model.train(before)
