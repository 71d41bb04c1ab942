"""What every worker would otherwise load for its first unit; a name with a ? is optional."""

from __future__ import annotations

PRELOAD = ("torch", "onnx", "onnxruntime", "numba?", "radii.study.worker", "radii.engine.native")
