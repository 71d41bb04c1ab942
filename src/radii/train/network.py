"""Network: a torch module as one training step sees it, with its values and its bounds; `from_torch.py` makes it.

Batch normalisation takes its statistics from the clean inputs of the step, for clean inputs, attacked inputs and bounds
alike (Shi et al. 2021): a bound of a network whose statistics move with the perturbation would bound nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.train import layers
from radii.train.layers import Box, Layer, Memo


@dataclass(frozen=True, eq=False)
class Network:
    """A module's layers with the statistics of one step; `clean` are the outputs of the inputs it was read at."""

    layers: tuple[Layer, ...]
    clean: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs of a batch: (batch, classes)."""
        return layers.values(self.layers, x)

    def detached(self) -> Network:
        """The same with constants for weights."""
        return Network(tuple(layer.detached() for layer in self.layers), self.clean.detach())

    def outputs(self, low: Tensor, high: Tensor) -> Box:
        """Interval bounds of the outputs over boxes of inputs (IBP, Gowal et al. 2018)."""
        return layers.intervals(self.layers, low, high, {})

    def worst(self, low: Tensor, high: Tensor, y: Tensor, memo: Memo | None = None) -> Tensor:
        """Outputs whose cross entropy is at least that of any input of the box: 0 for the label, −margin elsewhere.

        The margins of the label over each class are bounded as one layer with the last weights, which is tighter than
        the difference of two boxes.
        """
        seen: Memo = {} if memo is None else memo
        last = self.layers[-1]
        if not isinstance(last, layers.Dense):
            a, b = layers.intervals(self.layers, low, high, seen)
            label = torch.nn.functional.one_hot(y, a.shape[1]).bool()
            return torch.where(label, torch.zeros_like(a), b - a.gather(1, y[:, None]))
        low, high = layers.intervals(self.layers[:-1], low, high, seen)
        rows = last.weight[None] - last.weight[y][:, None]  # (batch, classes, width): class − label
        middle, half = (low + high) / 2, (high - low) / 2
        found = (rows @ middle[:, :, None] + rows.abs() @ half[:, :, None])[..., 0]
        return found if last.bias is None else found + last.bias[None] - last.bias[y][:, None]

    def worst_linear(self, low: Tensor, high: Tensor, y: Tensor, memo: Memo) -> Tensor:
        """The same by backward linear bounds through the boxes of `memo` (CROWN-IBP, Zhang et al. 2020)."""
        classes = self.clean.shape[1]
        unit = torch.eye(classes, dtype=low.dtype, device=low.device)
        rows = (unit[y][:, None] - unit[None]).reshape(-1, classes)  # label − class, which is bounded from below
        rows, constant = layers.back(self.layers, rows, memo)
        wide = rows.reshape(len(y), classes, -1)
        middle, half = ((high + low) / 2).flatten(1), ((high - low) / 2).flatten(1)
        least = (wide @ middle[:, :, None] - wide.abs() @ half[:, :, None])[..., 0] + constant.reshape(-1, classes)
        return -least
