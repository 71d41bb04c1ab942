"""`radii train` with a grid and with a search, as a user would run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from radii.stats.correlation import rank_correlation
from radii.study.trade_off import GlobalRobustness, Settings, global_robustness

GRID = """
name: cloud
architecture: dense:8x1
data: {source: mnist5k, first: 300, validation: 0.2}
optimiser: {name: sgd, learning_rate: 0.05}
epochs: 1
batch: 50
evaluation: {epsilon: 0, inputs: 50}
grid:
  architecture.name: ["dense:8x1", "dense:8x1:tanh"]
  optimiser.learning_rate: [0.1, 0.01]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "radii", *words], cwd=folder, capture_output=True, text=True, timeout=300
    )


def test_a_grid_is_trained_measured_and_not_done_twice(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(GRID)
    words = ("train", "grid.yaml", "--output", "g", "--measure", "1/100", "--inputs", "6", "--seconds", "0.3")
    first = run(tmp_path, *words, "--runner", "serial")
    assert first.returncode == 0, first.stderr
    assert "Spearman" in first.stdout
    files = sorted((tmp_path / "g").glob("*/*.onnx"))
    assert len(files) == 4
    assert (tmp_path / "g" / "networks.png").stat().st_size > 10_000
    stamps = [file.stat().st_mtime_ns for file in files]
    again = run(tmp_path, *words, "--workers", "2", "--json")
    assert again.returncode == 0, again.stderr
    assert "4 of them trained before" in again.stderr
    assert [file.stat().st_mtime_ns for file in files] == stamps
    for row in json.loads(again.stdout):
        assert 0 <= row["robust_low"] <= row["proven"] <= row["not_broken"] <= row["robust_high"] <= 1
        assert 0 <= row["change_low"] <= row["witnessed"] <= row["bound"] <= row["change_high"] <= 1


def test_bad_grids(tmp_path: Path) -> None:
    for text, words in (
        (GRID.replace("[0.1, 0.01]", "[0.1, 0.1]"), "some twice"),
        (GRID.replace("[0.1, 0.01]", "[]"), "lists of values"),
        (GRID.replace("optimiser.learning_rate: [0.1", "optimiser.rate: [0.1"), "learning_rate"),
        (GRID.replace("mnist5k", "nowhere"), "nowhere"),
    ):
        (tmp_path / "bad.yaml").write_text(text)
        found = run(tmp_path, "train", "bad.yaml", "--output", "b", "--runner", "serial")
        assert found.returncode in (2, 3), found.stdout
        assert words in found.stderr
        assert "Traceback" not in found.stderr


def test_measures_agree_with_a_linear_network(tmp_path: Path) -> None:
    """A network of one input: its largest change of probability in a ball is at an end of the interval."""
    import torch

    import radii
    from radii.data import Dataset

    module = torch.nn.Sequential(torch.nn.Linear(1, 2))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[4.0], [-4.0]]))
        module[0].bias.copy_(torch.tensor([-2.0, 2.0]))
    net = radii.load_classifier(module, input_shape=(1,))
    x = np.linspace(0.1, 0.9, 9, dtype=np.float32)[:, None]
    y = (x[:, 0] < 0.5).astype(np.int64)

    def p(at: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-(8 * at - 4))))

    exact = np.maximum(np.abs(p(x + 0.1) - p(x)), np.abs(p(x - 0.1) - p(x))).ravel()
    for proofs in (True, False):
        settings = Settings(0.1, gamma=float(np.median(exact)) + 1e-3, inputs=9, seconds=5, proofs=proofs)
        found: GlobalRobustness = global_robustness(net, Dataset(x, y), settings)
        assert found.witnessed <= exact.mean() + 1e-5
        assert found.witnessed == pytest.approx(exact.mean(), rel=0.03)
        assert found.bound == (pytest.approx(exact.mean(), rel=0.05) if proofs else 1.0)
        assert found.not_broken == (exact < settings.gamma).mean()
        assert found.proven == (found.not_broken if proofs else 0.0)


def test_rank_correlation() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(60)
    value, low, high = rank_correlation(x, x + rng.standard_normal(60)) or (0, 0, 0)
    assert low < value < high < 1
    assert low > 0
    few = rank_correlation(np.arange(4.0), np.arange(4.0))
    assert few is not None
    assert few[1] < 0 < few[0] == few[2] == 1
    assert rank_correlation(np.arange(3.0), np.arange(3.0)) is None
    assert rank_correlation(np.arange(9.0), np.ones(9)) is None
