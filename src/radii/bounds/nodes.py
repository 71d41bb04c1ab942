"""Nodes: subproblems of one image's condensed network, bounded in batches.

A node fixes the sign of some neurons and carries an objective. Its bound comes from one backward sweep with lower
slopes α for undecided neurons and multipliers β ≥ 0 for fixed ones; α and β climb the bound's own gradient, which one
relaxed forward sweep from the minimiser delivers. The climb and the bounds of hidden neurons run in float32, the final
sweep of a node in float64; both charge their rounding, so every bound is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from radii.bounds.condense import Condensed, Rows, charges
from radii.bounds.cut import lowest_under_cut
from radii.bounds.region import Region
from radii.bounds.rounding import U32, gamma, outward, unit_of

RATE = 0.3
DECAY = 0.85
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
class Matrices:
    """A condensed network and its objectives in one precision, with what one use of each row costs in rounding."""

    neurons: Rows
    objectives: Rows
    charge: Tensor  # (n,)
    objective_charge: Tensor  # (objectives,)
    span: Tensor  # (n,) the largest |z|
    region: Region
    unit: float

    @staticmethod
    def of(net: Condensed, objectives: Rows, dtype: torch.dtype) -> Matrices:
        """Both cast to a precision; the casts are part of the charges."""
        unit = unit_of(dtype)
        magnitude = net.region.magnitude()[0]
        charge = charges(net.neurons, magnitude, net.high, unit)
        objective = charges(objectives, magnitude, net.high, unit)
        lost = 0.0 if dtype == torch.float64 else FLUSHED * (1.0 + float(magnitude.sum() + net.high.clamp_min(0).sum()))
        span = torch.maximum(net.high, -net.low) * (1.0 + 4 * unit)
        return Matrices(
            _cast(net.neurons, dtype),
            _cast(objectives, dtype),
            (charge * (1.0 + 4 * unit) + lost).to(dtype),
            (objective * (1.0 + 4 * unit) + lost).to(dtype),
            span.to(dtype),
            net.region.to(dtype),
            unit,
        )


FLUSH = 1e-20  # float32 weights below this are dropped: subnormal numbers are slow, and FLUSHED charges for them
FLUSHED = 1e-15


def _cast(rows: Rows, dtype: torch.dtype) -> Rows:
    def cast(value: Tensor) -> Tensor:
        small = value.abs() < FLUSH
        return torch.where(small, torch.zeros_like(value), value).to(dtype) if dtype == torch.float32 else value

    return Rows(cast(rows.a), rows.b.to(dtype), cast(rows.m), rows.slack.to(dtype))


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
    unstable: Tensor
    steep: Tensor
    lift: Tensor

    @staticmethod
    def of(low: Tensor, high: Tensor) -> _Relaxation:
        unstable = (low < 0) & (high > 0)
        width = (high - low).clamp_min(1e-30)
        steep = torch.where(unstable, high / width, (low >= 0).to(low.dtype))
        # Ends that are no numbers say nothing: no bound through such a slope can prove.
        steep = torch.where((low <= high), steep, torch.full_like(steep, torch.nan))
        # Valid at both ends whatever the rounding of the slope.
        lift = torch.maximum(-steep * low, high - steep * high) + 8 * unit_of(low.dtype) * width
        return _Relaxation(unstable, steep, torch.where(unstable, lift.clamp_min(0.0), torch.zeros_like(lift)))


@dataclass(frozen=True, eq=False)
class _Sweep:
    a: Tensor
    c: Tensor
    v: Tensor  # coefficients of the ReLU outputs
    slope: Tensor
    offset: Tensor  # of the line in use: 0 where the lower line is


def _sweep(net: Condensed, side: Matrices, nodes: Nodes, relaxation: _Relaxation) -> _Sweep:
    rows = side.objectives.pick(nodes.objective)
    dtype = rows.b.dtype
    floor = torch.where(relaxation.unstable, nodes.alpha.to(dtype), relaxation.steep)
    pull = nodes.beta.to(dtype) * nodes.sign
    v = rows.m.clone()
    u = torch.empty_like(v)
    slope = torch.empty_like(v)
    for first, last in reversed(net.blocks):
        part = v[:, first:last]
        slope[:, first:last] = torch.where(part > 0, floor[:, first:last], relaxation.steep[:, first:last])
        u[:, first:last] = part * slope[:, first:last] - pull[:, first:last]
        if first:
            v[:, :first] += u[:, first:last] @ side.neurons.m[first:last, :first]
    offset = torch.where(v < 0, relaxation.lift, torch.zeros_like(v))
    a = rows.a + u @ side.neurons.a
    c = rows.b + u @ side.neurons.b + (v * offset).sum(1)
    # Each product v·slope − β and each line's offset was rounded once more.
    relaxed = (v.abs() * (relaxation.lift + side.span) + pull.abs() * side.span).sum(1)
    error = (
        u.abs() @ side.charge + side.objective_charge[nodes.objective] + gamma(len(side.span) + 6, side.unit) * relaxed
    )
    return _Sweep(a, c - error * (1.0 + 2.0**-10), v, slope, offset)


def _forward(net: Condensed, side: Matrices, sweep: _Sweep, x: Tensor) -> Tensor:
    """The relaxed pre-activations at x that belong to a sweep."""
    z = x @ side.neurons.a.T + side.neurons.b
    y = torch.empty_like(z)
    for first, last in net.blocks:
        if first:
            z[:, first:last] += y[:, :first] @ side.neurons.m[first:last, :first].T
        y[:, first:last] = sweep.slope[:, first:last] * z[:, first:last] + sweep.offset[:, first:last]
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
    sweep = _sweep(problem.net, problem.fine, nodes, _Relaxation.of(low, high))
    nodes.a, nodes.c = sweep.a, sweep.c
    return problem.fine.region.lowest(sweep.a[None], sweep.c[None])[0]


def _ascend(problem: Problem, nodes: Nodes, steps: int) -> None:
    """Adam on α and β in float32; keeps the best of what it met."""
    side, net = problem.fast, problem.net
    relaxation = _Relaxation.of(nodes.low, nodes.high)
    best = torch.full_like(nodes.c, -torch.inf, dtype=torch.float32)
    best_alpha, best_beta = nodes.alpha, nodes.beta
    moments = [torch.zeros_like(nodes.alpha) for _ in range(4)]
    rate = RATE
    for step in range(steps + 1):
        sweep = _sweep(net, side, nodes, relaxation)
        x = side.region.minimiser(sweep.a[None])[0]
        value = (sweep.a * x).sum(1) + sweep.c
        better = value > best
        pick = better[:, None]
        best = torch.where(better, value, best)
        best_alpha = torch.where(pick, nodes.alpha, best_alpha)
        best_beta = torch.where(pick, nodes.beta, best_beta)
        if step == steps:
            break
        z = _forward(net, side, sweep, x)
        nodes.score = torch.where(pick, _score(sweep, z, relaxation), nodes.score)
        if bool((best > 0).all()):
            break
        _move(nodes, sweep, z, relaxation.unstable, moments, rate, step)
        rate *= DECAY
    nodes.alpha, nodes.beta = best_alpha, best_beta


def _move(
    nodes: Nodes, sweep: _Sweep, z: Tensor, unstable: Tensor, moments: list[Tensor], rate: float, step: int
) -> None:
    """One step of Adam."""
    slope_gain = torch.where(unstable & (sweep.v > 0), sweep.v * z, torch.zeros_like(z))
    scale = sweep.v.abs().amax(1, keepdim=True)
    for k, (g, m, s) in enumerate(((slope_gain, *moments[:2]), (-nodes.sign * z, *moments[2:]))):
        m.mul_(0.9).add_(g, alpha=0.1)
        s.mul_(0.99).add_(g * g, alpha=0.01)
        move = (m / (1 - 0.9 ** (step + 1))) / ((s / (1 - 0.99 ** (step + 1))).sqrt() + 1e-12)
        if k == 0:
            nodes.alpha = (nodes.alpha + rate * move).clamp(0.0, 1.0)
        else:
            nodes.beta = (nodes.beta + 0.3 * rate * scale * move).clamp_min(0.0)


def _score(sweep: _Sweep, z: Tensor, relaxation: _Relaxation) -> Tensor:
    """What each undecided neuron's upper line costs the bound, and a little of how far off it is at the minimiser."""
    size = sweep.v.abs()
    cost = relaxation.lift * (-sweep.v).clamp_min(0.0)
    gap = (sweep.slope * z + sweep.offset - z.clamp_min(0.0)).abs() * size
    gain = cost + 0.01 * gap + 1e-3 * relaxation.lift * size
    return torch.where(relaxation.unstable, gain, torch.zeros_like(gain))


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


def refine(problem: Problem, nodes: Nodes) -> Tensor:
    """Tightens the pre-activation bounds of nodes in place under their own cuts; returns which became empty.

    Adversarial points inside a node meet a·x + c ≤ 0; layer by layer every undecided neuron is bounded under that.
    """
    empty = torch.zeros(len(nodes), dtype=torch.bool)
    cut = nodes.a.to(torch.float32)
    reach = (cut.abs().double() @ (problem.half + problem.middle.abs()).double()) * (2 * U32)
    shift = (nodes.c - reach - 2 * U32 * nodes.c.abs()).to(torch.float32)
    pressing = _pressing(nodes)
    for first, last in problem.net.blocks:
        mask = pressing[:, first:last]
        which, wanted = _positions(mask, shared=first == 0)
        if not which.shape[1]:
            continue
        w, k = hidden_rows(problem.net, problem.fast, nodes.low, nodes.high, which + first, first)
        least = lowest_under_cut(w, k, cut, shift, problem.middle, problem.half, torch.cat([wanted, wanted], 1))
        least = torch.nan_to_num(least, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
        count = which.shape[1]
        at = (which + first).expand(len(nodes), -1)
        low = torch.maximum(nodes.low.gather(1, at), least[:, :count])
        high = torch.minimum(nodes.high.gather(1, at), -least[:, count:])
        nodes.low.scatter_(1, at, low)
        nodes.high.scatter_(1, at, high)
        empty |= (low > high).any(1)
    return empty


def _pressing(nodes: Nodes) -> Tensor:
    """Which undecided neurons of each node are worth new bounds: those that cost its bound most."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    size = undecided.shape[1]
    most = max(REFINED, REFINEMENT // max(size, 1))
    if size <= most:
        return undecided
    score = torch.where(undecided, nodes.score, torch.full_like(nodes.score, -1.0))
    least = score.topk(most, dim=1).values[:, -1:]
    return undecided & (score >= least)


def _positions(mask: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
    """The columns that are set in each row of a mask, (rows, most) or (1, most) if shared, and which of them count."""
    if shared:
        which = mask.any(0).nonzero()[:, 0]
        return which[None], mask[:, which]
    most = int(mask.sum(1).max()) if len(mask) else 0
    wanted, which = mask.to(torch.int8).topk(most, dim=1)
    return which, wanted.bool()


def hidden_rows(
    net: Condensed, side: Matrices, low: Tensor, high: Tensor, which: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Lower linear bounds of +z and −z of some neurons of one layer: (nodes, rows, d), (nodes, rows).

    The layer begins with neuron `first`; `low` and `high` are (nodes, n). `which` is (nodes, neurons), or (1, neurons)
    in the first layer, whose rows all nodes share.
    """
    rows, b, charge = side.neurons.a[which], side.neurons.b[which], side.charge[which]
    b, error = torch.cat([b, -b], 1), torch.cat([charge, charge], 1) * (1.0 + 2.0**-10)
    if not first:
        return torch.cat([rows, -rows], 1), (b - error).expand(len(low), -1)
    v = side.neurons.m[:, :first][which]
    v = torch.cat([v, -v], 1)
    low, high = low[:, :first], high[:, :first]
    relaxation = _Relaxation.of(low, high)
    floor = torch.where(relaxation.unstable, (high > -low).to(low.dtype), relaxation.steep)
    u = torch.empty_like(v)
    for start, end in reversed([b for b in net.blocks if b[1] <= first]):
        part = v[..., start:end]
        slope = torch.where(part > 0, floor[:, None, start:end], relaxation.steep[:, None, start:end])
        u[..., start:end] = part * slope
        if start:
            v[..., :start] += u[..., start:end] @ side.neurons.m[start:end, :start]
    a = u @ side.neurons.a[:first]
    a[:, : which.shape[1]] += rows
    a[:, which.shape[1] :] -= rows
    k = b + u @ side.neurons.b[:first] + (v.clamp_max(0.0) * relaxation.lift[:, None]).sum(-1)
    error = error + u.abs() @ side.charge[:first]
    error = error + gamma(first + 6, side.unit) * (v.abs() * (relaxation.lift[:, None] + side.span[:first])).sum(-1)
    return a, k - error * (1.0 + 2.0**-10)
