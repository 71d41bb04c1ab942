"""Surface: margins of a network with gradients that do not die.

ReLU networks are flat where their neurons are off, and plain gradients stall there. The surface computes the exact
outputs, but lets gradients pass through inactive neurons with a small slope (the *leak*, one number per row: 0 is the
true gradient). What is found with such a gradient is always judged by the exact outputs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from radii._torch import Tensor, torch
from radii.models.convolutions import Conv, ConvTranspose
from radii.models.graph import Graph
from radii.models.operators import Clip, Dense, Operator, Relu


class _Late(Exception):
    """The time that an attack had is over."""


class Surface:
    """Margins f_label − f_target of a graph's logits, batched over rows of (flat input, label, target).

    A target of −1 means the strongest other class. When the network ends in a ReLU, its outputs tie at 0 as soon as
    the label's pre-activation is not positive: the ReLU is dropped and a constant 0 joins the outputs as one more
    class, so that this way to break the label is a target (number `classes`) like any other.
    """

    def __init__(self, graph: Graph, device: torch.device | str, dtype: torch.dtype) -> None:
        logits = graph.logits
        self.classes = logits.nodes[-1].size
        self.shape = logits.input_shape
        self.size = logits.nodes[0].size
        self.rectified = isinstance(logits.nodes[-1].operator, Relu)
        if self.rectified:
            logits = logits.upto(logits.nodes[-1].inputs[0])
        self.graph = _without_dust(logits).to(dtype, device)
        self.device, self.dtype = torch.device(device), dtype
        self.widest = max(node.size for node in logits.nodes)
        self.values = sum(node.size for node in logits.nodes)
        self.evaluations = 0
        self._end = math.inf

    @contextmanager
    def until(self, end: float) -> Iterator[None]:
        """Leave the block before the first evaluation after `end`, in this process's CPU seconds."""
        self._end = end
        try:
            yield
        except _Late:
            pass
        finally:
            self._end = math.inf

    def _outputs(self, x: Tensor, leak: Tensor | None) -> Tensor:
        if time.process_time() > self._end:
            raise _Late
        results: list[Tensor] = []
        for node in self.graph.nodes:
            operator = node.operator
            if operator is None:
                results.append(x.reshape(-1, *self.shape))
                continue
            inputs = [results[i] for i in node.inputs]
            if leak is not None and isinstance(operator, Relu):
                results.append(_gate(inputs[0], leak, 0.0, torch.inf))
            elif leak is not None and isinstance(operator, Clip):
                results.append(_gate(inputs[0], leak, operator.low, operator.high))
            else:
                results.append(operator(*inputs))
        flat = results[-1].flatten(1)
        return torch.nn.functional.pad(flat, (0, 1)) if self.rectified else flat

    def outputs(self, x: Tensor) -> Tensor:
        """The logits of flat rows; with one more column of zeros when the network ends in a ReLU."""
        with torch.no_grad():
            return self._outputs(x, None)

    def margin(self, x: Tensor, labels: Tensor, targets: Tensor) -> Tensor:
        """f_label − f_target of flat rows: the row is broken where it is not positive."""
        return _margin(self.outputs(x), labels, targets)

    def slope(self, x: Tensor, labels: Tensor, targets: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        """The margins of flat rows and their (leaky) gradients."""
        return self.differentiate(x, leak, lambda outputs: _margin(outputs, labels, targets))

    def differentiate(self, x: Tensor, leak: Tensor, value: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """A number for each flat row, computed from its outputs, and its (leaky) gradient."""
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            result = value(self._outputs(x, leak))
            self.evaluations += x.shape[0]
            (grad,) = torch.autograd.grad(result.sum(), x)
        return result.detach(), torch.nan_to_num(grad)

    def rectify(self, outputs: Tensor, leak: Tensor) -> Tensor:
        """The network's own outputs from those of this surface: without the added column, behind the last ReLU."""
        return _gate(outputs[:, : self.classes], leak, 0.0, torch.inf) if self.rectified else outputs


def _without_dust(graph: Graph) -> Graph:
    """The graph with weights below 10⁻¹² of the largest set to 0.

    Trained networks hold many such weights; they do not reach a float32 sum, but the subnormal products they make
    slow a processor down tenfold.
    """

    def clean(operator: Operator | None) -> Operator | None:
        if isinstance(operator, (Dense, Conv, ConvTranspose)) and operator.weight.numel():
            size = operator.weight.abs()
            return replace(operator, weight=torch.where(size < 1e-12 * size.max(), 0.0, operator.weight))
        return operator

    return Graph(tuple(replace(node, operator=clean(node.operator)) for node in graph.nodes))


def _gate(x: Tensor, leak: Tensor, low: float, high: float) -> Tensor:
    from radii.attacks.leaky_gate import LeakyGate

    apply: Callable[..., Tensor] = LeakyGate.apply
    return apply(x, leak, low, high)


def _margin(outputs: Tensor, labels: Tensor, targets: Tensor) -> Tensor:
    own = outputs.gather(1, labels[:, None])
    others = outputs.scatter(1, labels[:, None], -torch.inf).amax(1)
    chosen = outputs.gather(1, targets.clamp_min(0)[:, None])[:, 0]
    return own[:, 0] - torch.where(targets < 0, others, chosen)
