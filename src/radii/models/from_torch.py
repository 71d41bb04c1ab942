"""From torch to ONNX: a module is exported by torch itself, then read like any other file."""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from radii.errors import ModelError
from radii.models.runtime import Runtime

Shape = tuple[int, ...]
OPSET = 17
TOLERANCE = 1e-4


def export(module: nn.Module, input_shape: Shape | None) -> tuple[bytes, tuple[str, ...]]:
    """The module in evaluation mode as ONNX bytes, and alarms; modules that cannot be exported are named."""
    if input_shape is None:
        raise ModelError("expected input_shape=… (without the batch) with a torch module, got none")
    x = _example(module, input_shape)
    if x.dtype not in (torch.float32, torch.float64):
        kind = str(x.dtype).removeprefix("torch.")
        raise ModelError(f"expected a module of float32 or float64, got {kind}; pass module.float()")
    with _evaluating(module):
        outputs = _outputs(module, x)
        alarms = () if torch.equal(outputs, _outputs(module, x)) else (_RANDOM,)
        try:
            model = _exported(module, x)
        except _FAILURES as error:
            raise ModelError(_explain(module, x, error)) from error
        _compare(model, x, outputs, random=bool(alarms))
    return model, alarms


_RANDOM = "non-deterministic outputs: the module gave different outputs for the same inputs, even in evaluation mode"
_FAILURES = (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError, KeyError, IndexError)


def _example(module: nn.Module, shape: Shape) -> Tensor:
    """Two inputs in the dtype and on the device of the module's weights: a batch of one would be traced as fixed."""
    weight = next((p for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()), torch.zeros(1))
    generator = torch.Generator().manual_seed(0)
    return torch.rand((2, *shape), generator=generator).to(weight.device, weight.dtype)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; every part gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        for part, mode in modes:
            part.training = mode


def _outputs(module: nn.Module, x: Tensor) -> Tensor:
    try:
        found = module(x)
    except _FAILURES as error:
        raise ModelError(f"the module does not run on inputs of shape {tuple(x.shape)}: {_line(error)}") from error
    if not isinstance(found, Tensor):
        raise ModelError(f"expected a module that returns one tensor, got {type(found).__name__}")
    return found


def _exported(module: nn.Module, x: Tensor) -> bytes:
    """By tracing, which is quick; by torch.export where tracing warns of control flow or is no longer there."""
    try:
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            model = _traced(module, x)
        if not any(warning.category.__name__ == "TracerWarning" for warning in noted):
            return model
    except _FAILURES:
        pass
    return _captured(module, x)


def _traced(module: nn.Module, x: Tensor) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        torch.onnx.export(
            module,
            (x,),
            str(target),
            dynamo=False,
            opset_version=OPSET,
            input_names=["input"],
            output_names=["output"],
            dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        )
        return target.read_bytes()


def _captured(module: nn.Module, x: Tensor) -> bytes:
    try:
        with _quiet():
            program: Any = torch.onnx.export(
                module,
                (x,),
                dynamo=True,
                verbose=False,
                opset_version=18,
                input_names=["input"],
                output_names=["output"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
            )
    except ImportError as error:
        raise RuntimeError(f"{error}; pip install 'radii[torch-export]' may help") from error
    except Exception as error:  # the exporter wraps its own in a private type
        raise RuntimeError(_line(error)) from error
    return bytes(program.model_proto.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps torch.export from writing its working notes to the screen; failures come back as exceptions."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            yield
    finally:
        logging.disable(before)


def _compare(model: bytes, x: Tensor, outputs: Tensor, *, random: bool) -> None:
    """Refuses an export that computes something else than the module."""
    mine = outputs.flatten(1).double().cpu().numpy()
    found = Runtime(model)(x.cpu().numpy())
    if random:
        return
    scale = max(float(np.abs(mine).max()), 1e-30)
    if found.shape != mine.shape or float(np.abs(found - mine).max()) > TOLERANCE * scale:
        raise ModelError(
            "the module's export computes something else than the module; control flow on values cannot be exported"
        )


def _explain(module: nn.Module, x: Tensor, error: BaseException) -> str:
    """One line that names the parts that cannot be exported by themselves, or else the exporter's own words."""
    seen: dict[str, tuple[nn.Module, Tensor]] = {}

    def remember(name: str) -> Any:
        return lambda part, given, _: seen.update({name: (part, given[0])}) if len(given) == 1 else None

    leaves = [(name, part) for name, part in module.named_modules() if name and not list(part.children())]
    handles = [part.register_forward_hook(remember(name)) for name, part in leaves]
    try:
        module(x)
    finally:
        for handle in handles:
            handle.remove()
    bad = [f"{name} ({type(part).__name__})" for name, (part, given) in seen.items() if not _exports(part, given)]
    what = f"these modules cannot be exported to ONNX: {', '.join(bad)}" if bad else "the module cannot be exported"
    return f"{what}; replace them or pass an ONNX file ({_line(error)})"


def _exports(part: nn.Module, x: Tensor) -> bool:
    try:
        _exported(part, x)
    except _FAILURES:
        return False
    return True


def _line(error: BaseException) -> str:
    """The first line of the error at the root of a chain, without colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in re.sub("\x1b\\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:160]
