"""Intermediate bounds of graphs whose activations are any curves (Tanh, products, ReLU), in batches of nodes.

A node of a search gives every operand of an operator that is not affine an interval. Here the intervals are tightened
layer by layer with backward linear bounds, and rows of outputs are bounded by linear functions of the input, whose
slopes and multipliers climb the bound's own gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from radii._torch import Tensor, torch
from radii.bounds.ascent import adam
from radii.bounds.backward import Magnitudes
from radii.bounds.backward_curves import Bound, Pull, backward_curves
from radii.bounds.cuts import lowest_under_cut
from radii.bounds.interval import of_input, through
from radii.bounds.operands import Lines, Operand, Operands, Slants, lines_of
from radii.bounds.region import Region, times
from radii.bounds.rounding import U32, U64, UP, gamma
from radii.bounds.tuning import DEFAULT, Bounding
from radii.models.graph import Graph


@dataclass(frozen=True, eq=False)
class Place:
    """Where a batch of nodes lives: regions of which all hold it, and a cut g·δ + c ≤ 0 that violations meet."""

    regions: tuple[Region, ...]
    cut: Cut | None = None

    def lowest(self, a: Tensor, c: Tensor) -> Tensor:
        """A lower bound on a·x + c over the place; the cut is not looked at."""
        value = self.regions[0].lowest(a, c)
        for region in self.regions[1:]:
            value = torch.maximum(value, region.lowest(a, c))
        return value

    def minimiser(self, a: Tensor) -> Tensor:
        """A point near which a·x is least; not certified."""
        return self.regions[0].minimiser(a)

    def rows(self, index: Tensor) -> Place:
        """The place of these members of the batch."""
        return Place(tuple(r.rows(index) for r in self.regions), None if self.cut is None else self.cut.rows(index))


@dataclass(frozen=True, eq=False)
class Cut:
    """Half-spaces g·δ + c ≤ 0 in coordinates from the centre, over one box middle ± half around the ball; float32."""

    g: Tensor  # (batch, d)
    c: Tensor  # (batch,)
    middle: Tensor  # (d,)
    half: Tensor

    @staticmethod
    def of(ball: Region, a: Tensor, c: Tensor) -> Cut:
        """The cut a·x + c ≤ 0 of a batch of nodes on one ball, loosened by what float32 cannot hold."""
        down, up = (side[0] for side in ball.box())
        middle = (0.5 * (up - down)).to(torch.float32)
        half = torch.maximum(up - middle.double(), down + middle.double()) * (1.0 + 8 * U32)
        at = ball.at_center(a[:, None], c[:, None])[:, 0]
        reach = a.abs() @ (half + middle.double().abs()) * (2 * U32)
        shift = (at - reach - 2 * U32 * at.abs()).to(torch.float32)
        return Cut(a.to(torch.float32), shift, middle, half.to(torch.float32))

    def rows(self, index: Tensor) -> Cut:
        """The cuts of these members of the batch."""
        return replace(self, g=self.g[index], c=self.c[index])

    def lowest(self, ball: Region, a: Tensor, c: Tensor, tuning: Bounding) -> Tensor:
        """A lower bound on rows a·x + c, (batch, rows, d), where the cut holds."""
        size = a.abs()
        reach = torch.matmul(size, (self.half + self.middle.abs()).double()) * (2 * U32)
        at = times(a, ball.center) + c
        lost = 2 * gamma(a.shape[-1] + 1) * UP * (times(size, ball.center.abs()) + c.abs())
        shift = (at - lost - reach - 2 * U32 * at.abs()).to(torch.float32)
        least = lowest_under_cut(a.to(torch.float32), shift, self.g, self.c, self.middle, self.half, tuning=tuning)
        return torch.nan_to_num(least.double(), nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A batch of nodes on one graph: intervals of all operands, and the lines that belong to them."""

    operands: Operands
    place: Place
    low: Tensor  # (batch, operands)
    high: Tensor
    magnitudes: Magnitudes
    lines: dict[int, Lines]
    slants: Slants
    empty: Tensor  # (batch,) whether intervals crossed: no point is left
    tuning: Bounding = DEFAULT

    @property
    def graph(self) -> Graph:
        """The lowered graph."""
        return self.operands.graph

    @property
    def region(self) -> Region:
        """The region of the bounds."""
        return self.place.regions[0]

    def rows(self, index: Tensor) -> Relaxed:
        """The same for these members of the batch."""
        return Relaxed(
            self.operands,
            self.place.rows(index),
            self.low[index],
            self.high[index],
            self.magnitudes.rows(index),
            {k: v.rows(index) for k, v in self.lines.items()},
            self.slants.rows(index),
            self.empty[index],
            self.tuning,
        )

    def bound(self, rows: Tensor, slants: Slants, pull: Pull | None) -> Bound:
        """Linear lower bounds of rows·outputs with these slopes and multipliers."""
        every, ends = self.operands, (self.low[:, None], self.high[:, None])
        lines = {
            k: lines_of(every, k, ends, every.parts(k, slants.under), every.parts(k, slants.over)) for k in every.curves
        }
        return backward_curves(self.operands, len(self.graph.nodes) - 1, rows, lines, self.magnitudes, pull)

    def margins(self, rows: Tensor) -> Bound:
        """Linear lower bounds of rows·outputs, for rows of shape (batch, rows, outputs)."""
        return backward_curves(self.operands, len(self.graph.nodes) - 1, rows, self.lines, self.magnitudes)

    def best_margins(self, rows: Tensor, steps: int | None = None) -> tuple[Tensor, Tensor]:
        """Linear lower bounds a·x + c of rows·outputs, their slopes optimised for the least values on the region."""
        found = climb(self, rows, self.tuning.steps if steps is None else steps)
        return found.a, found.c


def relax(
    operands: Operands,
    place: Place,
    low: Tensor,
    high: Tensor,
    wanted: Tensor | None = None,
    go_on: Callable[[], bool] = lambda: True,
    tuning: Bounding = DEFAULT,
) -> Relaxed:
    """Intervals and lines of all operands over a place, from known intervals (batch, operands), ±inf where none is.

    Only operands that are `wanted` are bounded backwards, and none once `go_on` says no: the others by intervals alone.
    """
    graph = operands.graph
    low, high = low.clone(), high.clone()
    first_low, first_high = of_input(graph, place.regions[0])
    for region in place.regions[1:]:
        other_low, other_high = of_input(graph, region)
        first_low, first_high = torch.maximum(first_low, other_low), torch.minimum(first_high, other_high)
    lows, highs = [first_low], [first_high]
    sizes = Magnitudes([], [])
    sizes.grow(graph, first_low, first_high)
    empty = torch.zeros(len(low), dtype=torch.bool)
    lines: dict[int, Lines] = {}
    choices: dict[int, Slants] = {}
    for index, node in enumerate(graph.nodes[1:], start=1):
        if index in operands.curves:
            for operand in operands.of_node[index]:
                at = slice(operand.start, operand.end)
                low[:, at] = torch.maximum(low[:, at], lows[operand.source].flatten(1))
                high[:, at] = torch.minimum(high[:, at], highs[operand.source].flatten(1))
            useful = operands.curves[index].worth(operands.ends(index, low, high))
            for operand in operands.of_node[index]:
                at = slice(operand.start, operand.end)
                chosen = useful if wanted is None else useful & wanted[at]
                units = chosen.any(0).nonzero()[:, 0]
                _tighten(operands, operand, place, (low, high), units, (lines, sizes), tuning, go_on)
                crossed = low[:, at] > high[:, at]
                empty |= crossed.any(1)
                # A node without points is dropped; until then its intervals must not upset the arithmetic.
                high[:, at] = torch.where(crossed, low[:, at], high[:, at])
                shape = lows[operand.source].shape
                lows[operand.source], highs[operand.source] = low[:, at].reshape(shape), high[:, at].reshape(shape)
            choices[index] = Slants.of_node(operands, index, low, high)
            under, over = (torch.split(t, node.size, -1) for t in (choices[index].under, choices[index].over))
            lines[index] = lines_of(operands, index, (low[:, None], high[:, None]), under, over)
        a, b = through(node, [lows[i] for i in node.inputs], [highs[i] for i in node.inputs])
        lows.append(a)
        highs.append(b)
        sizes.grow(graph, a, b)
    slants = Slants.join(low, list(choices.values()))
    return Relaxed(operands, place, low, high, sizes, lines, slants, empty, tuning)


def _tighten(
    operands: Operands,
    operand: Operand,
    place: Place,
    ends: tuple[Tensor, Tensor],
    which: Tensor,
    known: tuple[dict[int, Lines], Magnitudes],
    tuning: Bounding,
    go_on: Callable[[], bool],
) -> None:
    """Backward bounds of some units of an operand, in place, until `go_on` says no."""
    low, high = ends
    if operand.source == 0 or not len(which) or not go_on():
        return
    width = max(operands.graph.nodes[i].size for i in range(operand.source + 1))
    step = max(1, tuning.curve_coefficients // (2 * len(low) * width))
    for begin in range(0, len(which), step):
        if not go_on():
            break
        units = which[begin : begin + step]
        rows = low.new_zeros((len(units), operands.graph.nodes[operand.source].size))
        rows[torch.arange(len(units)), units] = 1.0
        both = torch.cat([rows, -rows])[None].expand(len(low), -1, -1)
        bound = backward_curves(operands, operand.source, both, known[0], known[1])
        least = place.lowest(bound.a, bound.c)
        if place.cut is not None:
            least = torch.maximum(least, place.cut.lowest(place.regions[-1], bound.a, bound.c, tuning))
        at, count = operand.start + units, len(units)
        low[:, at] = torch.fmax(low[:, at], least[:, :count])
        high[:, at] = torch.fmin(high[:, at], -least[:, count:])


@dataclass(frozen=True, eq=False)
class Climb:
    """The best linear bounds a·x + c that a climb met, (batch, rows), with their slopes and multipliers."""

    a: Tensor
    c: Tensor
    value: Tensor
    slants: Slants
    pull: Tensor | None
    met: dict[int, Tensor]  # coefficients of the values of curved nodes

    def rows(self, index: Tensor) -> Climb:
        """The same for these members of the batch."""
        pull = None if self.pull is None else self.pull[index]
        met = {k: v[index] for k, v in self.met.items()}
        return Climb(self.a[index], self.c[index], self.value[index], self.slants.rows(index), pull, met)


def climb(
    net: Relaxed,
    rows: Tensor,
    steps: int,
    slants: Slants | None = None,
    pull: Pull | None = None,
    shift: Tensor | None = None,
) -> Climb:
    """Slopes and multipliers moved along the gradient of the least values of rows·outputs − shift; the best met."""
    count = rows.shape[1]
    start = (net.slants if slants is None else slants).repeated(count).clamp()
    moving = [start.under, start.over, *([pull.size] if pull is not None else [])]
    spans = [start.under_most - start.under_least, start.over_most - start.over_least]
    moments = [(torch.zeros_like(m), torch.zeros_like(m)) for m in moving]
    best: Climb | None = None
    for step in range(steps + 1):
        with torch.set_grad_enabled(step < steps):
            moving = [m.detach().requires_grad_(step < steps) for m in moving]
            slanted = replace(start, under=moving[0], over=moving[1])
            pulled = None if pull is None else replace(pull, size=moving[2])
            bound = _shifted(net.bound(rows, slanted, pulled), shift)
            # At the minimiser the bound has the value and the gradient of its least value; certified below.
            value = (bound.a * net.place.minimiser(bound.a.detach())).sum(-1) + bound.c
            gradients = torch.autograd.grad(value.sum(), moving, allow_unused=True) if step < steps else ()
        best = _better(best, bound, value, slanted, None if pull is None else moving[2])
        if step == steps or bool((best.value > 0).all()):
            break
        if pull is not None and len(spans) == 2:
            spans.append(_scale(net, bound.met, moving[2]))
        rate = net.tuning.curve_rate * net.tuning.curve_decay**step
        moving = [_moved(m, g, s, k, rate, step) for m, g, s, k in zip(moving, gradients, spans, moments)]
        kept = replace(start, under=moving[0], over=moving[1]).clamp()
        moving[:2] = [kept.under, kept.over]
    assert best is not None
    return replace(best, value=net.place.lowest(best.a, best.c))


def _shifted(bound: Bound, shift: Tensor | None) -> Bound:
    """The bound of the value less a shift."""
    if shift is None:
        return bound
    return replace(bound, c=bound.c - shift - 4 * U64 * (bound.c.detach().abs() + shift.abs()))


def _moved(
    value: Tensor, gradient: Tensor | None, span: Tensor, moments: tuple[Tensor, Tensor], rate: float, step: int
) -> Tensor:
    """One step of Adam, measured in the span of each number."""
    if gradient is None:
        return value.detach()
    return value.detach() + rate * span * adam(torch.nan_to_num(gradient) * span, *moments, step, 1e-30)


def _scale(net: Relaxed, met: dict[int, Tensor], like: Tensor) -> Tensor:
    """What size of multiplier is worth trying at each operand: the largest coefficient of its layer, a part of it."""
    scale = torch.zeros_like(like)
    for operand in net.operands.all:
        if operand.node in met:
            largest = met[operand.node].abs().amax(-1, keepdim=True)
            scale[..., operand.start : operand.end] = net.tuning.multiplier * largest
    return scale


def _better(best: Climb | None, bound: Bound, value: Tensor, slants: Slants, pull: Tensor | None) -> Climb:
    """The better of two bounds, row by row."""
    a, c, value = bound.a.detach(), bound.c.detach(), value.detach()
    under, over = slants.under.detach(), slants.over.detach()
    pull = None if pull is None else pull.detach()
    if best is None:
        return Climb(a, c, value, replace(slants, under=under, over=over), pull, bound.met)
    gain = value > best.value
    row = gain[..., None]
    kept = replace(
        slants, under=torch.where(row, under, best.slants.under), over=torch.where(row, over, best.slants.over)
    )
    met = {k: torch.where(row, v, best.met[k]) for k, v in bound.met.items()}
    return Climb(
        torch.where(row, a, best.a),
        torch.where(gain, c, best.c),
        torch.where(gain, value, best.value),
        kept,
        None if pull is None or best.pull is None else torch.where(row, pull, best.pull),
        met,
    )
