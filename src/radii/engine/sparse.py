"""Sparse products: the first rows of A in networks that begin with convolutions are 0 nearly everywhere.

A neuron of a convolution sees a few pixels. Sums that leave zeros out are sums of the same numbers in another order, so
what is charged for their rounding stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from radii._cpu import uncharged
from radii._torch import Tensor, torch
from radii.engine.condensed import Condensed
from radii.engine.tuning import DEFAULT, Trees

AT_ONCE = 128  # vectors that are multiplied at a time: with more they leave the caches and each takes longer


def sparse_rows(net: Condensed, trees: Trees = DEFAULT.trees) -> int:
    """How many first rows of A had better be multiplied without their zeros: layers with half of all rows, or none."""
    a, found = net.neurons.a, 0
    if a.device.type != "cpu":
        return 0
    for _, last in net.blocks:
        if int(a[:last].count_nonzero()) > trees.sparse_share * a[:last].numel():
            break
        found = last
    return found if 2 * found >= len(a) and found * a.shape[1] >= trees.sparse_size else 0


class SparseRows:
    """Rows (k, d) by their nonzero coefficients; `batch` vectors at a time are multiplied, so that they stay cached."""

    def __init__(self, rows: Tensor, batch: int = AT_ONCE) -> None:
        with uncharged():
            from scipy.sparse import csc_array, csr_array
        dense = rows.numpy()
        row, column = np.nonzero(dense)
        starts = np.searchsorted(row, np.arange(len(dense) + 1)).astype(np.int32)
        self._csc: Any = csc_array
        self._parts = dense[row, column], column.astype(np.int32), starts
        self._rows: Any = csr_array(self._parts, shape=dense.shape)
        self._firsts: dict[int, Any] = {}
        self._batch = batch
        self.count, self.width = dense.shape

    def combined(self, u: Tensor) -> Tensor:
        """u·rows[:k] for coefficients (…, k), k at most the number of rows."""
        k = u.shape[-1]
        if k not in self._firsts:
            values, columns, starts = self._parts
            end = int(starts[k])
            self._firsts[k] = self._csc((values[:end], columns[:end], starts[: k + 1]), shape=(self.width, k))
        return self._through(self._firsts[k], u.reshape(-1, k)).reshape(*u.shape[:-1], self.width)

    def at(self, x: Tensor) -> Tensor:
        """The values rows·x at points (…, d)."""
        return self._through(self._rows, x.reshape(-1, self.width)).reshape(*x.shape[:-1], self.count)

    def _through(self, matrix: Any, vectors: Tensor) -> Tensor:
        out = vectors.new_empty((len(vectors), matrix.shape[0]))
        for first in range(0, len(vectors), self._batch):
            part = vectors[first : first + self._batch].T.contiguous().numpy()
            out[first : first + self._batch] = torch.from_numpy(matrix @ part).T
        return out
