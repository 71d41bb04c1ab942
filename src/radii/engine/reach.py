"""Reach search: how large a quantity gets in a ball, by proving thresholds from above and climbing from below.

For a threshold θ "no row of the quantity reaches θ in the ball" is what a radius search decides for one ε, so the same
trees answer it, and the bounds of the ball serve every threshold. The first threshold lies just above the best witness;
if it is too dear, thresholds between it and what is proven are halved. At any moment [witnessed, proven] is valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from radii._torch import Tensor, torch
from radii.attacks.reach import Largest, judged, largest
from radii.bounds.bound import bound
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.engine.budget import Meter
from radii.engine.output_rows import OutputRows, lowered_outputs, spec_rows
from radii.engine.radius_search import RadiusSearch
from radii.engine.tuning import DEFAULT, Tuning
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, Reason
from radii.problem.quantity import Quantity

ENCLOSED = "rows only enclose this norm of the outputs: no tighter bound is provable by them"


@dataclass(eq=False)
class ReachSearch:
    """The search for one instance's reach in one ball; values are those of the quantity's greatest row."""

    classifier: Classifier
    instance: Instance
    quantity: Quantity
    norm: Norm
    epsilon: float
    tolerance: float
    meter: Meter
    start: float  # the quantity at the centre
    best: Largest | None = None
    proven: float = math.inf
    stopped: Reason | None = None
    seed: int = 0
    resolution: float = 0.0  # what float32 outputs cannot tell apart
    note: str = ""
    tuning: Tuning = DEFAULT
    # What rows that only enclose the quantity allow at some input: no threshold below it can be proven by them.
    vain: float = -math.inf
    _search: RadiusSearch | None = field(default=None, init=False)  # keeps the bounds of the balls

    @property
    def witnessed(self) -> float:
        """The largest value that a replayed input has."""
        return -math.inf if self.best is None else self.best.value

    @property
    def finished(self) -> bool:
        """Whether the ends are within the tolerance."""
        return self._near(self.witnessed)

    def _near(self, value: float) -> bool:
        """Whether what is proven is within the tolerance of a value."""
        return self.proven - value <= max(self.tolerance * abs(self.proven - self.start), self.resolution)

    def run(self) -> None:
        """Narrows the reach until it is closed or the budget is used up."""
        self._climb(None)
        if self.quantity.inside < 1.0:
            rows = replace(self.quantity, order=math.inf, inside=1.0)
            found = largest(self.classifier, self.instance.x, rows, self.norm, self.epsilon, seed=self.seed)
            self.vain = -math.inf if found is None else found.value / self.quantity.inside
        with proving():
            self.proven = self._root()
            self._narrow()
            # Float64 evaluates the witness up to its own last digits.
            if 0 < self.witnessed - self.proven <= 1e-9 * (abs(self.proven) + abs(self.start)):
                self.proven = self.witnessed
            self.stopped = None if self.finished else (self.meter.over or self.stopped or Reason.TIME)

    def _narrow(self) -> None:
        """Proves one threshold after the other, each with its share of the budget."""
        rule, failed = self.tuning.reaches, -math.inf
        share = rule.first_share
        while not self.finished and self.meter.over is None and 1.0 - self.meter.share > rule.least_share:
            if self._near(self.vain):
                self.stopped, self.note = Reason.INCOMPLETE, ENCLOSED
                break
            threshold = self._next(max(failed, self.witnessed, self.vain), math.isinf(failed))
            if threshold is None:
                break
            if self._prove(threshold, share):
                self.proven = min(self.proven, threshold)
            else:
                failed = max(failed, threshold)
                if self.proven - failed <= rule.tried * self.tolerance * abs(self.proven - self.start):
                    # No threshold is left in between: the rest of the budget goes to the one just above the witness.
                    failed = self.witnessed
                    share = 1.0
                    continue
            share = max(rule.step_share * (1.0 - self.meter.share), rule.least_share)

    def attacked(self) -> Largest | None:
        """The largest value that gradients find."""
        self._climb(None)
        return self.best

    def stays_below(self, threshold: float) -> bool:
        """Whether the quantity stays below one threshold in the whole ball."""
        self._climb(None)
        if self.witnessed >= threshold:
            return False
        with proving():
            self.proven = self._root()
            if self.proven < threshold:
                return True
            return math.isfinite(self.proven) and self._prove(threshold, 1.0)

    def _next(self, low: float, first: bool) -> float | None:
        """The next threshold: just above the best witness, then halfway to what is proven."""
        if math.isinf(low):
            low = self.start
        near = low + self.tuning.reaches.near * self.tolerance * abs(self.proven - self.start)
        threshold = near if first else 0.5 * (low + self.proven)
        if math.isinf(threshold) or not threshold < self.proven:
            return None
        return max(threshold, min(near, self.proven))

    def rows(self, threshold: float) -> OutputRows:
        """What must stay positive for the quantity to stay below a threshold."""
        return spec_rows(self.classifier, self.quantity.exceeding(threshold))

    def region(self, size: float) -> Region:
        """The ball of a size around the instance."""
        return Region.of_input(self.instance, size, self.norm, self.classifier.domain)

    def _root(self) -> float:
        """The quantity's greatest value by linear bounds alone."""
        # The outputs themselves: rows of one threshold may leave out what cut outputs cannot reach.
        rows, offsets = torch.tensor(-self.quantity.coefficients), torch.tensor(self.quantity.offsets)
        region = self.region(self.epsilon)
        bounded = bound(lowered_outputs(self.classifier), region, tuning=self.tuning.bounds)
        a, c = bounded.best_margins(rows[None])
        least = region.lowest(a, c - offsets)[0]
        self.meter.nodes += len(rows)
        top = float((-least).max()) if len(least) else -math.inf
        return max(top, self.start) / self.quantity.inside if math.isfinite(top) else math.inf

    def _prove(self, threshold: float, share: float) -> bool:
        """Whether no value of the ball reaches a threshold, within a share of the budget."""
        return self._decide(self.rows(threshold), self.epsilon, threshold, share)

    def _decide(self, rows: OutputRows, size: float, threshold: float, share: float, nodes: int | None = None) -> bool:
        """Whether rows stay positive in the ball of a size; leaves them when a point reaches the threshold."""
        if not len(rows.rows):
            return True
        meter = self.meter.part(share, nodes)
        search = self._search
        if search is None or search.margins.graph is not rows.graph:
            strike = self._strike(threshold)
            search = RadiusSearch(rows, self.region, 1e-12, meter, strike, limit=size, tuning=self.tuning)
            self._search = search
        search.again(rows, meter, self._strike(threshold), size)
        search.decide(size)
        self.meter.take(meter)
        self.stopped = search.stopped
        return search.proven and search.lower >= size and self.witnessed < threshold

    def _strike(self, threshold: float) -> Callable[[Tensor], float | None]:
        """What a tree tells its minimisers to: a distance of 0 once the threshold is reached, so that it ends."""

        def attack(points: Tensor) -> float | None:
            self._climb(points)
            return 0.0 if self.witnessed >= threshold else None

        return attack

    def _climb(self, points: Tensor | None) -> None:
        """Looks for larger values: by gradients, or among the points that a tree proposes."""
        if points is None:
            found = largest(self.classifier, self.instance.x, self.quantity, self.norm, self.epsilon, seed=self.seed)
        else:
            found = judged(self.classifier, self.instance.x, self.quantity, self.norm, self.epsilon, points)
        if found is not None and found.value > self.witnessed:
            self.best = found
