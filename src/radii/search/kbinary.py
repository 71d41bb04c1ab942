"""k-binary search (paper 001, section 3.3): k concurrent queries split the open range of a grid evenly."""

from __future__ import annotations

from itertools import pairwise

from radii._check import choice
from radii.search.grid import Grid
from radii.search.machine import GridSearch


class KBinary(GridSearch):
    """k = 1 is binary search.

    A fresh range is cut into k + 1 equal parts. A slot that falls free while others run takes the midpoint of the
    widest part that the running queries leave. `around` says how missing answers are gone around: "gap" treats them
    as cuts, so the next query goes to the middle of the widest part beside them; "list" drops them from the list of
    candidates and takes its middle, as VERONA does, which asks right beside the query that has just failed.
    """

    def __init__(self, grid: Grid, k: int = 2, around: str = "gap") -> None:
        super().__init__(grid, k)
        self.around = choice(around, "around", ("gap", "list"))

    def choose(self, free: int) -> list[int]:
        """Even cuts of the open range when nothing runs, else midpoints of the widest parts."""
        if self.around == "list":
            return self._from_list(free)
        cuts = {p for p in self.missing if self.low < p < self.high} | self.running
        if not cuts:
            return _even(self.low, self.high, free)
        chosen: list[int] = []
        for _ in range(free):
            fences = [self.low, *sorted(cuts), self.high]
            left, right = max(pairwise(fences), key=lambda part: part[1] - part[0])
            if right - left < 2:
                break
            middle = (left + right) // 2
            chosen.append(middle)
            cuts.add(middle)
        return chosen

    def _from_list(self, free: int) -> list[int]:
        candidates = self.open_positions()
        if not self.running:
            return [candidates[i] for i in _even(-1, len(candidates), free)]
        chosen: list[int] = []
        for _ in range(min(free, len(candidates))):
            parts = _split(candidates, self.running.union(chosen))
            widest = max(parts, key=len)
            chosen.append(widest[(len(widest) - 1) // 2])
            candidates.remove(chosen[-1])
        return chosen


def _even(low: int, high: int, pieces: int) -> list[int]:
    """`pieces` positions strictly between low and high that cut the range into parts as equal as can be."""
    inside = high - low - 1
    count = min(pieces, inside)
    return [low + (j * (inside + 1)) // (count + 1) for j in range(1, count + 1)]


def _split(candidates: list[int], cuts: set[int]) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    edges = sorted(cuts)
    at = 0
    for position in candidates:
        while at < len(edges) and edges[at] < position:
            at += 1
            if parts[-1]:
                parts.append([])
        parts[-1].append(position)
    return parts
