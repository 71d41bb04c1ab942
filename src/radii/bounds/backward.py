"""Backward linear bounds (CROWN): a linear function of any node's value bounded by a linear function of the input.

One pass carries a batch of images × rows of coefficients from a node back to the input. At every ReLU that may take
both signs the pass either relaxes it by lines (a bound) or stops and collects its coefficient (the exact condensed
form, see `condense`). Rounding is charged as it happens: passing coefficients a of y = Lx + c loses at most
γ·|a|·(|L|·|x| + |c|), a dot product with magnitudes that are known from the interval bounds. The pass runs in the
precision of its rows and charges for it; convolutions are six times faster in float32 than in float64. In float32 all
values are measured from those at the centre (see `deviations`): what is charged then shrinks with the ball.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluLines
from radii.bounds.rounding import UP, gamma, unit_of
from radii.models.graph import Graph
from radii.models.operators import Add, Affine, Relu


@dataclass(frozen=True, eq=False)
class Linear:
    """Rows of a·x + c − error that bound the asked values from below, (batch, rows, …)."""

    a: Tensor
    c: Tensor
    error: Tensor
    collected: dict[int, Tensor]

    def shifted(self) -> Tensor:
        """The constant with the rounding error taken off."""
        return self.c - self.error


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """For each node: |value| and, for affine operators, |L|·|inputs| + |c|, flat (batch, size); grown node by node.

    Of values that are measured from a reference, `missed` is how far that of each node can be from what the operator
    makes of its inputs' ones: no constants are left then.
    """

    value: list[Tensor]
    product: list[Tensor]
    missed: list[Tensor] | None = None

    def grow(self, graph: Graph, low: Tensor, high: Tensor) -> None:
        """Adds the next node, whose value lies between `low` and `high`."""
        node = graph.nodes[len(self.value)]
        value = torch.maximum(low.abs(), high.abs()).flatten(1) * UP
        if isinstance(node.operator, Affine):
            inputs = [self.value[i].reshape(-1, *graph.nodes[i].shape) for i in node.inputs]
            self.product.append(node.operator.absolute()(*inputs).flatten(1) * UP)
        else:
            self.product.append(value)
        self.value.append(value)

    def narrow(self, index: int, low: Tensor, high: Tensor) -> None:
        """Better bounds of a node that was grown already."""
        self.value[index] = torch.minimum(self.value[index], torch.maximum(low.abs(), high.abs()).flatten(1) * UP)

    def rows(self, index: Tensor) -> Magnitudes:
        """The magnitudes of these images of the batch."""
        missed = None if self.missed is None else [m[index] for m in self.missed]
        return Magnitudes([v[index] for v in self.value], [p[index] for p in self.product], missed)

    def to(self, dtype: torch.dtype) -> Magnitudes:
        """The same in another precision, rounded up, and at least its least normal number."""
        up, tiny = 1.0 + 2 * unit_of(dtype), torch.finfo(dtype).tiny

        def cast(values: list[Tensor]) -> list[Tensor]:
            return [(v * up).to(dtype).clamp_min(tiny) for v in values]

        return Magnitudes(cast(self.value), cast(self.product), None if self.missed is None else cast(self.missed))


def backward(
    graph: Graph,
    start: int,
    rows: Tensor,
    lines: dict[int, ReluLines],
    magnitudes: Magnitudes,
    collect: bool = False,
    slopes: dict[int, Tensor] | None = None,
) -> Linear:
    """Bounds rows·value(start) from below by a linear function of the input.

    `rows` is (batch, rows, size of the node); `lines` has the relaxation of every ReLU node that is met. With `collect`
    the coefficients of unstable ReLU outputs are kept in `collected` instead of being relaxed. `slopes` are lower
    slopes of each row's own, (batch, rows, size), by ReLU node. Lines and magnitudes of values that are measured from a
    reference bound rows·(value − its reference) by a function of the input less its own; nothing is collected then.
    """
    batch, count = rows.shape[:2]
    unit = unit_of(rows.dtype)
    pending: dict[int, Tensor] = {start: rows}
    constant = rows.new_zeros((batch, count))
    error = rows.new_zeros((batch, count))
    gross = rows.new_zeros((batch, count))  # of what is added to the constant: each addition rounds
    collected: dict[int, Tensor] = {}
    for index in range(start, 0, -1):
        a = pending.pop(index, None)
        if a is None:
            continue
        node = graph.nodes[index]
        size = a.abs()
        charge = 2 * unit * magnitudes.value[index]
        if isinstance(node.operator, Relu):
            if collect:
                unstable = lines[index].unstable[:, None]
                collected[index] = torch.where(unstable, a, torch.zeros_like(a))
                through = torch.where(unstable, torch.zeros_like(a), a * lines[index].slope_high[:, None])
            else:
                through, gain = _relax(a, size, lines[index], None if slopes is None else slopes[index])
                constant, gross = constant + gain, gross + gain.abs()
                charge = charge + _relax_charge(lines[index], magnitudes.value[node.inputs[0]])
            error = error + _dot(size, charge) + _add(pending, node.inputs[0], through, magnitudes)
            continue
        operator = node.operator
        if not isinstance(operator, Affine):
            raise TypeError(f"{type(operator).__name__} is not a lowered operator")
        # Two more terms: in float32 every constant of the graph was rounded too. Where an Add broadcast an operand, the
        # coefficients of all its copies are added up on the way back: as many terms as the node has values.
        stretched = isinstance(operator, Add) and any(graph.nodes[i].size != node.size for i in node.inputs)
        terms = node.size if stretched else operator.terms
        charge = charge + gamma(terms + 2, unit) * magnitudes.product[index]
        shaped = a.reshape(batch * count, *node.shape)
        if magnitudes.missed is not None:
            charge, constants = charge + magnitudes.missed[index], None
        else:
            constants = _constants(operator, graph, node.inputs, rows)
        if constants is not None:
            charge = charge + gamma(node.size, unit) * constants.abs()
            gain = (shaped.flatten(1) @ constants).reshape(batch, count)
            constant, gross = constant + gain, gross + gain.abs()
        error = error + _dot(size, charge)
        shapes = tuple(graph.nodes[i].shape for i in node.inputs)
        for i, part in zip(node.inputs, operator.adjoint(shaped, shapes)):
            error = error + _add(pending, i, part.reshape(batch, count, graph.nodes[i].size), magnitudes)
    first = pending.get(0, rows.new_zeros((batch, count, graph.nodes[0].size)))
    return Linear(first, constant, _total(graph, start, error, gross, magnitudes), collected)


def _total(graph: Graph, start: int, error: Tensor, gross: Tensor, magnitudes: Magnitudes) -> Tensor:
    """All rounding of a pass: what was charged, the additions to the constant, underflow, and its own rounding."""
    unit = unit_of(error.dtype)
    longest = max(node.size for node in graph.nodes[: start + 1])
    total = error + 2 * unit * (start + 1) * gross
    if error.dtype != torch.float64:
        # A product that underflows is off by less than the least normal number: coefficients, and what is added up.
        under = sum(p.sum(1) for p in magnitudes.product[: start + 1]) + 4.0 * (start + 1)
        total = total + (torch.as_tensor(under) * torch.finfo(error.dtype).tiny * longest)[:, None]
    return total * (1.0 + 2 * gamma(longest + start, unit)) * UP


def _dot(rows: Tensor, vector: Tensor) -> Tensor:
    """Each image's rows times its vector: (batch, rows)."""
    return torch.matmul(rows, vector[:, :, None])[..., 0]


def _add(pending: dict[int, Tensor], index: int, value: Tensor, magnitudes: Magnitudes) -> Tensor:
    """Adds coefficients of a node to those that came by other branches; what the rounding of the sum can cost."""
    if index not in pending:
        pending[index] = value
        return value.new_zeros(())
    pending[index] = pending[index] + value
    return _dot(pending[index].abs(), 2 * unit_of(value.dtype) * magnitudes.value[index])


def _relax(a: Tensor, size: Tensor, lines: ReluLines, slopes: Tensor | None) -> tuple[Tensor, Tensor]:
    """The coefficients of the ReLU's argument, and what the offsets add; `size` is |a|."""
    floor = lines.slope_low[:, None]
    if slopes is not None:
        floor = torch.where(lines.unstable[:, None], slopes, floor)
    # One of the two products is 0: as exact as choosing a slope for each coefficient, and many times faster.
    above = a.clamp_min(0.0)
    through = above * floor + (a - above) * lines.slope_high[:, None]
    # min(a, 0) = (a − |a|) / 2, without another copy of the coefficients; rounding stays within γ·|a|·offset.
    if lines.base is None:
        return through, 0.5 * (_dot(a, lines.offset) - _dot(size, lines.offset))
    return through, 0.5 * (_dot(a, lines.offset + lines.base) - _dot(size, lines.offset - lines.base))


def _relax_charge(lines: ReluLines, magnitude: Tensor) -> Tensor:
    """What a unit of |a| costs in rounding at a ReLU; slopes are at most 1, so |a·slope| is at most |a|."""
    unit = unit_of(magnitude.dtype)
    offsets = lines.offset if lines.base is None else lines.offset.abs() + lines.base.abs()
    return 2 * unit * magnitude + gamma(offsets.shape[-1], unit) * offsets


def _constants(operator: Affine, graph: Graph, inputs: tuple[int, ...], like: Tensor) -> Tensor | None:
    """c of y = Lx + c, flat; None when it is 0."""
    zeros = [torch.zeros((1, *graph.nodes[i].shape), dtype=like.dtype, device=like.device) for i in inputs]
    c = operator(*zeros).flatten(1)[0]
    return c if bool(c.any()) else None
