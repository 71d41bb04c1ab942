"""MipRadius: one radius by minimising ε with mixed-integer programs (MIPVerify's way), valid whenever it is stopped.

1. Bounds alone give the first `lower`. 2. Balls of doubling size are decided until one is broken: its witness is
`upper`, and big-M bounds are computed on that small ball only. 3. For each clause, ε is minimised within the ball; the
solver's dual bound, less its safety, bounds the radius from below. 4. A decision just above `lower` finds a closer
witness.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from radii._check import number
from radii._torch import torch
from radii.decide import Budget, Clock, replay, violation
from radii.errors import InputError
from radii.logit_query import LogitQuery, Region, logit_query
from radii.models.classifier import Classifier
from radii.problem import Answer, Clause, Query, Radius, Tolerance, Verdict, Witness
from radii.problem.radius import Cost
from radii.problem.tolerance import closing_gap, tolerance_of
from radii.verifiers._mip_model import least_epsilon, least_margin
from radii.verifiers.encode import unsupported

if TYPE_CHECKING:
    from radii.verifiers.milp import Milp, MipDecision


class MipRadius:
    """The search for one radius: the interval so far and what is left of the budget."""

    def __init__(
        self,
        milp: Milp,
        classifier: Classifier,
        query: Query,
        budget: Budget,
        tolerance: Tolerance,
        limit: float | None,
    ) -> None:
        self.milp, self.classifier, self.query, self.budget = milp, classifier, query, budget
        self.tolerance = tolerance_of(tolerance)
        self.limit = limit
        self.top = _reach(classifier, query, limit)
        self.clock, self.nodes, self.queries = Clock(), 0, 0
        self.lower: float | None = None
        self.witness: Witness | None = None
        self.note = ""
        # With one target, an input that the network gives to a third class is measured all the same.
        self.prediction = int(np.argmax(classifier.reference(query.instance.x[None])[0]))

    def run(self) -> Radius:
        """The radius."""
        asked = self._asked(self.top)
        if asked.obstacle:
            return Radius(tolerance=self.tolerance, limit=self.limit, note=asked.obstacle, cost=self._cost())
        already = replay(self.classifier, self._at(0.0), self.query.instance.x)
        if already is not None:
            return Radius.wrong(already.prediction, already, self._cost())
        self._bounds_alone()
        self._climb()
        for _ in range(3):
            if self._done() or self._left() <= 0 or not self._minimise() or not self._approach():
                break
        return self.radius()

    def radius(self) -> Radius:
        """What is known by now."""
        if self.lower is not None and self.lower >= self.top and self.limit is not None:
            self.lower = max(self.lower, self.limit)  # a larger ball holds nothing more of the domain
        upper = None if self.witness is None else self.witness.distance
        return Radius.found(
            self.lower,
            upper,
            tolerance=self.tolerance,
            limit=self.limit,
            witness=self.witness,
            proof=None if self.lower is None else self.milp.proof,
            prediction=self.prediction,
            cost=self._cost(),
            note=self.note,
        )

    def _bounds_alone(self) -> None:
        """The largest ε, to a per cent or so, that bounds prove without a solver."""
        good, bad = 0.0, self.top
        for _ in range(12):
            if self._left() <= 0 or (good > 0 and bad - good <= max(closing_gap(self.tolerance, bad) / 4, 0.05 * good)):
                break
            middle = bad / 8 if good == 0 else (good + bad) / 2
            deciding = self._decision(middle)
            if not deciding.prepare() and not deciding.open:
                good = middle
            else:
                bad = middle
        self._raise(good if good > 0 else None)

    def _climb(self) -> None:
        """Decides balls of doubling size until one is broken, the limit is proven or time is short."""
        size = self.lower or self.top / 64
        while self.witness is None and self._left() > 0 and (self.lower or 0.0) < self.top:
            size = min(2 * size, self.top)
            answer = self._decide(size, 0.5)
            if answer.verdict is Verdict.ROBUST:
                self._raise(size)
            elif answer.verdict is Verdict.UNKNOWN:
                self.note = answer.detail
                return

    def _minimise(self) -> bool:
        """Minimises ε for each clause within the smallest ball known to be broken; whether every clause was handled."""
        size = self.top if self.witness is None else self.witness.distance
        deciding = self._decision(size)
        if deciding.prepare():
            return False
        lows = [
            self._clause(deciding, clause, size, 1 / (len(deciding.open) - i)) for i, clause in enumerate(deciding.open)
        ]
        self.nodes += deciding.nodes
        if any(low is None for low in lows):
            return False
        # Clauses that bounds ruled out cannot be violated in the ball; a proven radius is strictly below a witness.
        ceiling = size if self.witness is None else math.nextafter(min(size, self.witness.distance), 0.0)
        self._raise(min([ceiling, *(low for low in lows if low is not None)]))
        return True

    def _clause(self, deciding: MipDecision, clause: Clause, size: float, share: float) -> float | None:
        from radii.verifiers.milp import safety

        assert deciding.encoding is not None
        mip = least_epsilon(deciding.encoding, deciding.query.region, clause)
        spare = safety(mip)

        def stop(bound: float, x: Any) -> bool:
            if x is not None:
                self._push(x)
            best = size if self.witness is None else self.witness.distance
            return bound - spare >= best - closing_gap(self.tolerance, best) / 2

        solved = deciding.solve(mip, stop, share)
        if solved.x is not None:
            self._push(solved.x)
        if solved.end == "infeasible":
            # "No such input" is the one word of a solver that has no number to be careful with: ask for a margin.
            margin = least_margin(deciding.encoding, deciding.query.region, clause)
            enough = safety(margin)
            return size if deciding.solve(margin, lambda b, _: b > enough, share).bound > enough else self.lower
        low = solved.bound - spare
        return max(low, self.lower or 0.0) if math.isfinite(low) and low > 0 else self.lower

    def _approach(self) -> bool:
        """Looks for a witness just above `lower`, where the minimiser sits on the boundary itself."""
        if self._done() or self._left() <= 0 or self.lower is None:
            return False
        size = min(self.lower + 0.9 * closing_gap(self.tolerance, self.lower), self.top)
        before = self.lower
        answer = self._decide(size, 0.7)
        if answer.verdict is Verdict.ROBUST:
            self._raise(size)
        return self.lower > before

    def _decide(self, size: float, share: float) -> Answer:
        self.queries += 1
        seconds = None if self.budget.seconds is None else max(share * self._left(), 1e-3)
        answer = self.milp.answer(
            logit_query(self.classifier, self._at(size), ("linf", "l1"), unsupported),
            replace(self.budget, seconds=seconds),
        )
        self.nodes += answer.nodes
        if answer.witness is not None:
            self._keep(answer.witness)
        return answer

    def _push(self, x: Any) -> None:
        """Tries the solver's point and points a little further out, where rounding does not undo the violation."""
        center = self.query.instance.x.astype(np.float64).ravel()
        query = self._at(self.top)
        region = Region.ball(query, self.classifier.domain)
        for factor in (1.0, 1 + 1e-5, 1 + 1e-4, 1 + 1e-3, 1 + 1e-2):
            nearer = region.settle(center + (np.asarray(x) - center) * factor, self.classifier.dtype)
            found = replay(self.classifier, query, nearer)
            if found is not None:
                self._keep(found)
                return

    def _keep(self, witness: Witness) -> None:
        if self.witness is None or witness.distance < self.witness.distance:
            self.witness = witness
            if self.lower is not None and witness.distance <= self.lower and not self._real(witness):
                # Float32 rounding breaks it just inside what is proven over the reals: report what holds for both.
                self.lower = math.nextafter(witness.distance, 0.0) if witness.distance > 0 else None

    def _real(self, witness: Witness) -> bool:
        """Whether the witness violates the property in float64 as well; if so, a proof above it would be wrong."""
        at = torch.from_numpy(np.stack([self.query.instance.x, witness.x]).astype(np.float64))
        logits = self.classifier.logits(at).numpy()
        spec = violation(self.classifier, self.query.property, self.query.instance.label, logits[0])
        return spec.violated(logits[1], witness.distance)

    def _raise(self, value: float | None) -> None:
        if value is not None and (self.lower is None or value > self.lower):
            self.lower = value

    def _decision(self, size: float) -> MipDecision:
        from radii.verifiers.milp import MipDecision

        seconds = None if self.budget.seconds is None else max(self._left(), 1e-3)
        return MipDecision(self.milp.solver, self._asked(size), replace(self.budget, seconds=seconds))

    def _asked(self, size: float) -> LogitQuery:
        return logit_query(self.classifier, self._at(size), ("linf", "l1"), unsupported)

    def _at(self, size: float) -> Query:
        return replace(self.query, epsilon=size)

    def _left(self) -> float:
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.clock.cpu

    def _done(self) -> bool:
        low = self.lower or 0.0
        if self.witness is None:
            return low >= self.top
        return self.witness.distance - low <= closing_gap(self.tolerance, self.witness.distance)

    def _cost(self) -> Cost:
        timeouts = int(bool(self.note) and self._left() <= 0)
        return Cost(
            queries=self.queries,
            timeouts=timeouts,
            nodes=self.nodes,
            cpu_seconds=self.clock.cpu,
            wall_seconds=self.clock.wall,
        )


def _reach(classifier: Classifier, query: Query, limit: float | None) -> float:
    """The largest ε that needs asking: the limit, or where the ball holds the whole domain."""
    whole = classifier.domain.farthest(query.instance.x, query.norm)
    if limit is not None:
        return min(number(limit, "limit", low=0.0, strict=True), whole) if math.isfinite(whole) else limit
    if not math.isfinite(whole):
        raise InputError("measure: expected a limit, since the domain is unbounded; give the largest ε to look at")
    return whole
