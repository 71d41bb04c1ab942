"""Where the data of tests lie, and a skip that says how to get them for tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("RADII_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()

HOW = "point RADII_DATA at a folder with the data sets and networks that CONTRIBUTING.md lists"


def needs(*names: str) -> pytest.MarkDecorator:
    """Skips a test unless the data folder has these entries."""
    absent = [str(DATA / name) for name in names or ("",) if not (DATA / name).exists()]
    return pytest.mark.skipif(bool(absent), reason=f"DATA ABSENT: expected {', '.join(absent)}; {HOW}")


needs_data = needs()
