"""From ONNX to the graph: reads a file's nodes in order, folds what is constant, and refuses the rest all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from radii._cpu import keep_time
from radii.errors import ModelError, UnsupportedOperator
from radii.models.arrays import with_tensors
from radii.models.graph import Graph
from radii.models.importer import elementwise, linear, shapes, windows
from radii.models.importer.builder import Builder, Refused, Value
from radii.models.importer.call import Call, Handler
from radii.models.importer.fold import EXACT, attributes, constant, evaluate, shape_of
from radii.models.importer.simplify import simplify
from radii.models.importer.suggest import suggestion
from radii.models.inputs import show

Shape = tuple[int, ...]
OPSETS = range(8, 21)
_SHAPE_HINT = "give input_shape=… (--input-shape on the command line)"
MOST_LISTED = 50  # nodes that a refusal names
MOST_NODES = 5_000  # published networks have some hundreds; the first bounds of a longer chain take over ten seconds
MOST_COMPUTED = 2**31  # bytes of constants that a file computes from others, at one time
MOST_NESTED = 50  # functions of a file in each other
DOUBLE = int(onnx.TensorProto.DOUBLE)
HANDLERS: dict[str, Handler] = {**linear.TABLE, **elementwise.TABLE, **windows.TABLE, **shapes.TABLE}


def import_graph(model: bytes, input_shape: Shape | None = None) -> Graph:
    """The network as a graph; `input_shape` (without the batch) settles sizes that the file leaves open."""
    return with_tensors(read_graph(model, input_shape))


def read_graph(model: bytes, input_shape: Shape | None = None) -> Graph:
    """The same with arrays in the place of tensors (`models/arrays.py`)."""
    proto = parse(model)
    if outside(proto):
        raise ModelError("expected a network with its weights inside, got one with weights in files; give its path")
    return Importer(proto, input_shape).run()


def parse(model: bytes) -> Any:
    """The model's protobuf, checked for being a network of a known opset."""
    try:
        proto = onnx.load_from_string(model)
    except Exception as error:  # protobuf's own error, whose place depends on its version
        raise ModelError(
            "expected an ONNX network, got bytes that do not parse; the file is truncated or not ONNX"
        ) from error
    if not proto.graph.node or not proto.graph.output or not proto.opset_import:
        raise ModelError("expected an ONNX network, got a file without nodes or outputs; it is truncated or not ONNX")
    if (count := expanded(proto)) > MOST_NODES:
        raise ModelError(f"expected a network of at most {MOST_NODES} nodes, got {count}")
    opset = opset_of(proto)
    if opset not in OPSETS:
        raise ModelError(
            f"expected an ONNX opset from {OPSETS[0]} to {OPSETS[-1]}, got {opset}; export again with opset_version=17"
        )
    if proto.functions:
        from onnx import inliner

        proto = inliner.inline_local_functions(proto)
    return proto


def expanded(proto: Any) -> int:
    """How many nodes a model has once its functions are written out: a few nested ones can stand for any number."""
    functions = {(one.domain, one.name): one for one in proto.functions}
    known: dict[tuple[str, str], int] = {}

    def count(nodes: Any, inside: tuple[tuple[str, str], ...]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in inside or len(inside) > MOST_NESTED:
                raise ModelError(
                    f"expected functions at most {MOST_NESTED} deep in each other, got more: {node.op_type}"
                )
            if key in functions and key not in known:
                known[key] = count(functions[key].node, (*inside, key))
            total += known.get(key, 1)
        return total

    return count(proto.graph.node, ())


def outside(proto: Any) -> list[Any]:
    """The constants that lie in other files, which are found from the network's own folder."""
    constants = [item.t for node in proto.graph.node for item in node.attribute if item.HasField("t")]
    return [item for item in (*proto.graph.initializer, *constants) if item.data_location == onnx.TensorProto.EXTERNAL]


def opset_of(proto: Any) -> int:
    """The version of ONNX's own operators that a model uses."""
    return max((int(o.version) for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)


class Importer:
    """One reading of one model."""

    def __init__(self, proto: Any, input_shape: Shape | None) -> None:
        self.proto = proto
        self.opset = opset_of(proto)
        self.known: dict[str, Value | NDArray[Any]] = {item.name: stored(item) for item in proto.graph.initializer}
        inputs = [item for item in proto.graph.input if item.name not in self.known]
        if len(inputs) != 1 or len(proto.graph.output) != 1:
            names = ", ".join(item.name for item in (inputs if len(inputs) != 1 else proto.graph.output))
            what = "input" if len(inputs) != 1 else "output"
            raise ModelError(
                f"expected a network with one {what}, got {names or 'none'}; export it with a single {what}"
            )
        try:
            self.builder = Builder(*traced(inputs[0], input_shape), inputs[0].name, _doubles(proto, inputs[0]))
        except Refused as refusal:
            raise ModelError(f"input {inputs[0].name}: {refusal}") from None
        self.takes = "float64" if inputs[0].type.tensor_type.elem_type == DOUBLE else "float32"
        self.known[inputs[0].name] = self.builder.input
        self.problems: list[tuple[Any, str]] = []
        self.lost: set[str] = set()
        self.inexact: list[str] = []
        self.computed = 0  # bytes of computed constants that are still held
        self.passing: dict[str, int] = {}  # those of them that no operator has taken
        self.wanted = {name for node in proto.graph.node for name in node.input} | {o.name for o in proto.graph.output}

    def run(self) -> Graph:
        """The graph, or every operator that stands in its way."""
        final = {name: place for place, node in enumerate(self.proto.graph.node) for name in node.input}
        for place, node in enumerate(self.proto.graph.node):
            keep_time()
            if node.domain not in ("", "ai.onnx"):
                self._lose(node, f"an operator of the domain {node.domain}")
            elif any(name in self.lost for name in node.input):
                reason = "" if node.op_type in HANDLERS or node.op_type == "Shape" else "not supported"
                self._lose(node, reason)
            else:
                self._read(node)
            self._forget(name for name in node.input if final[name] == place)
        if self.problems:
            raise unsupported(self.problems)
        last = self.known.get(name := self.proto.graph.output[0].name)
        if last is None:
            raise ModelError(f"expected a node that gives the output {name!r}, got none")
        if 0 in last.shape:
            raise ModelError("expected a network with outputs, got one with none: a shape of 0")
        if not isinstance(last, Value):
            raise ModelError("expected outputs that are computed from the input, got a constant")
        computes = "float64" if self.builder.mixed else "float32"
        graph = self.builder.graph(last)
        return simplify(replace(graph, inexact=tuple(self.inexact), takes=self.takes, computes=computes))

    def _lose(self, node: Any, reason: str) -> None:
        self.lost.update(name for name in node.output if name)
        if reason:
            self.problems.append((node, reason))

    def _read(self, node: Any) -> None:
        try:
            inputs = tuple(self._given(name) if name else None for name in node.input)
            results = self._results(node, inputs)
        except Refused as refusal:
            self._lose(node, str(refusal))
            return
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ModelError(f"node {label(node)} ({node.op_type}): cannot be read: {error}") from error
        self.known.update({name: value for name, value in zip(node.output, results) if name})

    def _forget(self, names: Iterable[str]) -> None:
        """Lets go of constants that nothing later reads: a chain of them need not fit into memory at once."""
        for name in names:
            if isinstance(self.known.get(name), np.ndarray) and name != self.proto.graph.output[0].name:
                del self.known[name]
                self.computed -= self.passing.pop(name, 0)

    def _given(self, name: str) -> Value | NDArray[Any]:
        if name not in self.known:
            raise ValueError(f"its input {name!r} is no constant and no output of an earlier node")
        return self.known[name]

    def _results(self, node: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if node.op_type == "Constant":
            return (constant(node),)
        if node.op_type == "Shape" and isinstance(inputs[0], Value):
            return (shape_of(inputs[0].shape, attributes(node)),)
        if not any(isinstance(value, Value) for value in inputs):
            found = tuple(evaluate(node, list(inputs), self.opset))
            if node.op_type not in EXACT and any(array.dtype.kind == "f" for array in found):
                self.inexact.append(f"{node.op_type} (node {label(node)})")
            self.passing.update({name: array.nbytes for name, array in zip(node.output, found)})
            self.computed += sum(array.nbytes for array in found)
            if self.computed > MOST_COMPUTED:
                raise ModelError("expected computed constants of at most 2 GiB, got more")
            return found
        if node.op_type not in HANDLERS:
            raise Refused("not supported")
        pending = any(isinstance(value, Value) and value.softmax is not None for value in inputs)
        if pending and node.op_type not in shapes.RENAMING:
            raise Refused("it follows a softmax, which may only end a network")
        for name in node.input:
            self.passing.pop(name, None)
        self.builder.name = label(node)
        used = tuple(name if name in self.wanted else "" for name in node.output)
        call = Call(node.op_type, attributes(node), inputs, used, self.opset)
        result = HANDLERS[node.op_type](self.builder, call)
        return result if isinstance(result, tuple) else (result,)


def stored(item: Any) -> NDArray[Any]:
    """The array of one initializer."""
    try:
        return np.asarray(numpy_helper.to_array(item))
    except Exception as error:  # numpy, onnx and protobuf each have their own
        raise ModelError(
            f"expected a constant of a known type that fills its shape, got {item.name!r} of shape {list(item.dims)}"
        ) from error


def traced(item: Any, input_shape: Shape | None) -> tuple[Shape, int | None]:
    """The full shape of one input and its batch axis, from the file's declaration and what the user gave."""
    kind = item.type.tensor_type.elem_type
    if kind not in shapes.FLOATS:
        name = onnx.TensorProto.DataType.Name(kind)
        raise ModelError(f"expected an input of float32 or float64, got {name}; export the network in float32")
    dims = [int(d.dim_value) if d.dim_value > 0 else None for d in item.type.tensor_type.shape.dim]
    if not dims:
        if input_shape is None:
            raise ModelError(f"expected a network that states its input shape, got one that does not; {_SHAPE_HINT}")
        return (1, *input_shape), 0
    batch = 0 if len(dims) > 1 and dims[0] in (None, 1) else None
    core = dims[1:] if batch == 0 else dims
    if input_shape is not None:
        fits = len(core) == len(input_shape) and all(c in (None, g) for c, g in zip(core, input_shape))
        if not fits:
            raise ModelError(f"expected the input shape of the file, {_dims(core)}, got {show(input_shape)}")
        core = list(input_shape)
    if any(n is None for n in core):
        raise ModelError(f"expected a network of fixed input size, got {_dims(core)}; {_SHAPE_HINT}")
    shape = tuple(int(n) for n in core if n is not None)
    return ((1, *shape), 0) if batch == 0 else (shape, None)


def _doubles(proto: Any, item: Any) -> bool:
    """Whether a model computes anything in float64."""
    casts = (attributes(node).get("to") for node in proto.graph.node if node.op_type == "Cast")
    return int(item.type.tensor_type.elem_type) == DOUBLE or DOUBLE in casts


def _dims(dims: list[int | None]) -> str:
    return "x".join("?" if n is None else str(n) for n in dims)


def label(node: Any) -> str:
    """A node's name, or that of its output when it has none."""
    return str(node.name or next((name for name in node.output if name), "unnamed"))


def unsupported(problems: list[tuple[Any, str]]) -> UnsupportedOperator:
    """One error that lists every node that cannot be handled, and what to do about each operator."""
    listed = "; ".join(
        f"{node.op_type} (node {label(node)})" + ("" if reason == "not supported" else f": {reason}")
        for node, reason in problems[:MOST_LISTED]
    )
    if len(problems) > MOST_LISTED:
        listed += f"; and {len(problems) - MOST_LISTED} more nodes"
    operators = tuple(dict.fromkeys(str(node.op_type) for node, _ in problems))
    return UnsupportedOperator(f"unsupported operators: {listed}. {suggestion(operators)}", operators)
