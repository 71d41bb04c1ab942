"""Where the shared data lies, and a loud skip for tests that need it."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = (Path(__file__).resolve().parents[2] / "shared" / "data").resolve()

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"SHARED DATA ABSENT: expected at {DATA}")
