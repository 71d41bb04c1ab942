"""Necessary conditions, linear in the logits of all members, for a mean of softmax probabilities to leave the label.

Class t at least ties with the label y where Σ_i w_i·(p_i,t − p_i,y) ≥ 0. Let d_s = f_s − f_c and h_c = log Σ_s exp d_s,
so that p_c = exp(−h_c); h_c is convex in d. Over a box of differences (a *cell*)

    p_t ≤ chord of exp(−h) over the range of h_t, with h_t ≥ its tangent plane at any point
    p_y = 1/S with S = Σ_s exp d_s ≤ Σ_s chord_s(d_s), so p_y ≥ 2/S₀ − S/S₀² ≥ 2/S₀ − Σ_s chord_s(d_s)/S₀² at any S₀ > 0

Both are linear in the logits: where their weighted sum is negative nothing is broken. A cell that an input meets
without breaking the mean is cut in two at that input; the conditions of the cut are rows of their own. Exact in the
limit of small cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.problem import Clause

Vector = NDArray[np.float64]
SLACK = 1e-9  # relative: far more than exp, log and sums of some hundred terms lose
STEEPEST = 300.0  # exponents beyond this are not chords any more: only their constant ends are used
NARROW = 1e-9


@dataclass(frozen=True, eq=False)
class Cell:
    """A box of logit differences for one target class: low[i, c, s] ≤ f_s − f_c of member i; `cut` were set by cuts."""

    target: int
    low: Vector  # (members, classes, classes)
    at: Vector  # (members, classes): logits near which the lines are tight
    cut: tuple[tuple[int, int, int], ...] = ()  # (i, c, s): f_s − f_c ≥ low[i, c, s] holds by choice, not everywhere

    def possible(self, weights: Sequence[float], label: int) -> bool:
        """Whether the ends of the box alone leave it open that the target ties."""
        gain = 0.0
        for weight, low in zip(weights, self.low):
            most, least = np.exp(-_log_sum(low[self.target])), np.exp(-_log_sum(-low[:, label]))
            gain += weight * (most - least)
        return bool(gain >= -SLACK * sum(weights))

    def clause(self, weights: Sequence[float], label: int, largest: float) -> Clause:
        """What every input of the cell meets at which the target at least ties; no logit is larger than `largest`."""
        members, classes = self.at.shape
        row, constant, size = np.zeros((members, classes)), 0.0, 1.0
        for i, weight in enumerate(weights):
            for slopes, offset, terms in (
                _over(self.low[i], self.target, self.at[i]),
                _under(self.low[i], label, self.at[i]),
            ):
                row[i] += weight * slopes
                constant += weight * offset
                size += weight * (terms + float(np.abs(slopes).sum()) * largest)
        rows, bounds = [-row.ravel()], [constant + SLACK * size]
        for i, c, s in self.cut:
            one = np.zeros((members, classes))
            one[i, c], one[i, s] = 1.0, -1.0
            rows.append(one.ravel())
            bounds.append(-self.low[i, c, s] + SLACK * (1.0 + largest))
        return Clause(np.stack(rows), np.array(bounds))

    def halves(self, weights: Sequence[float], label: int, logits: Vector) -> list[Cell]:
        """The cell cut where the lines are farthest from the truth at some logits that meet its clause."""
        best, where = -1.0, (0, label, self.target)
        for i, (weight, low, f) in enumerate(zip(weights, self.low, logits)):
            d = np.clip(f - f[label], low[label], -low[:, label])
            total, s = np.exp(np.minimum(d, STEEPEST)).sum(), 0
            lost = weight * (_chords(low[label], -low[:, label], d) - np.exp(np.minimum(d, STEEPEST))) / total**2
            s = int(np.argmax(lost))
            if lost[s] > best:
                best, where = float(lost[s]), (i, label, s)
            slopes, offset, _ = _over(low, self.target, f)
            over = weight * float(slopes @ f + offset - np.exp(-_log_sum(f - f[self.target])))
            if over > best:
                spread = np.exp(f - f.max()) * (-low[:, self.target] - low[self.target])
                best, where = over, (i, self.target, int(np.argmax(spread)))
        i, c, s = where
        low, high = float(self.low[i, c, s]), -float(self.low[i, s, c])
        value = float(np.clip(logits[i, s] - logits[i, c], 0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high))
        return [self._half(logits, (i, c, s), value), self._half(logits, (i, s, c), -value)]

    def _half(self, logits: Vector, where: tuple[int, int, int], value: float) -> Cell:
        low = self.low.copy()
        low[where] = value
        return Cell(self.target, low, logits, tuple(dict.fromkeys([*self.cut, where])))


def _over(low: Vector, c: int, f: Vector) -> tuple[Vector, float, float]:
    """A linear function of the logits above p_c in the box: slopes, offset, and the size of what was added up."""
    down, up = low[c], -low[:, c]
    least, most = _log_sum(down), _log_sum(up)
    d = np.clip(f - f[c], down, up)
    fall = (np.exp(-least) - np.exp(-most)) / (most - least) if most - least > NARROW else 0.0
    weights = np.exp(d - _log_sum(d))
    slopes = -fall * weights
    slopes[c] += fall  # d_s = f_s − f_c, and the weights add up to 1
    offset = float(np.exp(-least) - fall * (_log_sum(d) - weights @ d - least))
    return slopes, offset, float(np.exp(-least) + fall * (abs(_log_sum(d)) + weights @ np.abs(d) + abs(least)))


def _under(low: Vector, c: int, f: Vector) -> tuple[Vector, float, float]:
    """A linear function of the logits above −p_c in the box."""
    down, up = low[c], -low[:, c]
    if up.max() > STEEPEST:  # no line is of use there
        least = float(np.exp(-_log_sum(up)))
        return np.zeros_like(f), -least, least
    steep, offset = _chord(down, up)
    d = np.clip(f - f[c], down, up)
    total = float((steep * d + offset).sum())
    slopes = steep / total**2
    slopes[c] = -float(np.delete(slopes, c).sum())
    added = float(offset.sum()) / total**2
    size = float(np.abs(offset).sum()) / total**2
    return slopes, added - 2.0 / total, 2.0 / total + size


def _chord(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Slopes and offsets of lines above exp on [low, high]."""
    width = np.maximum(high - low, 0.0)
    ends = np.exp(low), np.exp(np.maximum(low, high))
    slope = np.where(width > NARROW, (ends[1] - ends[0]) / np.where(width > NARROW, width, 1.0), 0.0)
    return slope, np.maximum(ends[0] - slope * low, ends[1] - slope * high)


def _chords(low: Vector, high: Vector, d: Vector) -> Any:
    slope, offset = _chord(np.minimum(low, STEEPEST), np.minimum(high, STEEPEST))
    return slope * d + offset


def _log_sum(values: Vector) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))
