"""The monolithic MILP of Gross et al. (2021): |A| attacks on all points and their probabilities in one program.

Every attack on every point has a copy of all networks (big-M ReLUs, see `verifiers/_mip_model.py`). With a binary ℓ for
"member c is fooled" the label's lead over another class is at most M·(1 − ℓ); ℓ may stay 0 where the member is fooled,
which no attacker wants, so one direction of the paper's equation 8 is enough. The product w = p·ℓ is its big-M trick
with the least constants: w ≤ p, w ≤ ℓ, w ≥ p + ℓ − 1. Each real attack is feasible, so bounds of the solver are bounds
of the game; equation 4 carries a slack where α is asked, so that "robust" rests on a number and not on a word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.decide import Clock
from radii.ensembles.attack import Attack
from radii.ensembles.encoded import Asked, Encoded
from radii.ensembles.game import ROUNDING
from radii.logit_query import Region
from radii.problem.answer import Reason

Vector = NDArray[np.float64]
_REASONS = {"time": Reason.TIME, "nodes": Reason.TIME, "memory": Reason.MEMORY, "error": Reason.ERROR}


@dataclass
class _Columns:
    """Columns and rows that are added to the copies of the networks."""

    first: int
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    terms: list[list[tuple[int, float]]] = field(default_factory=list)
    row_low: list[float] = field(default_factory=list)
    row_high: list[float] = field(default_factory=list)

    def column(self, low: float, high: float, whole: bool = False) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return self.first + len(self.low) - 1

    def row(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        self.terms.append(terms)
        self.row_low.append(low)
        self.row_high.append(high)

    def matrix(self) -> Any:
        import scipy

        place = np.repeat(np.arange(len(self.terms)), [len(one) for one in self.terms])
        flat = [term for one in self.terms for term in one]
        columns, values = np.array([c for c, _ in flat]), np.array([v for _, v in flat])
        return scipy.sparse.csr_array((values, (place, columns)), shape=(len(self.terms), self.first + len(self.low)))


@dataclass(frozen=True, eq=False)
class Program:
    """The program, where the inputs of each attack and point start in it, and the columns of the probabilities."""

    mip: Any
    starts: tuple[tuple[int, ...], ...]
    size: int
    chances: tuple[int, ...]
    goal: tuple[int, ...]  # columns that are summed up or, a single one, the value or the slack

    def attack(self, asked: Asked, solution: Any) -> Attack:
        """The attack of a solution, replayed."""
        inputs = [[solution[at : at + self.size] for at in row] for row in self.starts]
        return asked.replay(inputs, np.asarray(solution)[list(self.chances)])


def program(asked: Asked, objective: str | None = None) -> Program:
    """The program of the form's objective, or of another one."""
    import scipy

    from radii.verifiers._mip_model import Mip, network
    from radii.verifiers.encode import encode

    form, points, members = asked.form, len(asked.instances), len(asked.members)
    wanted = objective or form.objective
    graph = asked.merged.graph
    encodings = [encode(graph, region.low, region.high, _tighten(form.bounds, region)) for region in asked.regions]
    parts = [network(one, region) for one, region in zip(encodings, asked.regions)]
    starts, width = [], 0
    for _ in range(form.attacks):
        starts.append(tuple(width + int(v) for v in np.cumsum([0, *(part.low.size for part in parts[:-1])])))
        width += sum(part.low.size for part in parts)
    added = _Columns(width)
    chances = tuple(added.column(0.0, 1.0) for _ in range(form.attacks))
    added.row([(p, 1.0) for p in chances], 1.0, 1.0)  # equation 6; 7 is their lower bound
    leads = [_leads(asked, encoding, j) for j, encoding in enumerate(encodings)]
    losses: list[list[int]] = [[] for _ in range(members)]
    for i, p in enumerate(chances):
        for j, encoding in enumerate(encodings):
            for c in range(members):
                loss = _loss(added, asked, encoding, starts[i][j], j, c, leads[j][c])
                if loss is not None:
                    losses[c].append(_product(added, p, loss))
    goal: tuple[int, ...] = tuple(w for each in losses for w in each)
    if wanted == "value":
        goal = (added.column(0.0, 1.0),)
        for each in losses:
            added.row([(goal[0], -float(points)), *((w, 1.0) for w in each)], 0.0, math.inf)
    elif wanted == "check":
        assert form.alpha is not None
        goal = (added.column(0.0, form.alpha),)
        for each in losses:
            added.row([(goal[0], float(points)), *((w, 1.0) for w in each)], form.alpha * points - 1e-12, math.inf)
    elif form.alpha is not None:
        for each in losses:
            added.row([(chances[0], 0.0), *((w, 1.0) for w in each)], form.alpha * points - 1e-12, math.inf)
    total = width + len(added.low)
    cost = np.zeros(total)
    cost[list(goal)] = 1.0 if wanted == "check" else -1.0
    inner = scipy.sparse.block_diag([part.rows for _ in range(form.attacks) for part in parts], format="csr")
    inner.resize((inner.shape[0], total))
    mip = Mip(
        cost,
        np.concatenate([*(part.low for _ in chances for part in parts), added.low]),
        np.concatenate([*(part.high for _ in chances for part in parts), added.high]),
        np.concatenate([*(part.integer for _ in chances for part in parts), np.array(added.whole, dtype=bool)]),
        scipy.sparse.csr_array(scipy.sparse.vstack([inner, added.matrix()])),
        np.concatenate([*(part.row_low for _ in chances for part in parts), added.row_low]),
        np.concatenate([*(part.row_high for _ in chances for part in parts), added.row_high]),
        total,
    )
    return Program(mip, tuple(starts), asked.merged.size, chances, goal)


def _tighten(bounds: str, region: Region) -> Any:
    """What gives the layers of an encoding their bounds; None: intervals."""
    from radii.verifiers._relax import crown, over

    return crown(over(region)) if bounds == "crown" else _one_constant if bounds == "plain" else None


def _one_constant(earlier: Any, block: Any, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """The same M for a whole layer, above all that intervals allow: no ReLU is decided before the solver starts."""
    largest = np.maximum(-block.lower, block.upper).max(initial=0.0)
    return np.full_like(block.lower, -largest), np.full_like(block.upper, largest)


def _leads(asked: Asked, encoding: Any, j: int) -> list[list[tuple[int, float, float]]]:
    """For each member the other classes with bounds of the label's lead over them in the ball, rounded outwards."""
    from radii.verifiers._relax import over, row_bounds

    label, region = asked.instances[j].label, asked.regions[j]
    lows, highs = (side[encoding.outputs] for side in encoding.bounds)
    found = []
    for start, member in zip(asked.order, asked.members):
        others = [t for t in range(member.classes) if t != label]
        low = np.array([lows[start + label] - highs[start + t] for t in others])
        high = np.array([highs[start + label] - lows[start + t] for t in others])
        if asked.form.bounds == "crown":
            rows = np.zeros((len(others), encoding.columns))
            rows[:, encoding.outputs[start + label]] = 1.0
            rows[np.arange(len(others)), encoding.outputs[[start + t for t in others]]] = -1.0
            least = over(region)
            low = np.maximum(low, row_bounds(encoding.blocks, rows, least, region.low, region.high))
            high = np.minimum(high, -row_bounds(encoding.blocks, -rows, least, region.low, region.high))
        room = 1e-12 * (1.0 + np.abs(low) + np.abs(high))
        found.append([(t, float(a), float(b)) for t, a, b in zip(others, low - room, high + room)])
    return found


def _loss(
    added: _Columns,
    asked: Asked,
    encoding: Any,
    start: int,
    j: int,
    c: int,
    leads: list[tuple[int, float, float]],
) -> int | None:
    """The column that may be 1 where the member is fooled; None where it never is."""
    outputs = start + encoding.outputs[asked.order[c] :]
    label, ways = asked.instances[j].label, []
    for t, low, high in leads:
        if low > 0 and asked.form.bounds != "plain":
            continue
        way = added.column(0.0, 1.0, whole=True)
        if high > 0:
            added.row([(int(outputs[label]), 1.0), (int(outputs[t]), -1.0), (way, high)], -math.inf, high)
        ways.append(way)
    if len(ways) <= 1:
        return ways[0] if ways else None
    loss = added.column(0.0, 1.0)
    added.row([(loss, -1.0), *((way, 1.0) for way in ways)], 0.0, math.inf)
    return loss


def _product(added: _Columns, p: int, loss: int) -> int:
    """The column of p·ℓ."""
    product = added.column(0.0, 1.0)
    added.row([(p, 1.0), (product, -1.0)], 0.0, math.inf)
    added.row([(loss, 1.0), (product, -1.0)], 0.0, math.inf)
    added.row([(product, 1.0), (p, -1.0), (loss, -1.0)], -1.0, math.inf)
    return product


def solve(asked: Asked, seconds: float | None, memory: int | None = None) -> Encoded:
    """The program's answer within so many CPU seconds."""
    search = _Search(asked, math.inf if seconds is None else seconds, memory)
    search.run(asked.form.objective)
    if search.end == "infeasible" and asked.form.objective == "sum":
        # "No such attack" is a word without a number to be careful with: ask how far the value stays below α.
        search.run("check")
    return search.answer()


class _Search:
    """One question on its way to an answer."""

    def __init__(self, asked: Asked, seconds: float, memory: int | None) -> None:
        self.asked, self.seconds, self.memory = asked, seconds, memory
        self.clock = Clock()
        self.best: Attack | None = None
        self.claimed: float | None = None
        self.high, self.end, self.detail = 1.0, "time", ""

    def run(self, objective: str) -> None:
        """Solves the program of an objective in what is left of the time."""
        from radii.verifiers._mip_solve import Limits
        from radii.verifiers._mip_solve import solve as solve_mip
        from radii.verifiers.milp import safety

        made = program(self.asked, objective)
        spare, alpha = safety(made.mip), self.asked.form.alpha
        if self.clock.cpu >= self.seconds:
            self.end, self.detail = "time", "the budget went into the program"
            return

        def stop(bound: float, solution: Any) -> bool:
            if solution is not None:
                self._take(made, objective, solution)
            if math.isfinite(bound):
                self._prove(objective, bound - spare)
            if objective == "check":
                return self._reached() or (alpha is not None and self.high < alpha - ROUNDING)
            return objective == "value" and self._value() >= self.high - 1e-9

        limit = self.seconds if math.isfinite(self.seconds) else 1e9
        solved = solve_mip(
            self.asked.form.solver, made.mip, Limits(limit, self.memory, None, lambda: self.clock.cpu, stop)
        )
        self.end, self.detail = solved.end, solved.detail
        if solved.end != "infeasible":
            stop(solved.bound, solved.x)

    def _take(self, made: Program, objective: str, solution: Any) -> None:
        """Replays a solution and keeps it if it is better than what there is."""
        found = made.attack(self.asked, solution)
        goal = float(np.sum(np.asarray(solution)[list(made.goal)]))
        if objective == "value":
            self.claimed = max(goal, self.claimed or 0.0)
        elif objective == "check" and self.asked.form.alpha is not None:
            self.claimed = max(self.asked.form.alpha - goal, self.claimed or 0.0)
        if objective == "sum":  # the last one has the largest sum, whatever its value is
            self.claimed, self.best = goal / (len(self.asked.members) * len(self.asked.instances)), found
        elif found.value > self._value() or self.best is None:
            self.best = found

    def _prove(self, objective: str, bound: float) -> None:
        if objective == "value":
            self.high = min(self.high, max(0.0, -bound))
        elif objective == "check" and bound > 0 and self.asked.form.alpha is not None:
            self.high = min(self.high, max(0.0, self.asked.form.alpha - bound))
        elif objective == "sum":
            self.high = min(self.high, max(0.0, -bound / (len(self.asked.members) * len(self.asked.instances))))

    def _value(self) -> float:
        return 0.0 if self.best is None else self.best.value

    def _reached(self) -> bool:
        alpha = self.asked.form.alpha
        return alpha is not None and self.best is not None and self.best.value >= alpha - ROUNDING

    def answer(self) -> Encoded:
        """What is known now."""
        form, reason, detail = self.asked.form, _REASONS.get(self.end), self.detail
        if form.objective == "check" and form.alpha is not None:
            decided = self._reached() or self.high < form.alpha - ROUNDING
        else:
            decided = reason is None
        if decided:
            reason, detail = None, ""
        elif reason is None:
            reason, detail = Reason.INCOMPLETE, "the solver's attack does not replay on the original models"
        return Encoded(
            form, self.asked.epsilon, self.best, self.high, self.claimed, decided, reason, detail, self.clock.cpu
        )
