"""Classifier: a network with its input shape, value domain, preprocessing and content fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from radii._html import table
from radii._torch import Tensor, torch
from radii.errors import DataError, ModelError, UnsupportedOperator
from radii.models.arrays import as_constant, with_tensors
from radii.models.card import card_line, read_card
from radii.models.graph import Graph, Node
from radii.models.inputs import as_batch, check_finite, suspicions
from radii.models.operators import Scale
from radii.models.preprocessing import Preprocessing
from radii.models.runtime import Runtime
from radii.problem import Domain

Shape = tuple[int, ...]
T = TypeVar("T")
Floats = NDArray[np.floating[Any]]
CHUNK_VALUES = 2**21  # values of all nodes together in one chunk of a batch: 8 MiB in float32 stay near the caches


@dataclass(frozen=True, eq=False, repr=False)
class Classifier:
    """A network and all that is needed to ask it anything; build one with `load_classifier`.

    `difference` is the largest difference between the graph and onnxruntime that the load-time check saw, relative to
    the size of the outputs; None when it was not run. Pickles as its bytes and settings; graph and runtime are rebuilt
    on first use.
    """

    onnx_bytes: bytes
    input_shape: Shape
    classes: int
    name: str = ""
    domain: Domain = Domain()
    preprocessing: Preprocessing = Preprocessing()
    path: str | None = None
    difference: float | None = None
    alarms: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """How many numbers one input holds."""
        return prod(self.input_shape)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the network's bytes, preprocessing, domain and input shape: its identity, whatever its name."""
        digest = hashlib.sha256(self.onnx_bytes)
        digest.update(repr((self.preprocessing, self.domain, self.input_shape)).encode())
        return digest.hexdigest()[:32]

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the network was trained with, as `radii train` writes it into the file; empty for other networks."""
        return read_card(self.onnx_bytes)

    @cached_property
    def graph(self) -> Graph:
        """The network as a graph, its preprocessing first; `graph.logits` is what margins are computed on."""
        from radii.models.from_onnx import read_graph  # loads onnx, which a classifier at rest does not need

        return with_tensors(with_preprocessing(read_graph(self.onnx_bytes, self.input_shape), self.preprocessing))

    def with_graph(self, graph: Graph) -> Classifier:
        """The same network with its graph, which is then not read again."""
        found = replace(self)
        found.__dict__["graph"] = graph
        return found

    def with_facts_of(self, graph: Graph) -> Classifier:
        """The same network with what a plan asks of its graph; the graph itself, one of arrays, is read again."""
        found = replace(self)
        found.__dict__.update(dtype=np.dtype(graph.takes), operators=graph.operators)
        return found

    def changed(self, **changes: Any) -> Classifier:
        """The same network with other facts, such as its name; what is known of its graph stays."""
        found = replace(self, **changes)
        kept = ("graph", "dtype", "operators")
        found.__dict__.update({key: self.__dict__[key] for key in kept if key in self.__dict__})
        return found

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once per key and kept as long as the classifier: lowered graphs, for example."""
        if key not in self._derived:
            self._derived[key] = make()
        found: T = self._derived[key]
        return found

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The floats that the file takes, float32 or float64: witnesses are found and replayed in them."""
        try:
            return np.dtype(self.graph.takes)
        except UnsupportedOperator:  # what radii cannot read, others may still run
            return self._runtime.takes

    @property
    def torch_dtype(self) -> torch.dtype:
        """The same for torch."""
        return torch.float64 if self.dtype == np.float64 else torch.float32

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The names of the graph's operators, each once; of a network that cannot be read, those that hinder it."""
        try:
            return self.graph.operators
        except UnsupportedOperator as error:
            return error.operators

    @cached_property
    def _runtime(self) -> Runtime:
        return Runtime(self.onnx_bytes)

    def __call__(self, x: Any) -> Floats:
        """The logits of one input or of a batch, in the native or the flat shape; (classes,) or (batch, classes)."""
        batch, single = self._accept(x)
        result = self._outputs(batch)
        return result[0] if single else result

    def logits(self, x: Tensor) -> Tensor:
        """The logits of a batch, differentiable, in the dtype and on the device of x: (batch, classes)."""
        graph = self.graph.logits.to(x.dtype, x.device)
        return graph(x.reshape(x.shape[0], *self.input_shape)).flatten(1)

    def reference(self, x: Any) -> Floats:
        """The outputs of the original model in onnxruntime, as it gives them (softmax included): (batch, classes)."""
        batch, _ = self._accept(x)
        if not len(batch):
            return np.zeros((0, self.classes), self.dtype)
        return self._runtime(self.preprocessing(batch))

    def predict(self, x: Any) -> NDArray[np.int64]:
        """The class of the largest logit: a number for one input, an array for a batch."""
        result: NDArray[np.int64] = np.argmax(self(x), axis=-1)
        return result

    def probabilities(self, x: Any) -> Floats:
        """The softmax of the logits, computed in float64."""
        logits = self(x)
        values = np.asarray(logits, dtype=np.float64)
        powers = np.exp(values - values.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), dtype=logits.dtype)

    def accuracy(self, x: Any, y: Any) -> float:
        """The share of the batch whose class is predicted."""
        batch, _ = self._accept(x)
        labels = self._labels(y, len(batch))
        if not len(batch):
            raise DataError("accuracy: expected at least one input, got none")
        return float(np.mean(np.argmax(self._outputs(batch), axis=1) == labels))

    def check_inputs(self, x: Any, y: Any = None, *, strict: bool = True) -> tuple[str, ...]:
        """What is suspicious about inputs (and labels): values outside the domain raise, or are returned if not strict.

        Wrong shapes, a wrong channel order, NaN and labels outside the classes always raise.
        """
        batch, _ = self._accept(x)
        if y is not None:
            self._labels(y, len(batch))
        found = suspicions(batch, self.domain)
        if found and strict:
            raise DataError(found[0])
        return found

    def save(self, path: str | Path) -> Path:
        """Writes the network, as it was loaded, to an ONNX file; preprocessing and domain are not part of it."""
        target = Path(path)
        try:
            target.write_bytes(self.onnx_bytes)
        except OSError as error:
            raise ModelError(f"{target}: cannot write the network: {error.strerror}") from error
        return target

    def torch_module(self) -> torch.nn.Module:
        """The logits as a torch module, for tools that want one; its weights are constants."""
        from radii.models.module import Module

        return Module(self)

    def _accept(self, x: Any) -> tuple[Floats, bool]:
        batch, single = as_batch(x, self.input_shape, self.dtype)
        check_finite(batch)
        return batch, single

    def _labels(self, y: Any, count: int) -> NDArray[np.int64]:
        labels = np.atleast_1d(np.asarray(y))
        if labels.shape != (count,):
            raise DataError(f"labels: expected {count}, one per input, got shape {labels.shape}")
        bad = labels[(labels < 0) | (labels >= self.classes)]
        if bad.size:
            raise DataError(f"labels: expected classes from 0 to {self.classes - 1}, got {bad[0]}")
        return labels.astype(np.int64)

    def _outputs(self, batch: Floats) -> Floats:
        graph, computes = self.graph.logits, getattr(torch, self.graph.computes)
        step = max(1, CHUNK_VALUES // sum(node.size for node in graph.nodes))
        with torch.no_grad():
            parts = [graph(chunk.to(computes)).flatten(1).numpy() for chunk in _chunks(batch, step)]
        return np.concatenate(parts) if parts else np.zeros((0, self.classes), self.graph.computes)

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.input_shape))
        return f"Classifier({self.name or self.fingerprint[:8]}: {shape} -> {self.classes})"

    def _repr_html_(self) -> str:
        """The network's identity and units, for notebooks."""
        rows = [
            ("input", "x".join(map(str, self.input_shape))),
            ("classes", self.classes),
            ("domain", self.domain),
            ("fingerprint", self.fingerprint[:16]),
            ("file", self.path),
            *([("training", card_line(self.card))] if self.card else []),
            *(("alarm", text) for text in self.alarms),
        ]
        return table(f"classifier {self.name}".strip(), rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Classifier) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _chunks(batch: Floats, step: int) -> Iterator[Tensor]:
    for start in range(0, len(batch), step):
        yield torch.from_numpy(np.require(batch[start : start + step], requirements=["C", "W"]))


def with_preprocessing(graph: Graph, preprocessing: Preprocessing) -> Graph:
    """A graph of arrays with (x − mean) / std as its first operator; the constants are computed in float64."""
    if preprocessing.identity:
        return graph
    mean, std = preprocessing.arrays(graph.input_shape)
    scale, shift, moved = (as_constant(part) for part in (1.0 / std, -mean / std, -mean))
    operator = Scale(scale, shift, rounded=True, steps=(Scale(shift=moved, rounded=True), Scale(scale, rounded=True)))
    first = Node(operator, (0,), graph.input_shape, "preprocessing")
    later = (Node(n.operator, tuple(i + 1 for i in n.inputs), n.shape, n.name) for n in graph.nodes[1:])
    return replace(graph, nodes=(graph.nodes[0], first, *later))
