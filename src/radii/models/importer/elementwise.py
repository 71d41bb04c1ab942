"""Arithmetic with constants and branches, and the activations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.models.importer.builder import Builder, Refused, Step, Value, inverse
from radii.models.importer.call import Call, Handler
from radii.models.operators import Add, Clip, LeakyRelu, Operator, Product, Relu, Sigmoid, Softmax, Tanh

MINUS = np.asarray(-1.0, dtype=np.float32)


def _branches(b: Builder, operator: Operator, left: Value, right: Value) -> Value:
    """Two branches joined, broadcast against each other."""
    one, two = b.aligned([left, right])
    try:
        shape = np.broadcast_shapes(one.shape, two.shape)
    except ValueError:
        raise Refused(f"expected shapes that fit each other, got {left.shape} and {right.shape}") from None
    if one.batch is not None and shape[one.batch] != 1:
        one, two = b.rebatch(one, None), b.rebatch(two, None)
    return b.emit(operator, [one, two], shape, one.batch)


def add(b: Builder, call: Call) -> Value:
    """The sum of branches and constants."""
    values = [v for v in call.inputs if isinstance(v, Value)]
    result = values[0]
    for other in values[1:]:
        result = _branches(b, Add(), result, other)
    for constant in call.inputs:
        if isinstance(constant, np.ndarray):
            result = b.scale(result, shift=constant)
    return result


def sub(b: Builder, call: Call) -> Value:
    """x − c, c − x, or the difference of two branches."""
    left, right = call.input(0), call.input(1)
    if isinstance(left, Value):
        if isinstance(right, Value):
            return _branches(b, Add(), left, b.scale(right, MINUS))
        return b.scale(left, shift=-call.required(1))
    return b.scale(call.value(1), MINUS, call.required(0))


def mul(b: Builder, call: Call) -> Value:
    """x · c, or the product of two branches."""
    left, right = call.input(0), call.input(1)
    if isinstance(left, Value) and isinstance(right, Value):
        return _branches(b, Product(), left, right)
    return b.scale(left, call.required(1)) if isinstance(left, Value) else b.scale(call.value(1), call.required(0))


def div(b: Builder, call: Call) -> Value:
    """x / c as a product with 1 / c, taken in float64."""
    if isinstance(call.input(1), Value):
        raise Refused("a division by a computed value; only constants can divide")
    divisor = call.required(1)
    if not np.all(np.isfinite(divisor)) or np.any(divisor == 0):
        raise Refused("a division by 0 or by a constant that is not finite")
    exact = bool(np.all(np.abs(np.frexp(divisor)[0]) == 0.5))  # powers of two invert without rounding
    steps = (Step(inverse(divisor), rounded=True),)
    return b.scale(call.value(), 1.0 / divisor.astype(np.float64), rounded=not exact, steps=steps)


def neg(b: Builder, call: Call) -> Value:
    """−x."""
    return b.scale(call.value(), MINUS)


def _activation(operator: Operator) -> Handler:
    def handle(b: Builder, call: Call) -> Value:
        x = call.value()
        return b.emit(operator, [x], x.shape, x.batch)

    return handle


def leaky_relu(b: Builder, call: Call) -> Value:
    """x where positive, alpha · x elsewhere."""
    x = call.value()
    return b.emit(LeakyRelu(float(call.get("alpha", 0.01))), [x], x.shape, x.batch)


def clip(b: Builder, call: Call) -> Value:
    """x cut to an interval given by attributes (before opset 11) or constant inputs."""
    x = call.value()
    low = _scalar(call.get("min"), call.constant(1), -np.inf)
    high = _scalar(call.get("max"), call.constant(2), np.inf)
    # The largest number of the type, the documented default of the attributes, means no limit.
    low = -np.inf if low <= -_largest(call.constant(1)) else low
    high = np.inf if high >= _largest(call.constant(2)) else high
    if low > high:
        raise Refused(f"expected a lower limit below the upper one, got {low} and {high}")
    if low == -np.inf and high == np.inf:
        return x
    operator = Relu() if (low, high) == (0.0, np.inf) else Clip(low, high)
    return b.emit(operator, [x], x.shape, x.batch)


def _largest(array: NDArray[Any] | None) -> float:
    """The largest finite number of a limit's type; limits that are attributes are float32."""
    return float(np.finfo(np.float64 if array is not None and array.dtype == np.float64 else np.float32).max)


def _scalar(attribute: float | None, array: NDArray[Any] | None, default: float) -> float:
    if attribute is not None:
        return float(attribute)
    return default if array is None or array.size == 0 else float(array.reshape(-1)[0])


def softmax(b: Builder, call: Call) -> Value:
    """Noted, not emitted: it must be the network's end."""
    x = call.value()
    axis = call.get("axis", 1 if call.opset < 13 else -1) % x.rank
    covered = x.shape[axis:] if call.opset < 13 else (x.shape[axis],)
    if int(np.prod(covered)) != int(np.prod(x.shape)):
        raise Refused(f"a softmax over a part of shape {x.shape}; only one over all classes is supported")
    return Value(x.node, x.shape, x.batch, Softmax(log=call.operator == "LogSoftmax"))


TABLE: dict[str, Handler] = {
    "Add": add,
    "Sum": add,
    "Sub": sub,
    "Mul": mul,
    "Div": div,
    "Neg": neg,
    "Relu": _activation(Relu()),
    "Sigmoid": _activation(Sigmoid()),
    "Tanh": _activation(Tanh()),
    "LeakyRelu": leaky_relu,
    "Clip": clip,
    "Softmax": softmax,
    "LogSoftmax": softmax,
}
