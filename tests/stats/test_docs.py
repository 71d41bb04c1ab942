"""The examples in the pages and docstrings of the statistics run."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import radii.stats

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODULES = sorted(module.name for module in pkgutil.iter_modules(radii.stats.__path__))


@pytest.mark.parametrize("page", ["statistics", "guarantees", "fairness"])
def test_the_examples_of_a_page_run(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    names: dict[str, object] = {}
    with redirect_stdout(io.StringIO()):
        for block in blocks:
            exec(compile(block, f"{page}.md", "exec"), names)


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(f"radii.stats.{module}"))
    assert failed == 0
