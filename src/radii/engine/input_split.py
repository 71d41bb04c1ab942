"""Input split: boxes of inputs for networks with few inputs, in batches, worst box first.

A clause is met nowhere in a box where the lower bound of one of its rows, or of a sum of rows with weights ≥ 0, is
above 0. A box with a clause left open is halved along the input that causes most of the relaxation's loss. The halves
cover the box, share only a face and start from the bounds proven on the whole, so when no box is open no input violates
the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from radii._torch import Tensor, torch
from radii.bounds.backward import Linear
from radii.bounds.backward_curves import Bound
from radii.bounds.bound import arguments, bound, ends
from radii.bounds.region import Region
from radii.bounds.rounding import UP, gamma
from radii.engine.input_branching import losses
from radii.engine.tuning import DEFAULT, Tuning
from radii.models.graph import Graph
from radii.problem import LINF


@dataclass(frozen=True, eq=False)
class Goals:
    """What must stay positive: a lowered float64 graph whose outputs are all rows, and the rows of each clause."""

    graph: Graph
    members: Tensor  # (clauses, most rows) int64; shorter clauses repeat a row

    @cached_property
    def shares(self) -> Tensor:
        """Equal weights for the rows of each clause: (clauses, rows)."""
        chosen = torch.zeros((len(self.members), self.graph.nodes[-1].size), dtype=torch.float64)
        chosen.scatter_(1, self.members, 1.0)
        return chosen / chosen.sum(1, keepdim=True)

    def of(self, rows: Tensor) -> Tensor:
        """The greatest row of each clause, (…, clauses) from (…, rows): a clause is met where it is at most 0."""
        return rows[..., self.members].amax(-1)

    def nearest(self, rows: Tensor) -> Tensor:
        """Which row that is, (…, clauses)."""
        place = rows[..., self.members].argmax(-1, keepdim=True)
        return self.members.expand(*place.shape[:-1], -1).gather(-1, place)[..., 0]


def region_of(low: Tensor, high: Tensor) -> Region:
    """A batch of boxes as regions, rounded outwards; a side without width stays without."""
    middle = torch.minimum(torch.maximum(0.5 * low + 0.5 * high, low), high)
    infinite = torch.full_like(low, torch.inf)
    down, up = middle - low, high - middle
    down = torch.where(down > 0, torch.nextafter(down, infinite), torch.zeros_like(down))
    up = torch.where(up > 0, torch.nextafter(up, infinite), torch.zeros_like(up))
    return Region(middle, torch.maximum(down, up).amax(1).clamp_min(1e-300), LINF, down, up)


@dataclass(eq=False)
class Boxes:
    """Open boxes; all tensors have the boxes along their first dimension."""

    low: Tensor  # (boxes, d) float64
    high: Tensor
    bound: Tensor  # (boxes,) the least lower bound of an open clause: how far the box is from being closed
    axis: Tensor  # (boxes,) which input to halve
    hidden_low: Tensor  # (boxes, arguments) bounds of all activations' arguments
    hidden_high: Tensor

    def pick(self, index: Tensor) -> Boxes:
        """These boxes, repeated and ordered as asked."""
        return Boxes(*(getattr(self, f.name)[index] for f in fields(self)))

    def __len__(self) -> int:
        return int(self.low.shape[0])

    @staticmethod
    def join(parts: list[Boxes]) -> Boxes:
        """All boxes of several batches."""
        return Boxes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Boxes)))

    @property
    def nbytes(self) -> int:
        """What the boxes occupy."""
        return sum(getattr(self, f.name).nbytes for f in fields(self))


class Cover:
    """Branch and bound over boxes; `points` are where the latest boxes came nearest to a violation."""

    def __init__(self, goals: Goals, low: Tensor, high: Tensor, tuning: Tuning = DEFAULT) -> None:
        self.goals, self.tuning, self.bounding = goals, tuning.boxes, tuning.bounds
        neurons = max(1, arguments(goals.graph))
        width = max(node.size for node in goals.graph.nodes)
        self.batch = max(1, min(self.tuning.batch, self.tuning.work // (neurons * width)))
        self.visited = 0
        self.stuck = False  # whether a box too thin to split is open: no proof can come any more
        self.points = low.new_zeros((0, low.shape[-1]))
        self.open = self._bound(low.reshape(1, -1), high.reshape(1, -1), None)

    @property
    def done(self) -> bool:
        """Whether no box is open: the specification is violated nowhere."""
        return len(self.open) == 0

    def step(self) -> None:
        """Halves the boxes farthest from being closed and bounds the halves."""
        self.halve(torch.argsort(self.open.bound))

    def halve(self, order: Tensor) -> bool:
        """Halves the first of these boxes, as many as go together, and bounds the halves; False if one is too thin."""
        order = order[: self.batch // 2 + 1]
        others = torch.ones(len(self.open), dtype=torch.bool)
        others[order] = False
        take, rest = self.open.pick(order), self.open.pick(others.nonzero()[:, 0])
        rows = torch.arange(len(take))
        low, high = take.low[rows, take.axis], take.high[rows, take.axis]
        middle = 0.5 * low + 0.5 * high
        thin = (
            ~((high - low) > self.tuning.narrow * torch.maximum(low.abs(), high.abs()))
            | ~(low < middle)
            | ~(middle < high)
        )
        if bool(thin.any()):
            self.stuck = True
            return False
        first_high, second_low = take.high.clone(), take.low.clone()
        first_high[rows, take.axis] = middle
        second_low[rows, take.axis] = middle
        kept = self._bound(torch.cat([take.low, second_low]), torch.cat([first_high, take.high]), take)
        self.open = Boxes.join([rest, kept])
        return True

    def _bound(self, low: Tensor, high: Tensor, parents: Boxes | None) -> Boxes:
        """The boxes of these that stay open."""
        self.visited += len(low)
        goals, region = self.goals, region_of(low, high)
        # Both halves take over what is proven of their parents.
        known = None if parents is None else (parents.hidden_low.repeat(2, 1), parents.hidden_high.repeat(2, 1))
        root = bound(goals.graph, region, known, tuning=self.bounding)
        unit = torch.eye(goals.graph.nodes[-1].size, dtype=torch.float64).expand(len(low), -1, -1)
        bounds, weights = self._clauses(region, root.margins(unit))
        # Written so that NaN stays open: only a bound above 0 closes a clause.
        proved = bounds > 0
        left = (~proved.all(1)).nonzero()[:, 0]
        part, weights = root.rows(left), weights[left]
        a, c = part.best_margins(weights, self.tuning.climbs)
        bounds = torch.maximum(bounds[left], part.region.lowest(a, c))
        proved = bounds > 0
        stay = (~proved.all(1)).nonzero()[:, 0]
        left, part, weights, a = left[stay], part.rows(stay), weights[stay], a[stay]
        worst, clause = torch.nan_to_num(bounds[stay], nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).min(1)
        row, a = (t[torch.arange(len(left)), clause] for t in (weights, a))
        room = (high - low)[left]
        self.points = torch.cat([part.region.center, part.region.minimiser(a[:, None])[:, 0]])
        loss = losses(part, row, room) if len(left) else torch.zeros_like(room)
        score = (
            loss + self.tuning.slope * torch.nan_to_num(a.abs(), nan=0.0, posinf=0.0) * room + self.tuning.width * room
        )
        return Boxes(low[left], high[left], worst, score.argmax(1), *(e[left] for e in ends(root)))

    def _clauses(self, region: Region, linear: Linear | Bound) -> tuple[Tensor, Tensor]:
        """Lower bounds of the greatest row of each clause, (boxes, clauses), and the weights of rows that gave them.

        All rows of a clause that is met are at most 0, so is any sum of them with weights ≥ 0. The weights climb by
        multiplication, starting from the best row alone and from all rows alike.
        """
        goals, unit = self.goals, torch.eye(linear.a.shape[1], dtype=torch.float64)
        single = region.lowest(linear.a, linear.shifted())
        bounds = goals.of(single)
        weights = unit[goals.nearest(torch.nan_to_num(single, nan=-torch.inf))]
        if goals.members.shape[1] == 1:
            return bounds, weights
        shares = goals.shares.expand(len(bounds), -1, -1)
        size = torch.matmul(linear.a.abs(), region.magnitude()[..., None])[..., 0] + linear.shifted().abs()
        for _ in range(self.tuning.mixes):
            a = torch.matmul(shares, linear.a)
            value = region.lowest(a, torch.matmul(shares, linear.shifted()[..., None])[..., 0])
            charge = gamma(linear.a.shape[1] + 4) * UP * torch.matmul(shares, size[..., None])[..., 0]
            better = value - charge > bounds
            bounds = torch.where(better, value - charge, bounds)
            weights = torch.where(better[..., None], shares, weights)
            at = region.minimiser(a)
            rows = torch.matmul(at, linear.a.transpose(1, 2)) + linear.shifted()[:, None]
            scale = rows.abs().amax(-1, keepdim=True).clamp_min(1e-300)
            shares = shares * torch.exp(self.tuning.mix_rate * rows / scale)
            shares = shares / shares.sum(-1, keepdim=True)
        return bounds, weights
