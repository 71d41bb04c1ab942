"""Condensed networks with Tanh (and Sigmoid, which is one): everything between the units multiplied out once a ball.

    z = A·x + b + M·y ± slack,        y = tanh(z) or relu(z), x from the centre of the ball

as in `condensed.py`, with every tanh a neuron and every ReLU that may take both signs. Products have no such form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluCurve, TanhCurve
from radii.bounds.backward_curves import collect
from radii.bounds.intermediate_curves import Relaxed
from radii.bounds.operands import Operands
from radii.engine.condensed import Condensed, Rows, combined, from_center, spanning, stack
from radii.engine.tuning import DEFAULT, Trees


@dataclass(frozen=True, eq=False)
class CurvedNet(Condensed):
    """One image's network on one ball; a *neuron* is a tanh or an undecided ReLU."""

    relu: Tensor | None = None  # (n,) which neurons are ReLUs; None where none is
    place: Tensor | None = None  # (n,) where each stands among all operands of the graph
    direct: int = 0  # neurons from here on do not depend on x but through others: their rows of A are 0

    @property
    def reach(self) -> Tensor:
        """The largest |y| of every neuron, (n,)."""
        one = torch.ones_like(self.high)
        return one if self.relu is None else torch.where(self.relu, self.high.clamp_min(0.0), one)

    def narrowed(self, low: Tensor, high: Tensor) -> CurvedNet:
        """The same with tighter intervals."""
        return replace(self, low=torch.maximum(self.low, low), high=torch.minimum(self.high, high))

    def before(self, first: int) -> CurvedNet:
        """The layers before a neuron index."""
        rows = self.neurons
        return replace(
            self,
            blocks=tuple(b for b in self.blocks if b[1] <= first),
            neurons=Rows(rows.a[:first], rows.b[:first], rows.m[:first, :first], rows.slack[:first]),
            low=self.low[:first],
            high=self.high[:first],
            relu=None if self.relu is None else self.relu[:first],
            place=None if self.place is None else self.place[:first],
            direct=min(self.direct, first),
            outputs=None,
        )

    def layer(self, first: int, last: int) -> Rows:
        """Both ends of a layer's pre-activations as objectives over those before: z of all, then −z of all."""
        rows = self.neurons.pick(torch.arange(first, last))
        m = rows.m[:, :first]
        both = torch.cat([rows.a, -rows.a]), torch.cat([rows.b, -rows.b]), torch.cat([m, -m])
        return Rows(*both, torch.cat([rows.slack, rows.slack]))


def curved(net: Condensed) -> CurvedNet:
    """A network that has curves, as one."""
    assert isinstance(net, CurvedNet)
    return net


def has_form(operands: Operands) -> bool:
    """Whether every curve of a graph is a tanh or a ReLU."""
    return all(isinstance(curve, (TanhCurve, ReluCurve)) for curve in operands.curves.values())


def condense_curves(net: Relaxed, trees: Trees = DEFAULT.trees) -> CurvedNet:
    """The condensed network of bounds of one ball."""
    operands, kept = net.operands, {}
    for node, curve in operands.curves.items():
        worth = curve.worth(operands.ends(node, net.low, net.high))[0]
        # Lines of a tanh are never exact, so all of them are kept, however short their intervals.
        kept[node] = worth if isinstance(curve, ReluCurve) else torch.ones_like(worth)
    chosen = {k: mask.nonzero()[:, 0] for k, mask in kept.items() if bool(mask.any())}
    sizes = [0, *(len(which) for which in chosen.values())]
    starts = torch.tensor(sizes).cumsum(0).tolist()
    last = len(net.graph.nodes) - 1
    parts = [_rows(net, kept, chosen, starts[-1], operands.of_node[k][0].source, which) for k, which in chosen.items()]
    neurons = stack(parts) if parts else _rows(net, kept, chosen, 0, last, torch.zeros(0, dtype=torch.int64))
    place = [operands.of_node[k][0].start + which for k, which in chosen.items()]
    at = torch.cat(place) if place else torch.zeros(0, dtype=torch.int64)
    relus = [torch.full((len(w),), isinstance(operands.curves[k], ReluCurve)) for k, w in chosen.items()]
    relu = torch.cat(relus) if relus else None
    used = neurons.a.any(1).nonzero()[:, 0]
    direct = int(used[-1]) + 1 if len(used) else 0
    return CurvedNet(
        net.region.shifted(),
        tuple(pairwise(starts)),
        neurons,
        net.low[0, at],
        net.high[0, at],
        tuple(chosen.items()),
        _rows(net, kept, chosen, starts[-1], last, torch.arange(net.graph.nodes[-1].size)),
        spanning(neurons.a, trees) if direct == len(at) else None,
        relu if relu is not None and bool(relu.any()) else None,
        at,
        direct,
    )


def margins_of(net: CurvedNet, rows: Tensor, shift: Tensor) -> Rows:
    """rows·outputs − shift as objectives, the rounding of the difference in their slack."""
    assert net.outputs is not None
    plain = combined(net, net.outputs, rows)
    rounding = 2.0**-51 * (plain.b.abs() + shift.abs())
    return Rows(plain.a, plain.b - shift, plain.m, plain.slack + rounding)


def _rows(
    net: Relaxed, kept: dict[int, Tensor], chosen: dict[int, Tensor], size: int, start: int, which: Tensor
) -> Rows:
    """Some values of a node as rows of the input and of the kept neurons."""
    graph = net.graph
    width = max(graph.nodes[i].size for i in range(start + 1))
    step = max(1, net.tuning.curve_coefficients // width)
    out = []
    for begin in range(0, max(1, len(which)), step):
        units = which[begin : begin + step]
        rows = net.low.new_zeros((1, len(units), graph.nodes[start].size))
        rows[0, torch.arange(len(units)), units] = 1.0
        found = collect(net.operands, start, rows, net.lines, net.magnitudes, kept)
        m, first = net.low.new_zeros((len(units), size)), 0
        for node, columns in chosen.items():
            if node in found.kept:
                m[:, first : first + len(columns)] = found.kept[node][0][:, columns]
            first += len(columns)
        out.append(from_center(net.region, Rows(found.a[0], found.c[0], m, found.error[0])))
    return stack(out)
