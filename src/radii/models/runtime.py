"""Runtime: the original network in onnxruntime, which every witness must pass."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import optional
from radii.errors import ModelError

CHUNK = 256  # inputs in one call: enough to be quick, few enough for large images


def session(model: bytes, threads: int = 1) -> Any:
    """An onnxruntime session on the CPU that says nothing but errors."""
    ort = optional("onnxruntime", "onnx", "to run networks")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # failures come back as exceptions; the log would only repeat them
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Runtime:
    """The model as stored, run in batches where the file allows it and input by input where it does not."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._single: bool | None = None

    @cached_property
    def _session(self) -> Any:
        try:
            return session(self._model)
        except Exception as error:  # onnxruntime raises a dozen private types
            raise ModelError(f"onnxruntime cannot load the network: {_first_line(error)}") from error

    @property
    def takes(self) -> np.dtype[Any]:
        """The floats of the model's input."""
        return np.dtype(np.float64 if self._session.get_inputs()[0].type == "tensor(double)" else np.float32)

    def __call__(self, x: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """The outputs of a batch (already preprocessed), each flattened, in the precision that the model gives them."""
        dims = self._session.get_inputs()[0].shape
        values = np.ascontiguousarray(x, dtype=self.takes)
        if self._single is None:
            self._single = len(dims) != values.ndim or isinstance(dims[0], int)
        if not self._single and len(values) > 1:
            try:
                parts = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
                return np.concatenate([self._run(part, len(part)) for part in parts])
            except ModelError:
                self._single = True  # a batch is declared free but some reshape inside fixes it
        # A fixed batch of one keeps its axis; an input without any batch axis loses it.
        rows = [self._run(v if len(dims) < values.ndim else v[None], 1) for v in values]
        return np.concatenate(rows) if rows else np.zeros((0, 0), np.float32)

    def _run(self, values: NDArray[Any], count: int) -> NDArray[np.floating[Any]]:
        try:
            (out,) = self._session.run(None, {self._session.get_inputs()[0].name: values})
        except Exception as error:
            raise ModelError(f"onnxruntime cannot run the network: {_first_line(error)}") from error
        if np.size(out) % count:
            raise ModelError(f"onnxruntime gave {np.size(out)} values for {count} inputs")
        precision = np.dtype(np.float64 if np.asarray(out).dtype == np.float64 else np.float32)
        found: NDArray[np.floating[Any]] = np.asarray(out, dtype=precision).reshape(count, -1)
        return found


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
