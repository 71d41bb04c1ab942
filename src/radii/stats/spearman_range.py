"""How far Spearman's correlation may lie from what is seen if radii are known as intervals only.

Write a centred rank as half the sum of signs: ρᵢ = ½ Σⱼ sgn(xᵢ − xⱼ). A sign is known where one interval ends before
the other begins; the known ones give aᵢ, the others, Oᵢ of them, leave |ρᵢ − aᵢ| ≤ ½ Oᵢ. With σ and b for the second
network, Σ ρσ = Σ ab + Σ (ρ−a) b + Σ a (σ−b) + Σ (ρ−a)(σ−b). The two linear parts are at most half the sum of
|bᵢ − bⱼ| over pairs of unknown order (each pair at its worst), the last one at most ¼ Σ OᵢPᵢ and, by Cauchy and
Schwarz, the root of the two sums of squares. The exact range is a scheduling problem with precedences, for which no
fast method is known; this one always encloses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radii.stats._arrays import Ends, FloatArray, IntArray

_CHUNK = 256


@dataclass(frozen=True)
class Order:
    """What intervals tell of n ranks: `centre` ± `reach` encloses each centred rank, `squares` is the sum of squares.

    Radii known as intervals are taken to be all different; equal exact radii share a rank. `steps` is the order of
    events: -1 - i for the lower end of input i, i for its upper end; i is surely below j if i comes before -1 - j.
    """

    centre: FloatArray
    reach: FloatArray
    squares: float
    steps: IntArray

    @property
    def spread(self) -> float:
        """The largest sum of squares of how far the true ranks can be from the centre."""
        return max(self.squares - float(self.centre @ self.centre) + self.unknown(self.centre), 0.0)

    def unknown(self, weight: FloatArray) -> float:
        """The sum of |wᵢ − wⱼ| over pairs of inputs whose order is not known."""
        n = weight.size
        every = float(np.sort(weight) @ (2.0 * np.arange(n) - n + 1))
        return max(every - _known(self.steps, weight), 0.0)


def order(ends: Ends) -> Order:
    """The order that intervals tell."""
    low, high = ends.radii()
    n = low.size
    below, above = np.searchsorted(np.sort(high), low, side="right"), n - np.searchsorted(np.sort(low), high)
    exact = low == high
    _, group, size = np.unique(np.where(exact, low, -1.0 - np.arange(n)), return_inverse=True, return_counts=True)
    ties = np.where(exact, size[group], -1)  # equal exact radii count on both sides
    reach = (n - below - above + ties) / 2.0
    squares = (n**3 - n - float(np.sum(size**3 - size))) / 12.0
    rows = np.arange(n)
    kind = np.concatenate([np.where(exact, 1, 2), np.where(exact, 1, 0)])  # upper ends go before lower ends
    values, who = np.concatenate([low, high]), np.concatenate([rows, rows])
    late = np.repeat([0, 1], n)
    steps = np.concatenate([-1 - rows, rows])[np.lexsort((late, who, kind, values))]
    return Order((below - above) / 2.0, reach, squares, steps)


def _known(steps: IntArray, weight: FloatArray) -> float:
    """The sum of |wᵢ − wⱼ| over pairs with i surely below j (equal exact radii count once)."""
    total, seen, sums = 0.0, np.empty(0), np.zeros(1)
    for start in range(0, steps.size, _CHUNK):
        part = steps[start : start + _CHUNK]
        arrived, asked = np.flatnonzero(part >= 0), np.flatnonzero(part < 0)
        new, old = weight[part[arrived]], weight[-1 - part[asked]]
        under = np.searchsorted(seen, old)
        total += float(np.sum(old * (2.0 * under - seen.size) + sums[-1] - 2.0 * sums[under]))
        total += float(np.sum(np.abs(old[:, None] - new) * (arrived < asked[:, None])))
        seen = np.sort(np.concatenate([seen, new]), kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(seen)])
    return total


def spearman_range(first: Ends, second: Ends) -> tuple[float, float]:
    """An interval that holds Spearman's correlation of the true radii wherever they lie in their intervals."""
    x, y = order(first), order(second)
    middle = float(x.centre @ y.centre)
    rest = min(float(x.reach @ y.reach), float(np.sqrt(x.spread * y.spread)))
    slack = (x.unknown(y.centre) + y.unknown(x.centre)) / 2.0 + rest
    both, scale = (x.squares + y.squares) / 2.0, float(np.sqrt(x.squares * y.squares))
    reach = x.reach + y.reach
    apart = np.maximum(np.abs(x.centre - y.centre) - reach, 0.0)  # Σ ρσ = ½ Σ (ρ² + σ²) − ½ Σ (ρ − σ)²
    joint = np.maximum(np.abs(x.centre + y.centre) - reach, 0.0)  # and ½ Σ (ρ + σ)² − ½ Σ (ρ² + σ²)
    low = max(middle - slack, float(joint @ joint) / 2.0 - both)
    high = min(middle + slack, both - float(apart @ apart) / 2.0)
    return max(low / scale, -1.0), min(high / scale, 1.0)
