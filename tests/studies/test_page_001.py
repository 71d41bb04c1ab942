"""The study of the JAIR paper, a few images of it: run, exported, and laid out beside the paper's figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.shared import needs

STUDIES = Path(__file__).parents[2] / "studies"


@needs("jair", "mnist")
def test_a_small_study_becomes_a_page(tmp_path: Path) -> None:
    for split in ("train", "test"):
        words = ["--images", "4", "--seconds", "0.5", "--folder", str(tmp_path), "--workers", "1"]
        command = [sys.executable, str(STUDIES / "run.py"), str(STUDIES / "001" / f"shallow-{split}.yaml"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
    page = tmp_path / "page.md"
    command = [sys.executable, str(STUDIES / "001" / "page.py"), "--folder", str(tmp_path), "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| mnist-net_256x2 | train | ")]
    low, high = (float(end) for end in rows[0][5].split(" to "))
    assert 0.01 < low <= high < 0.06  # the paper's mean over 100 images is 0.037
    for picture in ("figure-2", "figure-4", "figure-6-train", "figure-7-test-lowest"):
        assert (tmp_path / "pictures" / f"{picture}.png").stat().st_size > 5000
        assert f"pictures/{picture}.png" in text
