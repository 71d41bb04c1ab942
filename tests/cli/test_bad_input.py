"""Bad input gets one line that says what was expected and what to do, exit code 2, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import refused, refused_here

from radii import zoo

NET = "zoo:mnist5k-conv"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data file that fits the network, for the tests in which something else is wrong."""
    return saved(tmp_path / "data.npz")


def saved(path: Path, **changes: object) -> Path:
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((4, 1, 28, 28), dtype=np.float32), "y": np.arange(4), **changes}
    np.savez(path, **arrays)
    return path


def test_wrong_file_type(tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "net.onnx"
    wrong.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert "expected an ONNX network, got a picture" in refused_here(capfd, "radius", wrong, "--data", data)


def test_missing_file(tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "expected an ONNX file" in refused_here(capfd, "radius", tmp_path / "absent.onnx", "--data", data)


def test_truncated_onnx(tmp_path: Path, data: Path) -> None:
    cut = tmp_path / "cut.onnx"
    whole = zoo.path("mnist5k-conv").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    assert str(cut) in refused("radius", cut, "--data", data)


def test_unknown_network_of_the_zoo(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'mnist5k-conv'?" in refused_here(capfd, "radius", "zoo:mnist5k-conf", "--data", data)


def test_wrong_shape(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    small = saved(tmp_path / "small.npz", x=np.zeros((4, 1, 8, 8), np.float32))
    line = refused_here(capfd, "radius", NET, "--data", small)
    assert "expected" in line
    assert "28" in line
    assert "8" in line


def test_pixels_from_0_to_255(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 1, 28, 28)).astype(np.float32)
    line = refused_here(capfd, "radius", NET, "--data", saved(tmp_path / "pixels.npz", x=pixels))
    assert "0 to 255" in line or "255" in line


def test_labels_outside_the_classes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = refused_here(
        capfd, "radius", NET, "--data", saved(tmp_path / "labels.npz", y=np.array([3, 12, 0, 1])), "--index", "0:4"
    )
    assert "0 to 9" in line
    assert "12" in line


def test_nan(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.zeros((4, 1, 28, 28), np.float32)
    x[2, 0, 3, 3] = np.nan
    assert "NaN" in refused_here(capfd, "radius", NET, "--data", saved(tmp_path / "nan.npz", x=x), "--index", "2")


@pytest.mark.parametrize("index", ["2:2", "9", "0:5", "-1", "one"])
def test_empty_or_impossible_selection(data: Path, index: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "--index" in refused_here(capfd, "radius", NET, "--data", data, f"--index={index}")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--norm", "l3"], "norm: expected one of linf, l2, l1"),
        (["--property", "strong"], "--property: expected eta for kind strong, got none"),
        (["--target", "12"], "target: expected a class from 0 to 9, got 12"),
        (["--target", "0"], "target: expected another class than the label"),
        (["--tolerance", "0"], "tolerance: expected a number above 0"),
        (["--tolerance", "0%"], "above 0% and below 100%, such as 5%, got '0%'"),
        (["--tolerance", "150 %"], "such as 5%, got '150 %'"),
        (["--tolerance", "5 percent"], "such as 5%, got '5 percent'"),
        (["--seconds", "0"], "budget seconds: expected a number above 0"),
        (["--verifier", "nativ"], "did you mean 'native'?"),
        (["--domain", "1,0"], "domain: expected low < high"),
        (["--mean", "0.1,0.2", "--std", "1,1"], "expected one value per channel of the input 1x28x28, got 2 values"),
    ],
)
def test_option_values(data: Path, words: list[str], expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert expected in refused_here(capfd, "radius", NET, "--data", data, *words)


def test_unknown_data_set(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'mnist5k'?" in refused_here(capfd, "radius", NET, "--data", "mnist5")


def test_missing_extra(tmp_path: Path) -> None:
    """scikit-learn made invisible, as in an installation without the extra."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "class Without(PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        return None if name.split('.')[0] == 'sklearn' else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path[:] = [Without if f is PathFinder else f for f in sys.meta_path]\n"
    )
    line = refused("radius", NET, "--data", "digits", env={"PYTHONPATH": str(tmp_path)})
    assert "pip install 'radii[data]'" in line


def test_read_only_output_folder(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.access(locked, os.W_OK):  # root may write everywhere but into the kernel's own file systems
        locked = Path("/proc/radii-demo")
    line = refused("demo", "--output", locked)
    assert "output folder: expected one that can be written" in line
    assert not locked.exists() or not list(locked.iterdir())


def test_output_folder_that_is_a_file(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "output folder: expected one that can be written" in refused_here(capfd, "demo", "--output", data)


def test_unwritable_store(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = refused_here(capfd, "radius", NET, "--data", data, "--store", data / "below-a-file.db")
    assert "store" in line
