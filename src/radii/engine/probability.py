"""Probabilities: thresholds of softmax outputs in a ball, by linear rows over differences of logits.

With d_t = f_t − f_i the probability of class i is 1 / (1 + Σ exp d_t), so it reaches c where Σ exp d_t = B = 1/c − 1.

    p_i rises to c    Σ exp d_t ≤ B: a convex set. For any q in the simplex log Σ exp d_t ≥ Σ q_t d_t + H(q) (Jensen),
                      so Σ q_t d_t + H(q) > log B excludes it; several q make a conjunction: one row must hold.
    p_i falls to c    Σ exp d_t ≥ B: its complement is convex. With e_t = f_t − m for some m it is
                      m − f_i + log Σ exp e_t ≥ log B. On a box l ≤ e ≤ u every exponential lies under its chord and
                      the logarithm under its tangent at any S > 0, so m − f_i + log S − 1 + Σ chord_t(e_t) / S < log B
                      excludes it; boxes that stay open are split, each half with its own end as one more row of the
                      conjunction. In small balls m is a mean Σ π_t f_t of the other classes' logits: outputs that move
                      together leave the e_t as they are. In wide ones m is the largest of them, one case for each
                      class k that may be: there e_t ≤ 0 are further rows, and no exponential is above 1.

Exact in the limit of many q and small boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.bounds.bound import bound
from radii.bounds.intermediate import Root
from radii.bounds.intermediate_curves import Relaxed
from radii.engine.maxima import searchable
from radii.engine.output_rows import OutputRows, lowered_outputs
from radii.engine.reach import ReachSearch
from radii.engine.tuning import Probabilities
from radii.problem.spec import Clause

Vector = NDArray[np.float64]
SLACK = 1e-12  # more than exp, log and sums of some hundred terms lose, relative to their size


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box of logit differences, and which of its ends a split has set (these are conditions of their own)."""

    low: Vector
    high: Vector
    below: tuple[int, ...] = ()  # d_t ≤ high_t was set by a split
    above: tuple[int, ...] = ()  # d_t ≥ low_t was set by a split


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What the logits of all classes but i are measured from: a mean m of them, or the largest."""

    rows: Vector  # f_t − m of every class t but i
    lead: Vector  # m − f_i
    usual: Vector  # f_t − m at the witness, moved into the box
    box: Box

    @staticmethod
    def mean(i: int, logits: Vector, spread: Callable[[Vector], tuple[Vector, Vector]]) -> Frame:
        """A mean with the weights that the softmax has there: it moves as the logarithm of their sum does."""
        unit = np.eye(len(logits))
        weights = np.insert(_weights(np.delete(logits, i)), i, 0.0)
        rows = np.delete(unit - weights, i, axis=0)
        low, high = spread(rows)
        return Frame(rows, weights - unit[i], np.clip(rows @ logits, low, high), Box(low, high))

    @staticmethod
    def top(i: int, k: int, logits: Vector, ends: tuple[Vector, Vector]) -> Frame:
        """The case that class k is the largest, with proven ends of f_t − f_k for every class t but k."""
        low, high = (np.delete(np.insert(end, k, 0.0), i) for end in ends)
        unit = np.eye(len(logits))
        rows = np.delete(unit - unit[k], i, axis=0)
        box = Box(low, np.minimum(high, 0.0), tuple(np.flatnonzero(high > 0).tolist()))
        return Frame(rows, unit[k] - unit[i], np.clip(rows @ logits, low, box.high), box)

    @property
    def loss(self) -> float:
        """What chords over the whole box add to the logarithm of the sum at the witness."""
        slope, offset = _chord(self.box.low, self.box.high)
        return math.log(float((slope * self.usual + offset).sum()) / float(np.exp(self.usual).sum()))


@dataclass(eq=False)
class ProbabilitySearch(ReachSearch):
    """The search for the reach of a quantity of probabilities; its rows name one class each."""

    def _root(self) -> float:
        """The quantity's greatest value when every logit difference takes its worst end."""
        worst = self.start
        for row, offset in zip(self.quantity.coefficients, self.quantity.offsets, strict=True):
            i = int(np.flatnonzero(row)[0])
            low, high = self._ends(i)
            extreme = 1.0 / (1.0 + np.exp(low if row[i] > 0 else high).sum())
            worst = max(worst, float(row[i] * extreme * (1.0 + math.copysign(SLACK, row[i])) + offset))
        return worst

    def _ends(self, i: int) -> tuple[Vector, Vector]:
        """Proven ends of f_t − f_i for every other class t, in their order."""
        if i not in self._differences:
            self._differences[i] = self._spread(_differences(self.classifier.classes, i))
        return self._differences[i]

    def _spread(self, weights: Vector) -> tuple[Vector, Vector]:
        """Proven ends of some rows of outputs in the ball."""
        region, rows = self.region(self.epsilon), torch.from_numpy(weights)
        both = torch.cat([rows, -rows])
        a, c = self._bounded.best_margins(both[None])
        least = region.lowest(a, c)[0].numpy()
        self.meter.nodes += len(both)
        return least[: len(rows)], -least[len(rows) :]

    @cached_property
    def _bounded(self) -> Root | Relaxed:
        """The bounds of the ball."""
        return bound(lowered_outputs(self.classifier), self.region(self.epsilon), tuning=self.tuning.bounds)

    @cached_property
    def _largest(self) -> float:
        """No logit of the ball is larger in size."""
        return float(np.abs(np.concatenate(self._spread(np.eye(self.classifier.classes)))).max())

    def __post_init__(self) -> None:
        self._asked: Clause | None = None
        self._met: Vector | None = None  # outputs that meet the clause asked last
        self._differences: dict[int, tuple[Vector, Vector]] = {}
        self._chosen: dict[int, list[Frame]] = {}

    def _prove(self, threshold: float, share: float) -> bool:
        """Whether no probability reaches its end of the threshold, one class and direction after the other."""
        until = self.meter.share + share
        for row, offset in zip(self.quantity.coefficients, self.quantity.offsets, strict=True):
            i, rises = int(np.flatnonzero(row)[0]), bool(row.max() > 0)
            end = threshold - offset if rises else offset - threshold
            if (rises and end >= 1.0) or (not rises and end <= 0.0):
                continue  # no probability gets there
            if (rises and end <= 0.0) or (not rises and end >= 1.0):
                return False
            total = 1.0 / end - 1.0
            done = self._rise(i, total, threshold, until) if rises else self._fall(i, total, threshold, until)
            if not done:
                return False
        return True

    def _rise(self, i: int, total: float, threshold: float, until: float) -> bool:
        low, _ = self._ends(i)
        if np.exp(low).sum() * (1.0 - SLACK) > total:
            return True
        rows, bounds = zip(*(_tangent(q, total) for q in self._mixes(i)), strict=True)
        differences = _differences(self.classifier.classes, i)
        # Robust where one of the tangents is above log B: violated where none is.
        size = np.abs(np.concatenate(self._ends(i))).max()
        clause = Clause(np.stack(rows) @ differences, np.array(bounds) + SLACK * (1.0 + size))
        return self._clause(clause, threshold, until - self.meter.share)

    def _mixes(self, i: int) -> list[Vector]:
        """Weights q of the tangents: where the attack got p_i highest, and where every difference is least."""
        differences, mixes = _differences(self.classifier.classes, i), []
        if self.best is not None:
            logits = self.classifier.logits(torch.from_numpy(self.best.point[None])).detach().double().numpy()[0]
            mixes.append(_weights(differences @ logits))
        mixes.append(_weights(self._ends(i)[0]))
        return mixes

    def _fall(self, i: int, total: float, threshold: float, until: float) -> bool:
        highest = np.insert(self._ends(i)[1], i, -np.inf)
        if np.exp(highest).sum() * (1.0 + SLACK) < total:
            return True
        return all(self._case(frame, total, threshold, until) for frame in self._frames(i, highest))

    def _frames(self, i: int, highest: Vector) -> list[Frame]:
        """The mean alone, or one case for every class that may be the largest: what loses less at the witness."""
        if i not in self._chosen:
            point = self.instance.x if self.best is None else self.best.point
            logits = self.classifier.logits(torch.from_numpy(point[None])).detach().double().numpy()[0]
            mean = Frame.mean(i, logits, self._spread)
            order = [int(k) for k in np.argsort(-highest) if k != i]
            tops = [Frame.top(i, k, logits, self._ends(k)) for k in order]
            tops = [top for top in tops if not (top.box.low > 0).any()]  # another class is always larger
            first = max(tops, key=lambda top: float(top.lead @ logits))
            self._chosen[i] = [mean] if mean.loss <= first.loss else tops
        return self._chosen[i]

    def _case(self, frame: Frame, total: float, threshold: float, until: float) -> bool:
        """Whether p_i does not fall so low in the box of a frame."""
        boxes, cut, rule = [frame.box], 0, self.tuning.probabilities
        while boxes:
            box = boxes.pop()
            left = until - self.meter.share
            if left <= 0 or self.meter.over is not None:
                return False
            if self._clause(self._chords(frame, box, total), threshold, rule.box_share * left):
                continue
            halves = _halves(box, None if self._met is None else frame.rows @ self._met, rule)
            if cut >= rule.splits or self.witnessed >= threshold or not halves:
                return False
            cut += 1
            boxes += halves
        return True

    def _chords(self, frame: Frame, box: Box, total: float) -> Clause:
        """What an input of the box must meet for p_i to fall so low: the bound reaches log B, and the set ends."""
        slope, offset = _chord(box.low, box.high)
        at = float(slope @ np.clip(frame.usual, box.low, box.high) + offset.sum())
        size = (np.abs(slope) @ np.maximum(np.abs(box.low), np.abs(box.high)) + offset.sum()) / at
        bound = offset.sum() / at + math.log(at) - 1.0 - math.log(total)
        rows = [-(slope @ frame.rows) / at - frame.lead]
        bounds = [bound + SLACK * (2.0 + size + abs(math.log(at)) + abs(math.log(total)))]
        for t in box.below:
            rows.append(frame.rows[t])
            bounds.append(box.high[t])
        for t in box.above:
            rows.append(-frame.rows[t])
            bounds.append(-box.low[t])
        return Clause(np.stack(rows), np.array(bounds))

    def _clause(self, clause: Clause, threshold: float, share: float) -> bool:
        """Whether no input of the ball meets a clause."""
        # Coefficients were rounded, and they multiply logits that may be large themselves.
        rounding = SLACK * (1.0 + np.abs(clause.coefficients).sum(1)) * self._largest
        rows, shift = torch.from_numpy(clause.coefficients), torch.from_numpy(clause.bounds + rounding)
        members = torch.arange(len(rows))[None] if len(rows) > 1 else None
        asked = searchable(OutputRows(lowered_outputs(self.classifier), rows, shift, members))
        self._asked, self._met = clause, None
        return self._decide(asked, self.epsilon, threshold, share)

    def _strike(self, threshold: float) -> Callable[[Tensor], float | None]:
        """What a tree tells its minimisers to; it ends, too, when an input meets the clause without such a value."""
        reached = super()._strike(threshold)

        def attack(points: Tensor) -> float | None:
            found = reached(points)
            if found is None and self._asked is not None:
                with torch.no_grad():
                    logits = self.classifier.logits(points.to(self.classifier.torch_dtype)).double().numpy()
                above = logits @ self._asked.coefficients.T - self._asked.bounds
                deepest = int(above.max(1).argmin())
                if above[deepest].max() < 0.0:
                    self._met, found = logits[deepest], 0.0
            return found

        return attack


def _differences(classes: int, i: int) -> Vector:
    """Rows f_t − f_i for every class t but i."""
    rows = np.eye(classes)
    rows[:, i] -= 1.0
    return np.delete(rows, i, axis=0)


def _weights(d: Vector) -> Vector:
    powers = np.exp(d - d.max())
    return np.asarray(powers / powers.sum())


def _tangent(q: Vector, total: float) -> tuple[Vector, float]:
    """The row and the bound of "Σ q_t d_t + H(q) ≤ log B"."""
    entropy = -float(np.sum(np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)))
    return q, math.log(total) - entropy + SLACK * (1.0 + abs(math.log(total)) + entropy)


def _chord(low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Slopes and offsets of lines above exp on [low, high]."""
    width = high - low
    down, up = np.exp(low), np.exp(high) * (1.0 + SLACK)
    slope = np.where(width > 1e-9, (up - down) / np.where(width > 1e-9, width, 1.0), up)
    return slope, np.maximum(down - slope * low, up - slope * high) + SLACK * (up + np.abs(slope * high))


def _halves(box: Box, met: Vector | None, rule: Probabilities) -> list[Box]:
    """The box cut along the difference that loses most by its chord: where an input met the bound, else in general.

    The cut is where the input is, or above it where exponentials no longer count: one half then has no loss at the
    input, and the other holds only inputs where this class counts. Empty where no chord loses anything.
    """
    slope, offset = _chord(box.low, box.high)
    middle = np.clip(np.log(np.maximum(slope, 1e-300)), box.low, box.high)  # where a chord is farthest off
    at = middle if met is None else np.clip(met, box.low, box.high)
    sizes = np.exp(at)
    t = int(np.argmax(slope * at + offset - sizes))
    if slope[t] * at[t] + offset[t] - sizes[t] <= rule.exact * sizes.sum():
        return []
    least, most = (rule.edge * float(end[t]) + (1.0 - rule.edge) * float(middle[t]) for end in (box.low, box.high))
    cut = min(max(float(at[t]), math.log(rule.small * float(sizes.sum())), least), most)
    high, low = box.high.copy(), box.low.copy()
    high[t] = low[t] = cut
    lower = Box(box.low, high, tuple(sorted({*box.below, t})), box.above)
    upper = Box(low, box.high, box.below, tuple(sorted({*box.above, t})))
    return [lower, upper]
