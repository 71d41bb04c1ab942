"""A picture of the top of a report page, for the README: python scripts/page_picture.py report.html picture.png"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main(page: Path, picture: Path) -> int:
    """Take the picture; 1 where there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no chromium here: the picture of the page is left as it is", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=flags, timeout=120_000)
        shown = browser.new_page(viewport={"width": 1100, "height": 1250})
        shown.set_default_timeout(120_000)
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector("html[data-ready=yes]", state="attached")
        shown.evaluate("document.querySelector('#facts details').open = false")
        shown.screenshot(path=picture)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
