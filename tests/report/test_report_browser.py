"""The page in a real browser: hover, click, slider, theme, keyboard; no error in its console."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filled import HOSTILE, Plan, fill

from radii.report.content import Content, gather
from radii.report.page import write_page

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
SHOTS = Path(__file__).parents[2] / "build"
SLOW = 120_000  # milliseconds; a busy machine is not a failure


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    where = tmp_path_factory.mktemp("browser") / "s.db"
    fill(where, Plan(networks=(*(f"net-{i}" for i in range(11)), HOSTILE), inputs=100))
    return gather([where])


@pytest.fixture(scope="module")
def page(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("CHROMIUM ABSENT: make system")
    api = pytest.importorskip("playwright.sync_api", reason="PLAYWRIGHT ABSENT: pip install playwright")
    file = write_page(content, tmp_path_factory.mktemp("page") / "report.html")
    assert file.stat().st_size < 6e6
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=SLOW)
        opened = browser.new_page(viewport={"width": 1100, "height": 900})
        opened.set_default_timeout(SLOW)
        errors: list[str] = []
        opened.on("console", lambda m: errors.append(m.text) if m.type in ("error", "warning") else None)
        opened.on("pageerror", lambda e: errors.append(str(e)))
        opened.goto(file.as_uri(), timeout=SLOW)
        opened.wait_for_selector("html[data-ready=yes]", state="attached")
        yield opened
        assert errors == []
        browser.close()


def test_the_slider_updates_shares_and_guarantee(page: Any, content: Content) -> None:
    page.locator("#epsnow").fill("0.03")
    page.locator("#epsnow").press("Enter")
    for one, row in zip(content.series, page.locator("#sharetable tbody tr").all(), strict=True):
        cells = [re.sub(r"\s+", " ", text) for text in row.locator("th,td").all_inner_texts()]
        low, high = one.dist.robust_accuracy(0.03)
        limits = [float(v) for v in one.dist.guarantee(0.95).at(0.03)]
        assert cells[3] == f"{100 * low:.1f}%"
        assert cells[5] == f"{100 * (1 - high):.1f}%"
        assert cells[6] == f"{100 * limits[0]:.1f}% to {100 * limits[1]:.1f}%"


def test_hover_click_theme_and_choice(page: Any) -> None:
    dot = page.locator("#dots circle.dot").nth(10)
    dot.scroll_into_view_if_needed()
    dot.dispatch_event("pointerover")
    assert "proven robust up to" in page.locator("#tip").inner_text()
    dot.dispatch_event("click")
    assert page.locator("#detail[open] img").count() >= 1
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / "report-detail.png")
    page.keyboard.press("Escape")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").dispatch_event("click")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.locator("#dots svg").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#dots .dot.on").count() == 1
    page.evaluate("document.querySelector('#nets input').click()")
    assert page.locator("#sharetable tbody tr").count() == 11
    page.screenshot(path=SHOTS / "report-dark.png", full_page=True)
