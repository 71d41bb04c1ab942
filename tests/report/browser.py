"""The system's chromium, driven by playwright; tests that need it are skipped loudly where it is absent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SLOW = 120_000  # milliseconds; a busy machine is not a failure


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser that is closed at the end."""
    if CHROMIUM is None:
        pytest.skip("CHROMIUM ABSENT: make system")
    api = pytest.importorskip("playwright.sync_api", reason="PLAYWRIGHT ABSENT: pip install playwright")
    SHOTS.mkdir(parents=True, exist_ok=True)
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=SLOW)
        yield browser
        browser.close()


def watched(browser: Any, **options: Any) -> tuple[Any, list[str]]:
    """A page of its own, and the list that its errors and warnings go to."""
    page = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options}).new_page()
    page.set_default_timeout(SLOW)
    errors: list[str] = []
    page.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    return page, errors


def show(page: Any, file: Path) -> None:
    """Open a report from disk and wait until it is interactive."""
    page.goto(file.as_uri(), timeout=SLOW)
    page.wait_for_selector("html[data-ready=yes]", state="attached")
