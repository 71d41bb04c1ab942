"""Patterns of files: what a shell would find, each folder once, within a limit and with a word on the way."""

from __future__ import annotations

import glob
from pathlib import Path

import pytest

from radii.errors import InputError
from radii.study.patterns import matching

TREE = ("a.onnx", "b.txt", ".hidden.onnx", "nets/c.onnx", "nets/deep/d.onnx", "nets/deep/e1.onnx", ".dark/f.onnx")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        "*.onnx",
        "**/*.onnx",
        "nets/*.onnx",
        "nets/**",
        "*/deep/[de]*.onnx",
        ".*.onnx",
        "nets/deep/../*.onnx",
        "none/*.onnx",
    ],
)
def test_what_the_standard_library_finds(tree: Path, pattern: str) -> None:
    expected = {Path(name).resolve() for name in glob.glob(str(tree / pattern), recursive=True)}
    if pattern.endswith("**"):
        expected.discard(tree / pattern.removesuffix("/**"))
    assert matching(tree / pattern) == sorted(expected)


def test_links_that_lead_upwards_do_not_make_it_endless(tree: Path) -> None:
    """Two such links in one folder make 2^40 paths; one that leads to itself makes an error for each."""
    for name in ("up", "again"):
        (tree / "nets" / name).symlink_to(tree)
    (tree / "itself").symlink_to(tree / "itself")
    names = [path.name for path in matching(tree / "**" / "*.onnx")]
    assert sorted(names) == ["a.onnx", "c.onnx", "d.onnx", "e1.onnx"]


def test_a_pattern_that_looks_at_too_much(tmp_path: Path) -> None:
    for i in range(1200):
        (tmp_path / f"{i}.txt").touch()
    said: list[str] = []
    assert matching(tmp_path / "**" / "*.onnx", said.append) == []
    assert said
    assert "1000 files and folders looked at" in said[0]
    with pytest.raises(InputError, match=r"no more than 100 files and folders, got .*name the folder"):
        matching(tmp_path / "**" / "*.onnx", most=100)
