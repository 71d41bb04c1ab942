"""k-binary search (paper 001, section 3.3): k concurrent queries split the open range of a grid evenly."""

from __future__ import annotations

from bisect import bisect
from itertools import pairwise

from radii.search.machine import GridSearch


class KBinary(GridSearch):
    """k = 1 is binary search.

    The open range is the list of positions that are neither decided nor missing. When nothing runs, it is cut into
    k + 1 equal parts. A slot that falls free while others run takes the middle of the widest part that they leave.
    Missing answers simply leave the list: every open position between the ends must be asked before a search is over,
    so the cheapest way around a missing answer is the one that halves what is left.
    """

    def choose(self, free: int) -> list[int]:
        """Even cuts of the open range when nothing runs, else the middles of the widest parts."""
        candidates = self.open_positions()
        if not self.running:
            return _even(candidates, free)
        # The borders of the parts, as places in the list of candidates.
        borders = [0, *(bisect(candidates, position) for position in sorted(self.running)), len(candidates)]
        parts = [candidates[a:b] for a, b in pairwise(borders)]
        chosen: list[int] = []
        while len(chosen) < free:
            widest = max(range(len(parts)), key=lambda i: len(parts[i]))
            part = parts[widest]
            if not part:
                break
            middle = (len(part) - 1) // 2
            chosen.append(part[middle])
            parts[widest : widest + 1] = [part[:middle], part[middle + 1 :]]
        return chosen


def _even(candidates: list[int], pieces: int) -> list[int]:
    """Up to `pieces` candidates that cut the list into parts as equal as can be."""
    count = min(pieces, len(candidates))
    return [candidates[j * (len(candidates) + 1) // (count + 1) - 1] for j in range(1, count + 1)]
