"""Nodes: subproblems of one image's condensed network, bounded in batches.

A node fixes the sign of some neurons and carries an objective. Its bound comes from one backward sweep with lower
slopes α for undecided neurons and multipliers β ≥ 0 for fixed ones; α and β climb the bound's own gradient, which one
relaxed forward sweep from the minimiser delivers. The climb and the bounds of hidden neurons run in float32, the final
sweep of a node in float64; both charge their rounding, so every bound is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from radii.bounds.cuts import lowest_under_cut
from radii.bounds.rounding import TINY, U32, gamma, outward, unit_of
from radii.engine.condensed import Condensed, Rows
from radii.engine.matrices import Matrices

RATE = 0.3
DECAY = 0.85
IN_CACHE = 2**20  # coefficients of rows that are bounded under cuts at a time
REFINED, REFINEMENT = 32, 8000  # neurons of a node that its cut bounds anew: so many, or more of few


@dataclass(eq=False)
class Nodes:
    """A batch of nodes; all tensors have the nodes along their first dimension."""

    objective: Tensor  # which row of the objectives, int64
    low: Tensor  # (nodes, n) float32 bounds of the pre-activations inside the node
    high: Tensor
    sign: Tensor  # (nodes, n) int8: +1 fixed active, −1 fixed inactive, 0 free
    alpha: Tensor  # (nodes, n) float32
    beta: Tensor  # (nodes, n) float32
    a: Tensor  # (nodes, d) float64: the linear bound of the objective …
    c: Tensor  # (nodes,) float64: … with rounding taken off
    radius: Tensor  # (nodes,) float64: no violation of the objective closer than this
    score: Tensor  # (nodes, n) float32: how promising a split of each neuron is

    def pick(self, index: Tensor) -> Nodes:
        """These nodes, repeated and ordered as asked."""
        return Nodes(*(getattr(self, f.name)[index] for f in fields(self)))

    def where(self, mask: Tensor) -> Nodes:
        """Those of the nodes that a mask names; themselves, not copies, when it names all."""
        return self if bool(mask.all()) else self.pick(mask.nonzero()[:, 0])

    def __len__(self) -> int:
        return int(self.objective.shape[0])

    @property
    def splittable(self) -> Tensor:
        """Which nodes still have an undecided neuron."""
        return ((self.low < 0) & (self.high > 0)).any(1)

    @staticmethod
    def join(parts: list[Nodes]) -> Nodes:
        """All nodes of several batches."""
        return Nodes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Nodes)))


@dataclass(frozen=True, eq=False)
class Problem:
    """A condensed network with objectives, ready to be bounded in both precisions."""

    net: Condensed
    fine: Matrices  # float64
    fast: Matrices  # float32
    middle: Tensor  # float32 box around the ball: middle ± half
    half: Tensor

    @staticmethod
    def of(net: Condensed, objectives: Rows) -> Problem:
        """The problem of bounding objectives on the condensed network."""
        down, up = net.region.box()
        middle = (0.5 * (up[0] - down[0])).to(torch.float32)
        half = torch.maximum(up[0] - middle.double(), down[0] + middle.double()) * (1.0 + 8 * U32)
        fine = Matrices.of(net, objectives, torch.float64)
        return Problem(net, fine, Matrices.of(net, objectives, torch.float32), middle, half.to(torch.float32))

    @property
    def node_bytes(self) -> int:
        """About what bounding one node takes: some dozen rows over the inputs, and twice as many over the neurons."""
        return 96 * self.fine.objectives.a.shape[1] + 200 * self.net.size

    def roots(self) -> Nodes:
        """One node an objective, nothing fixed, not yet bounded."""
        count, n = len(self.fine.objectives.b), self.net.size
        low, high = outward(self.net.low, self.net.high, torch.float32)
        low, high = low.expand(count, n).clone(), high.expand(count, n).clone()
        zeros = low.new_zeros((count, n))
        wide = self.net.low.new_zeros
        return Nodes(
            torch.arange(count),
            low,
            high,
            zeros.to(torch.int8),
            (high > -low).to(low.dtype),
            zeros.clone(),
            wide((count, self.fine.objectives.a.shape[1])),
            wide(count),
            wide(count),
            zeros.clone(),
        )


@dataclass(frozen=True, eq=False)
class _Relaxation:
    """Lines of neurons: relu(z) ≤ steep·z + lift where undecided, relu(z) = steep·z elsewhere.

    Masks are numbers, 0 or 1, and choices between two values are products with them: exact, and many times faster on a
    processor than `torch.where`, whose branches it cannot foresee.
    """

    unstable: Tensor  # 1 where undecided, else 0
    steep: Tensor
    settled: Tensor  # steep where not undecided, else 0
    lift: Tensor

    @staticmethod
    def of(low: Tensor, high: Tensor) -> _Relaxation:
        below, above = low.clamp_max(0.0), high.clamp_min(0.0)
        mask = above.sign().mul_(below.sign()).neg_()
        width = (above - below).clamp_min(LEAST_WIDTH[low.dtype])
        steep = above / width  # 1 or 0 where one sign is left, no number where an end is none
        # Valid at both ends whatever the rounding of the slope.
        lift = torch.maximum(-steep * below, above - steep * above) + 8 * unit_of(low.dtype) * width
        return _Relaxation(mask, steep, steep * (1.0 - mask), lift.clamp_min(0.0) * mask)

    def floor(self, alpha: Tensor) -> Tensor:
        """Slopes of the lower lines."""
        return torch.addcmul(self.settled, self.unstable, alpha)


# A neuron that can only be less than this is as good as 0: what is charged for underflow is more.
LEAST_WIDTH = {torch.float32: 1e-36, torch.float64: TINY}


@dataclass(frozen=True, eq=False)
class _Sweep:
    a: Tensor
    c: Tensor
    v: Tensor  # coefficients of the ReLU outputs
    floor: Tensor  # slopes of the lower lines


def _sweep(net: Condensed, side: Matrices, nodes: Nodes, relaxation: _Relaxation, rows: Rows, charge: Tensor) -> _Sweep:
    """Linear bounds of objectives (rows, with their charges, one a node) by the lines that suit their signs best."""
    dtype = rows.b.dtype
    floor = relaxation.floor(nodes.alpha.to(dtype))
    pull = nodes.beta.to(dtype) * nodes.sign.to(dtype)
    v = rows.m.clone()
    u = torch.empty_like(v)
    for first, last in reversed(net.blocks):
        # The lower line where v > 0, the upper one elsewhere: one of the products is 0.
        above = v[:, first:last].clamp_min(0.0)
        below = v[:, first:last] - above
        through = above.mul_(floor[:, first:last]).addcmul_(below, relaxation.steep[:, first:last])
        torch.sub(through, pull[:, first:last], out=u[:, first:last])
        if first:
            v[:, :first] += u[:, first:last] @ side.neurons.m[first:last, :first]
    a = rows.a + side.inputs(u)
    c = rows.b + u @ side.neurons.b + (v.clamp_max(0.0) * relaxation.lift).sum(1)
    # Each product v·slope − β and each line's offset was rounded once more.
    relaxed = (v.abs() * (relaxation.lift + side.span)).sum(1) + pull.abs() @ side.span
    error = u.abs() @ side.charge + charge + gamma(len(side.span) + 6, side.unit) * relaxed
    return _Sweep(a, c - error * (1.0 + 2.0**-10), v, floor)


def _lines_in_use(sweep: _Sweep, relaxation: _Relaxation) -> tuple[Tensor, Tensor]:
    """Slopes and offsets of the lines that a sweep took; not certified: coefficients near 0 get something between."""
    lower = (sweep.v * 1e30).clamp(0.0, 1.0)
    slope = torch.addcmul(relaxation.steep, lower, sweep.floor - relaxation.steep)
    return slope, torch.addcmul(relaxation.lift, relaxation.lift, lower, value=-1.0)


def _forward(net: Condensed, side: Matrices, lines: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    """The relaxed pre-activations at x by the lines in use."""
    slope, offset = lines
    z = side.linear(x)
    y = torch.empty_like(z)
    for first, last in net.blocks:
        if first:
            z[:, first:last] += y[:, :first] @ side.neurons.m[first:last, :first].T
        y[:, first:last] = torch.addcmul(offset[:, first:last], slope[:, first:last], z[:, first:last])
    return z


def climb(problem: Problem, nodes: Nodes, steps: int) -> Tensor:
    """Improves α, β, the linear bound and the scores of nodes in place; returns their lowest values.

    A lowest value above 0 closes the node: no point of the ball inside it violates the objective.
    """
    if problem.net.size and len(nodes):
        _ascend(problem, nodes, steps)
    return certify(problem, nodes)


def certify(problem: Problem, nodes: Nodes) -> Tensor:
    """The linear bounds of nodes in float64 for the α and β they have, in place; returns their lowest values."""
    low, high = nodes.low.double(), nodes.high.double()
    rows, charge = problem.fine.objectives_of(nodes.objective)
    sweep = _sweep(problem.net, problem.fine, nodes, _Relaxation.of(low, high), rows, charge)
    nodes.a, nodes.c = sweep.a, sweep.c
    return problem.fine.region.lowest(sweep.a[None], sweep.c[None])[0]


def _ascend(problem: Problem, nodes: Nodes, steps: int) -> None:
    """Adam on α and β in float32; keeps the best of what it met."""
    side, net = problem.fast, problem.net
    relaxation = _Relaxation.of(nodes.low, nodes.high)
    rows, charge = side.objectives_of(nodes.objective)
    sign = nodes.sign.to(torch.float32)
    best = torch.full_like(nodes.c, -torch.inf, dtype=torch.float32)
    best_alpha, best_beta = nodes.alpha, nodes.beta
    moments = [torch.zeros_like(nodes.alpha) for _ in range(4)]
    rate = RATE
    for step in range(steps + 1):
        sweep = _sweep(net, side, nodes, relaxation, rows, charge)
        x = side.region.minimiser(sweep.a[None])[0]
        value = (sweep.a * x).sum(1) + sweep.c
        better = value > best
        pick = better[:, None]
        best = torch.where(better, value, best)
        best_alpha = torch.where(pick, nodes.alpha, best_alpha)
        best_beta = torch.where(pick, nodes.beta, best_beta)
        if step == steps:
            break
        lines = _lines_in_use(sweep, relaxation)
        z = _forward(net, side, lines, x)
        nodes.score = torch.where(pick, _score(sweep.v, lines, z, relaxation), nodes.score)
        if bool((best > 0).all()):
            break
        _move(nodes, sweep.v, z, (relaxation.unstable, sign), moments, rate, step)
        rate *= DECAY
    nodes.alpha, nodes.beta = best_alpha, best_beta


def _move(
    nodes: Nodes, v: Tensor, z: Tensor, masks: tuple[Tensor, Tensor], moments: list[Tensor], rate: float, step: int
) -> None:
    """One step of Adam; the masks say which neurons are undecided and which signs are fixed."""
    unstable, sign = masks
    gains = v.clamp_min(0.0).mul_(unstable).mul_(z), (sign * z).neg_()
    scale = v.abs().amax(1, keepdim=True)
    for k, (g, m, s) in enumerate(((gains[0], *moments[:2]), (gains[1], *moments[2:]))):
        m.mul_(0.9).add_(g, alpha=0.1)
        s.mul_(0.99).addcmul_(g, g, value=0.01)
        move = (m / (1 - 0.9 ** (step + 1))).div_((s / (1 - 0.99 ** (step + 1))).sqrt_().add_(1e-12))
        if k == 0:
            nodes.alpha = torch.add(nodes.alpha, move, alpha=rate).clamp_(0.0, 1.0)
        else:
            nodes.beta = torch.addcmul(nodes.beta, move, scale, value=0.3 * rate).clamp_min_(0.0)


def _score(v: Tensor, lines: tuple[Tensor, Tensor], z: Tensor, relaxation: _Relaxation) -> Tensor:
    """What each undecided neuron's upper line costs the bound, and a little of how far off it is at the minimiser."""
    size = v.abs()
    gap = torch.addcmul(lines[1], lines[0], z).sub_(z.clamp_min(0.0)).abs_()
    gain = gap.mul_(0.01).add_(relaxation.lift, alpha=1e-3).mul_(size)
    gain.addcmul_(relaxation.lift, v.clamp_max(0.0), value=-1.0)
    return gain.mul_(relaxation.unstable)


def fix(nodes: Nodes, at: Tensor) -> Nodes:
    """Both children of every node, with neuron `at` (one a node) fixed active, then all of them fixed inactive."""
    rows = torch.arange(len(nodes))
    up, down = nodes.pick(rows), nodes.pick(rows)
    up.low[rows, at] = 0.0
    up.sign[rows, at] = 1
    down.high[rows, at] = 0.0
    down.sign[rows, at] = -1
    return Nodes.join([up, down])


def best_splits(nodes: Nodes) -> Tensor:
    """The best-scored undecided neuron of every node; every node must have one."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    return torch.where(undecided, nodes.score + 1e-30, torch.full_like(nodes.score, -1.0)).argmax(1)


def refine(problem: Problem, nodes: Nodes, both: bool = True) -> Tensor:
    """Tightens the pre-activation bounds of nodes in place under their own cuts; returns which became empty.

    Adversarial points inside a node meet a·x + c ≤ 0; layer by layer every undecided neuron is bounded under that, at
    `both` ends or, after the first layer, only at the one nearer to 0: that can give it its sign, for half the price.
    """
    empty = torch.zeros(len(nodes), dtype=torch.bool)
    cut = nodes.a.to(torch.float32)
    reach = (cut.abs().double() @ (problem.half + problem.middle.abs()).double()) * (2 * U32)
    shift = (nodes.c - reach - 2 * U32 * nodes.c.abs()).to(torch.float32)
    pressing = _pressing(nodes)
    for first, last in problem.net.blocks:
        which, counts = _positions(pressing[:, first:last], shared=first == 0)
        if not which.shape[1]:
            continue
        at = (which + first).expand(len(nodes), -1)
        low, high = nodes.low.gather(1, at), nodes.high.gather(1, at)
        if both or not first:
            twice = both_ends(which + first)
            least = _under_cuts(problem, nodes, (cut, shift), (*twice, torch.cat([counts, counts], 1)), first)
            below, above = least.chunk(2, 1)
        else:
            turn = torch.where(high > -low, 1.0, -1.0)
            least = _under_cuts(problem, nodes, (cut, shift), (which + first, turn, counts), first)
            nothing = torch.full_like(least, -torch.inf)
            below, above = torch.where(turn > 0, least, nothing), torch.where(turn < 0, least, nothing)
        low, high = torch.maximum(low, below), torch.minimum(high, -above)
        if first:
            # What does not count stands for the row's first column once more.
            low, high = torch.where(counts, low, low[:, :1]), torch.where(counts, high, high[:, :1])
        nodes.low.scatter_(1, at, low)
        nodes.high.scatter_(1, at, high)
        empty |= (low > high).any(1)
    return empty


def _under_cuts(
    problem: Problem,
    nodes: Nodes,
    cuts: tuple[Tensor, Tensor],
    asked: tuple[Tensor, Tensor, Tensor],
    first: int,
) -> Tensor:
    """Lower bounds of turn·z under each node's cut, for (neurons, turns, whether they count) of one layer."""
    which, turn, wanted = asked
    # The rows of a few nodes at a time stay in the caches; those of all would go through main memory several times.
    count = max(1, IN_CACHE // (which.shape[1] * cuts[0].shape[1])) if first else len(nodes)
    found = []
    for part in torch.split(torch.arange(len(nodes)), count) if count < len(nodes) else (slice(None),):
        mine = (which[part], turn[part]) if first else (which, turn)
        w, k = hidden_rows(problem.net, problem.fast, nodes.low[part], nodes.high[part], *mine, first)
        cut, shift = cuts[0][part], cuts[1][part]
        found.append(lowest_under_cut(w, k, cut, shift, problem.middle, problem.half, wanted[part]))
    return torch.nan_to_num(torch.cat(found), nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)


def _pressing(nodes: Nodes) -> Tensor:
    """Which undecided neurons of each node are worth new bounds: those that cost its bound most."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    size = undecided.shape[1]
    most = _most(size)
    if size <= most:
        return undecided
    score = nodes.score * undecided
    if score.device.type == "cpu":
        least = torch.from_numpy(np.partition(score.numpy(), size - most, axis=1)[:, size - most : size - most + 1])
    else:
        least = score.topk(most, dim=1).values[:, -1:]
    return undecided & (score >= least)


def _most(neurons: int) -> int:
    """How many neurons of a node are bounded anew, at most."""
    return max(REFINED, REFINEMENT // max(neurons, 1))


def _positions(mask: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
    """The columns that are set in each row of a mask, (rows, most) or (1, most) if shared, and which of them count.

    Rows with fewer than the most repeat their first one.
    """
    if shared:
        which = mask.any(0).nonzero()[:, 0]
        return which[None], mask[:, which]
    counts = mask.sum(1)
    most = int(counts.max()) if len(mask) else 0
    row, column = mask.nonzero(as_tuple=True) if mask.device.type != "cpu" else _set_in(mask)
    place = torch.arange(len(row), device=mask.device) - (counts.cumsum(0) - counts)[row]
    which = mask.to(torch.int8).argmax(1)[:, None].repeat(1, most)
    which[row, place] = column
    return which, torch.arange(most, device=mask.device) < counts[:, None]


def _set_in(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns that are set; numpy finds them many times faster than torch does."""
    row, column = np.nonzero(mask.numpy())
    return torch.from_numpy(row), torch.from_numpy(column)


def both_ends(which: Tensor) -> tuple[Tensor, Tensor]:
    """Neurons (nodes, count) twice, and the signs with which `hidden_rows` bounds them: +z of all, then −z of all."""
    one = torch.ones(which.shape)
    return torch.cat([which, which], 1), torch.cat([one, -one], 1)


def hidden_rows(
    net: Condensed, side: Matrices, low: Tensor, high: Tensor, which: Tensor, turn: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Lower linear bounds of turn·z of some neurons of one layer, turn = ±1: (nodes, rows, d), (nodes, rows).

    The layer begins with neuron `first`; `low` and `high` are (nodes, n). `which` and `turn` are (nodes, rows), or (1,
    rows) in the first layer, whose rows all nodes share.
    """
    turn = turn.to(low.dtype)
    b, error = side.neurons.b[which] * turn, side.charge[which] * (1.0 + 2.0**-10)
    if not first:
        return side.neurons.a[which] * turn[..., None], (b - error).expand(len(low), -1)
    v = side.neurons.m[:, :first][which] * turn[..., None]
    low, high = low[:, :first], high[:, :first]
    relaxation = _Relaxation.of(low, high)
    floor = relaxation.floor((high + low).mul_(1e30).clamp_(0.0, 1.0))[:, None]
    steep = relaxation.steep[:, None]
    # The layer's own columns hold the neurons themselves: one product instead of a gather, a product and a sum.
    last = next(end for start, end in net.blocks if start == first)
    whole = v.new_zeros((*v.shape[:2], last))
    whole.scatter_(2, which[..., None], turn[..., None])
    u = whole[..., :first]
    for start, end in reversed([b for b in net.blocks if b[1] <= first]):
        above = v[..., start:end].clamp_min(0.0)
        below = v[..., start:end] - above
        u[..., start:end] = above.mul_(floor[..., start:end]).addcmul_(below, steep[..., start:end])
        if start:
            v[..., :start] += u[..., start:end] @ side.neurons.m[start:end, :start]
    a = side.inputs(whole)
    k = b + u @ side.neurons.b[:first] + (v.clamp_max(0.0) * relaxation.lift[:, None]).sum(-1)
    error = error + u.abs() @ side.charge[:first]
    error = error + gamma(first + 6, side.unit) * (v.abs() * (relaxation.lift[:, None] + side.span[:first])).sum(-1)
    return a, k - error * (1.0 + 2.0**-10)
