"""Constant folding: nodes that do not depend on the input are evaluated while the file is read."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from radii.models.importer.builder import Refused, refuse_huge
from radii.models.runtime import session

RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

# What every runtime computes alike: IEEE 754 settles the result, or nothing but places change.
_ROUNDED = frozenset({"Abs", "Add", "Cast", "Ceil", "Clip", "Div", "Floor", "Max", "Min", "Mul", "Neg", "Sqrt", "Sub"})
_CHOSEN = frozenset({"Constant", "ConstantOfShape", "Expand", "Gather", "Identity", "Relu", "Slice", "Split", "Where"})
_MOVED = frozenset({"Concat", "Flatten", "Pad", "Reshape", "Shape", "Squeeze", "Tile", "Transpose", "Unsqueeze"})
MOST_WORK = 2**36  # multiplications of one product of constants, some seconds
EXACT = _ROUNDED | _CHOSEN | _MOVED


def attributes(node: Any) -> dict[str, Any]:
    """The attributes of a node as Python values; texts are decoded."""
    found = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def constant(node: Any) -> NDArray[Any]:
    """The value of a Constant node in any of its forms."""
    given = attributes(node)
    if "value" in given:
        return np.asarray(numpy_helper.to_array(given["value"]))
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in given:
            return np.asarray(given[name], dtype=dtype)
    if "value_ints" in given:
        return np.asarray(given["value_ints"], dtype=np.int64)
    raise Refused("a constant that is neither a tensor nor a number")


def shape_of(shape: tuple[int, ...], given: dict[str, Any]) -> NDArray[np.int64]:
    """What the Shape operator says of a shape."""
    return np.asarray(shape[slice(given.get("start", 0), given.get("end"))], dtype=np.int64)


def _refuse_long(operator: str, shapes: list[tuple[int, ...]]) -> None:
    """Refuse a product that nothing could stop once it is begun."""
    if operator in ("MatMul", "Gemm") and len(shapes) == 2 and all(len(shape) > 1 for shape in shapes):
        work = prod(shapes[0]) * prod(shapes[1]) // max(1, min(shapes[0][-1], shapes[1][-2]))
        if work > MOST_WORK:
            raise Refused(f"a product of constants of shapes {shapes[0]} and {shapes[1]}; multiply them when exporting")


def evaluate(node: Any, inputs: list[NDArray[Any] | None], opset: int) -> list[NDArray[Any]]:
    """The outputs of one node of constants, by onnxruntime."""
    if node.op_type in RANDOM:
        raise Refused("it draws random numbers; export the network in evaluation mode")
    if node.op_type in ("ConstantOfShape", "Expand", "Tile"):  # the operators whose results can be any size
        counts = inputs[0 if node.op_type == "ConstantOfShape" else 1]
        base = inputs[0].shape if node.op_type == "Tile" and inputs[0] is not None else ()
        refuse_huge((*base, *(int(n) for n in np.ravel(counts if counts is not None else ()))))
    _refuse_long(node.op_type, [array.shape for array in inputs[:2] if array is not None])
    named = {name: array for name, array in zip(node.input, inputs) if name and array is not None}
    graph = helper.make_graph(
        [node],
        "constant",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in named.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    try:
        results = session(model.SerializeToString()).run(None, named)
    except Exception as error:  # onnxruntime raises a dozen private types
        raise Refused(f"a constant that cannot be computed: {str(error).splitlines()[0][:120]}") from error
    return [np.asarray(r) for r in results]
