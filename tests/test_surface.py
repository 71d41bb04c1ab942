"""The public surface is what `__all__` says: every name is there, documented, and loads from one place."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import radii

PUBLIC = [name for name in radii.__all__ if not name.startswith("__")]


def test_surface_is_short_and_sorted() -> None:
    assert len(PUBLIC) <= 34
    assert radii.__all__ == sorted(radii.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_loads_and_says_what_it_is(name: str) -> None:
    thing = getattr(radii, name)
    assert inspect.getdoc(thing), f"radii.{name} has no docstring"
    assert thing.__name__.removeprefix("radii.") == name  # radii.train is a package that can be called


def test_static_and_lazy_names_are_the_same() -> None:
    """Type checkers read the imports under TYPE_CHECKING; at run time `_HOME` decides. Both must agree."""
    tree = ast.parse(Path(radii.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    static = {
        alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert static == {name: radii._HOME.get(name, "radii.problem") for name in PUBLIC}


def test_dir_offers_the_surface() -> None:
    assert set(radii.__all__) <= set(dir(radii))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'critical_epsilon'"):
        radii.critical_epsilon  # noqa: B018


def test_every_name_stands_on_a_reference_page() -> None:
    pages = (Path(__file__).parents[1] / "docs" / "reference").glob("*.md")
    listed = {
        line.split()[1] for page in pages for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == ":::"
    }
    for name in PUBLIC:
        thing = getattr(radii, name)
        home = "radii.train.run" if inspect.ismodule(thing) else thing.__module__
        assert home in listed or f"{home}.{name}" in listed, (
            f"radii.{name}: expected {home} on a page of docs/reference"
        )
