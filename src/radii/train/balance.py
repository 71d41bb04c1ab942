"""Class-balanced robust training: per-class weights (and sizes of ε) from the robust errors of each class.

A robust network is often far less robust on some classes than on others. Two ways to weigh classes are known for
adversarial losses, and here serve certified losses as well:

- `kl` (as FAAL, Zhang et al. 2024): the weights that a worst-case adversary over classes would choose, held near equal
  ones by a Kullback–Leibler term; they are the softmax of the classes' mean robust losses over a temperature.
- `similarity` (as DAFA, Lee et al. 2024): a class that is mistaken for easier classes gains weight, and those lose it,
  by how much probability they share. Weights may turn negative there: all are clamped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from radii._torch import Tensor, functional, torch
from radii.errors import InputError
from radii.train.recipe import BalancePart


@dataclass
class Balance:
    """Weights per class, renewed after each epoch from what the losses of that epoch were."""

    part: BalancePart
    classes: int
    weights: Tensor = field(init=False)
    _counts: Tensor = field(init=False)
    _losses: Tensor = field(init=False)
    _shares: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.weights = torch.ones(self.classes)
        if self.part.weights:
            if len(self.part.weights) != self.classes:
                raise InputError(
                    f"balance: expected {self.classes} weights, one per class, got {len(self.part.weights)}"
                )
            self.weights = clamped(torch.tensor(self.part.weights), self.part.clamp)
        self._reset()

    def of(self, y: Tensor) -> Tensor:
        """The weight of each input."""
        return self.weights[y]

    def sizes(self, y: Tensor) -> Tensor:
        """What ε is multiplied by for each input: as DAFA, by its class's weight; 1 where the recipe keeps ε."""
        return self.weights[y] if self.part.epsilon else torch.ones(len(y))

    def see(self, y: Tensor, outputs: Tensor) -> None:
        """Adds the robust outputs of a batch to the tally of the epoch."""
        outputs = outputs.detach()
        ones = functional.one_hot(y, self.classes).to(outputs.dtype)
        self._counts += ones.sum(0)
        self._losses += ones.T @ functional.cross_entropy(outputs, y, reduction="none")
        self._shares += ones.T @ outputs.softmax(1)

    def renew(self, epoch: int) -> None:
        """The weights of the next epoch, from the tally of this one; before `after` epochs they stay equal."""
        seen = self._counts.clamp_min(1)
        if self.part.name != "fixed" and epoch + 1 >= self.part.after:
            if self.part.name == "kl":
                found = kl_weights(self._losses / seen, self.part.temperature)
            else:
                found = similarity_weights(self._shares / seen[:, None], self.part.strength)
            self.weights = clamped(found, self.part.clamp)
        self._reset()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, between two epochs."""
        return {"weights": self.weights}

    def restore(self, state: dict[str, Any]) -> None:
        """The weights of a checkpoint."""
        self.weights = state["weights"]

    def _reset(self) -> None:
        self._counts, self._losses = torch.zeros(2, self.classes)
        self._shares = torch.zeros(self.classes, self.classes)


def kl_weights(losses: Tensor, temperature: float) -> Tensor:
    """The maximiser of Σ w·loss − temperature · KL(w ‖ equal weights) over weights of mean 1."""
    return len(losses) * torch.softmax(losses / temperature, 0)


def similarity_weights(shares: Tensor, strength: float) -> Tensor:
    """DAFA's weights from `shares[i, j]`, the mean probability of class j for inputs of class i under attack."""
    own = shares.diagonal()
    harder = (own[:, None] < own[None, :]).to(shares.dtype)  # i is harder than j
    gain = harder * shares * own[None, :]  # i is mistaken for j, which knows itself better
    return 1 + strength * (gain.sum(1) - gain.sum(0))


def radius_weights(radii: ArrayLike, labels: ArrayLike, classes: int, strength: float = 1.0) -> tuple[float, ...]:
    """Weights for `balance: {name: fixed, weights: …}` from radii: classes of small radii weigh more.

    A class weighs (mean radius of all classes / its own mean radius) to the power of `strength`; a class without a
    radius weighs 1.
    """
    values, found = np.asarray(radii, dtype=np.float64), np.asarray(labels)
    means = np.full(classes, np.nan)
    for label in range(classes):
        mine = values[(found == label) & np.isfinite(values)]
        if mine.size and mine.mean() > 0:
            means[label] = mine.mean()
    if not np.isfinite(means).any():
        raise InputError("balance: expected radii above 0 for some class, got none")
    ratio = np.nanmean(means) / means
    return tuple(float(one) for one in np.where(np.isfinite(ratio), ratio, 1.0) ** strength)


def clamped(weights: Tensor, ends: tuple[float, float]) -> Tensor:
    """The weights cut to an interval, then with a mean of 1 again."""
    found = weights.to(torch.get_default_dtype()).clamp(*ends)
    return found / found.mean()
