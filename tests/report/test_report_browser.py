"""The page in a real browser: hover, click, slider, theme, keyboard; no error in its console."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import SHOTS, open_browser, show, watched
from filled import HOSTILE, Plan, fill

import radii
from radii.report import payload
from radii.report.content import Content, gather
from radii.report.page import Options, write_page
from radii.store import Store
from radii.testing import random_instance, relu_toy


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    where = tmp_path_factory.mktemp("browser") / "s.db"
    fill(where, Plan(networks=(*(f"net-{i}" for i in range(11)), HOSTILE), inputs=100))
    return gather([where])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def file(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_page(content, tmp_path_factory.mktemp("page") / "report.html")
    assert written.stat().st_size < 6e6
    return written


@pytest.fixture(scope="module")
def page(browser: Any, file: Path) -> Iterator[Any]:
    opened, errors = watched(browser)
    show(opened, file)
    yield opened
    assert errors == []


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


def test_dragging_the_slider_moves_the_shares(page: Any, content: Content) -> None:
    box = page.locator("#eps").bounding_box()
    page.locator("#eps").scroll_into_view_if_needed()
    box = page.locator("#eps").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 5, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, height, steps=6)
    page.mouse.up()
    eps = float(page.locator("#epsnow").input_value())
    assert 0.2 < eps / page.evaluate("Number(document.getElementById('view').value)") < 0.4
    page.locator("#eps").press("ArrowRight")
    after = float(page.locator("#epsnow").input_value())
    assert after > eps
    one = {one.name: one for one in content.series}["net-3"]
    row = page.locator("#sharetable tbody tr", has_text="net-3").locator("td").all_inner_texts()
    assert row[2] == f"{100 * one.dist.robust_accuracy(after).proven:.1f}%"


def test_zoom_legend_and_asking_for_one_input(page: Any) -> None:
    page.locator("#view").fill("0.1")
    page.locator("#view").press("Enter")
    assert "lie above" in page.locator("#dotnote").inner_text()
    page.locator("#legend button").first.press("Enter")
    assert page.locator("#curve g.faded").count() == page.locator("#legend button").count() - 1
    assert page.locator("#legend button").first.get_attribute("aria-pressed") == "true"
    page.locator("#find").fill("17")
    page.locator("#find").press("Enter")
    assert page.locator("#detail[open] h3").count() == page.locator("#legend button").count()
    page.keyboard.press("Escape")
    page.locator("#find").fill("100000")
    page.locator("#find").press("Enter")
    assert "no input 100000" in page.locator("#findnote").inner_text()


def test_everything_is_reached_by_the_keyboard_and_has_a_name(page: Any) -> None:
    nameless = page.evaluate(NAMELESS)
    assert nameless == []
    page.locator("body").click(position={"x": 2, "y": 2})
    met = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        met.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"eps", "epsnow", "view", "asecdf", "band", "find"} <= met


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: Any, file: Path, scheme: str) -> None:
    page, errors = watched(browser, color_scheme=scheme)
    show(page, file)
    assert page.evaluate(CONTRAST) == []
    page.evaluate("document.querySelector('footer p').style.color = '#777'")  # the check itself can fail
    assert len(page.evaluate(CONTRAST)) == 1
    page.screenshot(path=SHOTS / f"report-{scheme}.png", full_page=True)
    assert errors == []
    page.context.close()


def test_a_phone_needs_no_sideways_scrolling_and_paper_has_no_controls(browser: Any, file: Path) -> None:
    page, errors = watched(browser, viewport={"width": 360, "height": 740}, has_touch=True)
    show(page, file)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.screenshot(path=SHOTS / "report-phone.png", full_page=True)
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert page.locator("#alarms").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(path=SHOTS / "report-print.pdf", format="A4").startswith(b"%PDF")
    assert errors == []
    page.context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (900, 800), (375, 812)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_answer_is_above_the_fold(
    browser: Any, file: Path, tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    """The whole curve and the banner are seen without scrolling, provenance is folded, and alarms are not."""
    few = tmp_path / "few.db"
    fill(few, Plan(networks=("a", "b"), inputs=20))
    page, errors = watched(browser, viewport={"width": width, "height": height}, color_scheme=scheme)
    show(page, write_page(gather([few], title="Two networks on twenty inputs, ε = 0.01"), tmp_path / "few.html"))
    assert page.locator("#theme").bounding_box()["height"] < 48  # one line beside a long title
    page.screenshot(path=SHOTS / f"fold-{width}-{scheme}.png")
    curve = page.locator("#curve svg").bounding_box()
    assert curve["y"] + curve["height"] <= height
    assert curve["x"] >= 0
    assert curve["x"] + curve["width"] <= width
    assert page.locator(".banner").bounding_box()["y"] < height / 3
    assert page.locator(".banner").evaluate("e => e.closest('details')") is None
    fits = "[...document.querySelectorAll('.figure')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    assert page.evaluate(fits)  # no figure of two networks is cut off, on a phone neither
    assert not page.locator("#provenance").evaluate("e => e.open")
    page.locator("#epsnow").fill("0.05")
    page.locator("#epsnow").press("Enter")
    mark = page.evaluate("document.querySelector('#mark').x1.baseVal.value")
    inner = page.evaluate("document.querySelector('#curve svg').viewBox.baseVal.width") - 66
    reach = float(page.locator("#view").input_value())
    assert mark == pytest.approx(56 + inner * 0.05 / reach, rel=1e-3)
    page.locator("#provenance summary").click()
    wide = page.locator("#provenance .scroll").first
    hint = wide.evaluate("e => getComputedStyle(e, '::before').content")
    over = wide.evaluate("e => e.scrollWidth > e.clientWidth + 1")
    assert ("scroll sideways" in hint) == over
    assert over or width > 375
    text = page.locator("body").inner_text()
    assert not re.search(r"\b(null|None|NaN|undefined)\b", text)
    assert errors == []


def test_charts_of_reaches_follow_the_theme_and_can_be_read_on_a_phone(browser: Any, tmp_path: Path) -> None:
    network = relu_toy(1, (4, 8, 7, 3))
    data = [random_instance(network, seed, reach=0.4) for seed in range(3)]
    written = tmp_path / "reach.html"
    radii.distribution(network, data, property="standard", reach=0.05, seconds=1, progress=False).report(written)
    for scheme in ("light", "dark"):
        page, errors = watched(browser, viewport={"width": 375, "height": 812}, color_scheme=scheme)
        show(page, written)
        chart = page.locator(".chart").first
        assert (chart.evaluate("e => getComputedStyle(e).filter") == "none") == (scheme == "light")
        assert chart.bounding_box()["width"] > 500
        assert "scroll sideways" in chart.evaluate("e => getComputedStyle(e.parentElement, '::before').content")
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert errors == []
        page.context.close()


def test_hard_pages_open(browser: Any, tmp_path: Path) -> None:
    """One input, no input, 43 classes, 200 networks, single targets, packed lists: all without an error."""
    Store(tmp_path / "empty.db").close()
    plans = {
        "one": Plan(networks=("net",), inputs=1),
        "signs": Plan(networks=("a", HOSTILE), inputs=90, classes=43),
        "many": Plan(networks=tuple(f"network-{i}" for i in range(200)), inputs=2, witnesses=False),
        "pairs": Plan(networks=("a", "b"), inputs=10, targets=(None, *range(10))),
    }
    for name, plan in plans.items():
        fill(tmp_path / f"{name}.db", plan)
    for name in ("empty", *plans):
        page, errors = watched(browser)
        show(page, write_page(gather([tmp_path / f"{name}.db"]), tmp_path / f"{name}.html"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 1100, name
        page.screenshot(path=SHOTS / f"page-{name}.png", full_page=name != "many")
        if name == "pairs":
            page.select_option("#target", "3")
            assert page.locator("#targetmap td").count() == 90
        assert errors == []
        page.context.close()


def test_long_lists_are_packed_and_still_filtered(browser: Any, tmp_path: Path, monkeypatch: Any) -> None:
    fill(tmp_path / "s.db", Plan(networks=("net",), inputs=400))
    content = gather([tmp_path / "s.db"])
    monkeypatch.setattr(payload, "MOST_ROWS", 100)
    dist = content.series[0].dist
    page, errors = watched(browser)
    for most, listed in ((1000, True), (200, False)):
        monkeypatch.setattr(payload, "MOST_PACKED", most)
        show(page, write_page(content, tmp_path / "s.html", Options(eps=0.03)))
        cells = page.locator("#sharetable tbody td").all_inner_texts()
        low, high = dist.robust_accuracy(0.03)
        slack = 0.06 if listed else 1.0  # a grid is drawn on the safe side
        assert 100 * low - slack <= float(cells[2].rstrip("%")) <= 100 * low + 0.06
        assert 100 * (1 - high) - slack - 0.06 <= float(cells[4].rstrip("%")) <= 100 * (1 - high) + 0.06
        if listed:
            page.evaluate("document.querySelectorAll('#classes input')[2].click()")
            page.evaluate("document.querySelector('#classes button:nth-of-type(2)').click()")
            page.evaluate("document.querySelectorAll('#classes input')[2].click()")
            assert page.locator("#sharetable tbody td").first.inner_text() == str(int((dist.label == 2).sum()))
    assert errors == []
    page.context.close()


NAMELESS = """() => [...document.querySelectorAll('button,input,select,a,img,svg[role=img],dialog')].filter(e =>
  !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.alt || e.textContent.trim() ||
    (e.labels && e.labels.length))).map(e => e.outerHTML.slice(0, 90))"""

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
