"""Nodes: subproblems of one image's condensed network, bounded in batches.

A node fixes the sign of some neurons and carries an objective. Its bound comes from one backward sweep with lower slopes α
for undecided neurons and multipliers β ≥ 0 for fixed ones; α and β climb the bound's own gradient, which one relaxed
forward sweep from the minimiser delivers. Everything is float64 with rounding charged, so every bound is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from radii.bounds.condense import Condensed, Rows, charges
from radii.bounds.cut import lowest_under_cut
from radii.bounds.rounding import U64, gamma

RATE = 0.3
DECAY = 0.85


@dataclass(eq=False)
class Nodes:
    """A batch of nodes; all tensors have the nodes along their first dimension."""

    objective: Tensor  # which row of the objectives, int64
    low: Tensor  # (nodes, n) bounds of the pre-activations inside the node
    high: Tensor
    sign: Tensor  # (nodes, n) int8: +1 fixed active, −1 fixed inactive, 0 free
    alpha: Tensor  # (nodes, n)
    beta: Tensor  # (nodes, n)
    a: Tensor  # (nodes, d) the linear bound of the objective …
    c: Tensor  # (nodes,)  … with rounding taken off
    radius: Tensor  # (nodes,) no violation of the objective closer than this
    score: Tensor  # (nodes, n) how promising a split of each neuron is

    def pick(self, index: Tensor) -> Nodes:
        """These nodes, repeated and ordered as asked."""
        return Nodes(*(getattr(self, f.name)[index] for f in fields(self)))

    def __len__(self) -> int:
        return int(self.objective.shape[0])

    @staticmethod
    def join(parts: list[Nodes]) -> Nodes:
        """All nodes of several batches."""
        return Nodes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Nodes)))


@dataclass(frozen=True, eq=False)
class Problem:
    """A condensed network with its objectives and the rounding charges of both."""

    net: Condensed
    objectives: Rows
    neuron_charge: Tensor
    objective_charge: Tensor
    middle: Tensor
    half: Tensor

    @staticmethod
    def of(net: Condensed, objectives: Rows) -> Problem:
        """The problem of bounding objectives on the condensed network."""
        magnitude = net.region.magnitude()[0]
        down, up = net.region.box()
        center = net.region.center[0]
        middle = center + 0.5 * (up[0] - down[0])
        half = 0.5 * (up[0] + down[0]) * (1.0 + 2.0**-48) + 2.0**-50 * center.abs()
        neuron = charges(net.neurons, magnitude, net.high)
        objective = charges(objectives, magnitude, net.high)
        return Problem(net, objectives, neuron, objective, middle, half)

    def roots(self) -> Nodes:
        """One node an objective, nothing fixed, not yet bounded."""
        count, n = len(self.objectives.b), self.net.size
        low, high = self.net.low.expand(count, n).clone(), self.net.high.expand(count, n).clone()
        zeros = low.new_zeros((count, n))
        return Nodes(
            torch.arange(count),
            low,
            high,
            zeros.to(torch.int8),
            (high > -low).to(low.dtype),
            zeros.clone(),
            low.new_zeros((count, self.objectives.a.shape[1])),
            low.new_zeros(count),
            low.new_zeros(count),
            zeros.clone(),
        )


@dataclass(frozen=True, eq=False)
class _Sweep:
    a: Tensor
    c: Tensor
    v: Tensor  # coefficients of the ReLU outputs
    slope: Tensor
    offset: Tensor  # of the line in use: 0 where the lower line is


def _relaxation(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    unstable = (low < 0) & (high > 0)
    width = (high - low).clamp_min(1e-300)
    steep = torch.where(unstable, high / width, (low >= 0).to(low.dtype))
    lift = torch.maximum(-steep * low, high - steep * high) + 8 * U64 * width
    return unstable, steep, torch.where(unstable, lift.clamp_min(0.0), torch.zeros_like(lift))


def _sweep(problem: Problem, nodes: Nodes, rows: Rows, relaxation: tuple[Tensor, Tensor, Tensor]) -> _Sweep:
    net = problem.net
    unstable, steep, lift = relaxation
    floor = torch.where(unstable, nodes.alpha, steep)
    pull = nodes.beta * nodes.sign
    v = rows.m.clone()
    u = torch.empty_like(v)
    slope = torch.empty_like(v)
    for first, last in reversed(net.blocks):
        part = v[:, first:last]
        slope[:, first:last] = torch.where(part > 0, floor[:, first:last], steep[:, first:last])
        u[:, first:last] = part * slope[:, first:last] - pull[:, first:last]
        if first:
            v[:, :first] += u[:, first:last] @ net.neurons.m[first:last, :first]
    offset = torch.where(v < 0, lift, torch.zeros_like(lift))
    a = rows.a + u @ net.neurons.a
    c = rows.b + u @ net.neurons.b + (v * offset).sum(1)
    error = u.abs() @ problem.neuron_charge + problem.objective_charge[nodes.objective]
    # Each product v·slope and each line's offset was rounded once more.
    error = error + gamma(v.shape[1] + 4) * (v.abs() * (lift + torch.maximum(net.high, -net.low))).sum(1)
    error = error + gamma(v.shape[1] + 4) * (pull.abs() * torch.maximum(net.high, -net.low)).sum(1)
    return _Sweep(a, c - error * (1.0 + 2.0**-20), v, slope, offset)


def _forward(problem: Problem, sweep: _Sweep, x: Tensor) -> Tensor:
    """The relaxed pre-activations at x that belong to a sweep."""
    net = problem.net
    z = x @ net.neurons.a.T + net.neurons.b
    y = torch.empty_like(z)
    for first, last in net.blocks:
        if first:
            z[:, first:last] += y[:, :first] @ net.neurons.m[first:last, :first].T
        y[:, first:last] = sweep.slope[:, first:last] * z[:, first:last] + sweep.offset[:, first:last]
    return z


def climb(problem: Problem, nodes: Nodes, steps: int) -> Tensor:
    """Improves α, β, the linear bound and the scores of nodes in place; returns their lowest values.

    A lowest value above 0 closes the node: no point of the ball inside it violates the objective.
    """
    rows = problem.objectives.pick(nodes.objective)
    relaxation = _relaxation(nodes.low, nodes.high)
    unstable = relaxation[0]
    best = torch.full_like(nodes.c, -torch.inf)
    best_alpha, best_beta = nodes.alpha.clone(), nodes.beta.clone()
    moments = [torch.zeros_like(nodes.alpha) for _ in range(4)]
    rate = RATE
    region = problem.net.region
    for step in range(max(steps, 1) + 1):
        sweep = _sweep(problem, nodes, rows, relaxation)
        value = region.lowest(sweep.a[None], sweep.c[None])[0]
        better = value > best
        best = torch.where(better, value, best)
        pick = better[:, None]
        nodes.a = torch.where(pick, sweep.a, nodes.a)
        nodes.c = torch.where(better, sweep.c, nodes.c)
        best_alpha = torch.where(pick, nodes.alpha, best_alpha)
        best_beta = torch.where(pick, nodes.beta, best_beta)
        if (step == steps and step > 0) or not problem.net.size or bool((best > 0).all()):
            break
        x = region.minimiser(sweep.a[None])[0]
        z = _forward(problem, sweep, x)
        nodes.score = torch.where(pick, _score(sweep, z, relaxation), nodes.score)
        _ascend(nodes, sweep, z, unstable, moments, rate, step)
        rate *= DECAY
    nodes.alpha, nodes.beta = best_alpha, best_beta
    return best


def _ascend(
    nodes: Nodes, sweep: _Sweep, z: Tensor, unstable: Tensor, moments: list[Tensor], rate: float, step: int
) -> None:
    """One step of Adam on α and β."""
    gradient = torch.where(unstable & (sweep.v > 0), sweep.v * z, torch.zeros_like(z))
    pull = -nodes.sign * z
    scale = sweep.v.abs().amax(1, keepdim=True)
    for k, (g, m, s) in enumerate(((gradient, moments[0], moments[1]), (pull, moments[2], moments[3]))):
        m.mul_(0.9).add_(g, alpha=0.1)
        s.mul_(0.99).add_(g * g, alpha=0.01)
        move = (m / (1 - 0.9 ** (step + 1))) / ((s / (1 - 0.99 ** (step + 1))).sqrt() + 1e-12)
        if k == 0:
            nodes.alpha = (nodes.alpha + rate * move).clamp(0.0, 1.0)
        else:
            nodes.beta = (nodes.beta + 0.3 * rate * scale * move).clamp_min(0.0)


def _score(sweep: _Sweep, z: Tensor, relaxation: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """How far each undecided neuron's line is from its ReLU at the relaxed minimiser, weighted: what a split could win."""
    unstable, _, lift = relaxation
    gap = (sweep.slope * z + sweep.offset - z.clamp_min(0.0)).abs() * sweep.v.abs()
    gain = gap + 0.1 * lift * sweep.v.abs()
    return torch.where(unstable, gain, torch.zeros_like(gain))


def refine(problem: Problem, nodes: Nodes) -> Tensor:
    """Tightens the pre-activation bounds of nodes in place under their own cuts; returns which became empty.

    Adversarial points inside a node meet a·x + c ≤ 0; layer by layer every undecided neuron is bounded under that.
    """
    net = problem.net
    empty = torch.zeros(len(nodes), dtype=torch.bool)
    for first, last in net.blocks:
        undecided = (nodes.low[:, first:last] < 0) & (nodes.high[:, first:last] > 0)
        which = undecided.any(0).nonzero()[:, 0] + first
        if not len(which):
            continue
        w, k = _hidden_rows(problem, nodes, which, first)
        least = lowest_under_cut(w, k, nodes.a, nodes.c, problem.middle, problem.half)
        least = torch.nan_to_num(least, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
        count = len(which)
        nodes.low[:, which] = torch.maximum(nodes.low[:, which], least[:, :count])
        nodes.high[:, which] = torch.minimum(nodes.high[:, which], -least[:, count:])
        empty |= (nodes.low[:, which] > nodes.high[:, which]).any(1)
    return empty


def _hidden_rows(problem: Problem, nodes: Nodes, which: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """Lower linear bounds of +z and −z of some neurons of one layer in every node: (nodes, rows, d), (nodes, rows)."""
    net = problem.net
    pick = net.neurons.pick(which)
    charge = problem.neuron_charge[which]
    a0 = torch.cat([pick.a, -pick.a])
    b0 = torch.cat([pick.b, -pick.b])
    error = torch.cat([charge, charge])
    if not first:
        return a0[None], (b0 - error).expand(len(nodes), -1)
    v = torch.cat([pick.m, -pick.m])[None, :, :first].repeat(len(nodes), 1, 1)
    low, high = nodes.low[:, :first], nodes.high[:, :first]
    unstable, steep, lift = _relaxation(low, high)
    floor = torch.where(unstable, (high > -low).to(low.dtype), steep)
    u = torch.empty_like(v)
    for start, end in reversed([b for b in net.blocks if b[1] <= first]):
        part = v[..., start:end]
        slope = torch.where(part > 0, floor[:, None, start:end], steep[:, None, start:end])
        u[..., start:end] = part * slope
        if start:
            v[..., :start] += u[..., start:end] @ net.neurons.m[start:end, :start]
    size = torch.maximum(net.high, -net.low)[:first]
    a = a0 + u @ net.neurons.a[:first]
    k = b0 + u @ net.neurons.b[:first] + (v.clamp_max(0.0) * lift[:, None]).sum(-1)
    error = error + u.abs() @ problem.neuron_charge[:first]
    error = error + gamma(first + 4) * (v.abs() * (lift[:, None] + size)).sum(-1)
    return a, k - error * (1.0 + 2.0**-20)
