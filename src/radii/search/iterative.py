"""Iterative search: the grid from one end to the other, one query at a time, until the verdict turns."""

from __future__ import annotations

from radii.search.grid import Grid
from radii.search.machine import GridSearch


class Iterative(GridSearch):
    """A linear scan, upwards until the first broken ε or (`descending`) downwards until the first proven one.

    With k > 1 the next k positions are asked at once. Missing answers are passed over.
    """

    def __init__(self, grid: Grid, k: int = 1, descending: bool = False) -> None:
        super().__init__(grid, k)
        self.descending = descending

    def choose(self, free: int) -> list[int]:
        """The next positions in the order of the scan."""
        ahead = self.open_positions()
        return ahead[::-1][:free] if self.descending else ahead[:free]
