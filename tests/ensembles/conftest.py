"""The two-line example in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.ensembles.toys import two_lines


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The two-line example in files."""
    members, instance = two_lines()
    for one in members:
        one.save(tmp_path / f"{one.name}.onnx")
    np.savez(tmp_path / "points.npz", x=instance.x[None], y=[instance.label])
    nets = ", ".join(f"{{path: {one.name}.onnx, domain: null}}" for one in members)
    file = tmp_path / "game.yaml"
    file.write_text(f"classifiers: [{nets}]\ndata: points.npz\nnorm: l1\nepsilon: [0, 1, 2]\nalpha: 0.5\n")
    return file
