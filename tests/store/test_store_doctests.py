"""The examples in the docstrings of runners and store run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["runners.order", "runners.processes", "store.select", "store.sql"])
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"radii.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
