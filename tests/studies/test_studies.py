"""The studies of the papers: a small part of each runs to its page, and kept pages say what the kept rows say."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared import needs

HOME = Path(__file__).parents[2]
STUDIES = HOME / "studies"
PAPERS = sorted(folder.name for folder in STUDIES.iterdir() if (folder / "study.py").is_file())
KEPT = [paper for paper in PAPERS if (STUDIES / paper / "results" / "runs.csv").is_file()]
# Paper -> what its small page must show, beside claims that hold: a heading, a picture.
SHOWN = {
    "000": ("## Fairness and risk", "000-figure-1"),
    "001": ("## Are radii log-normal?", "001-figure-6-train"),
    "002": ("## Convergence of the guarantee", "002-cloud-mnist5k-grid"),
    "003": ("## Simple attackers", ""),
    "004": ("## Ways of training", "004-security-gtsrb-sr"),
}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(STUDIES / "run.py"), *words]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=env)


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_paper_has_a_study() -> None:
    assert sorted(SHOWN) == PAPERS == ["000", "001", "002", "003", "004"]


@needs("jair", "mnist", "gtsrb", "fashion-mnist")
@pytest.mark.parametrize("paper", PAPERS)
def test_a_small_study_becomes_a_page_whose_claims_hold(paper: str, tmp_path: Path) -> None:
    done = run(paper, "--small", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "units of this study are done" in text
    heading, picture = SHOWN[paper]
    assert heading in text
    assert not picture or (tmp_path / "pictures" / f"{picture}.png").stat().st_size > 5000
    claims = rows(tmp_path / "claims.csv")
    assert any(row["holds"] == "True" for row in claims)  # some of them can be told on a small part
    assert all(row["holds"] != "False" for row in claims)
    if paper not in ("000", "001"):  # the others train networks first, which are not kept
        return
    # On another machine, where only the rows are, a study finds everything done and writes the same page.
    shutil.rmtree(tmp_path / "work")
    again = run(paper, "--small", "--folder", str(tmp_path))
    assert again.returncode == 0, again.stderr[-3000:]
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    assert not list((tmp_path / "work").glob("*.db"))
    if paper == "001":
        only_missing_images_are_measured(tmp_path)


def only_missing_images_are_measured(folder: Path) -> None:
    """Of a network with some of its rows only the other images are asked, and the kept rows stay as they are."""
    file = folder / "shallow-test.csv"
    head, *kept = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([head, *kept[:-2]]) + "\n", encoding="utf-8")
    done = run("001", "--small", "--folder", str(folder), "--only", "shallow-test")
    assert done.returncode == 0, done.stderr[-3000:]
    after = file.read_text(encoding="utf-8").splitlines()
    assert after[: len(kept) - 1] == [head, *kept[:-2]]
    places = [(row["classifier"], row["index"]) for row in rows(file)]
    assert len(places) == len(set(places)) == len(kept)
    assert "2 units" in done.stderr or "2 of 2" in done.stderr, done.stderr[-3000:]


@needs("jair", "mnist")
@pytest.mark.parametrize("paper", KEPT)
def test_a_kept_page_says_what_the_kept_rows_say(paper: str, tmp_path: Path) -> None:
    shutil.copytree(STUDIES / paper / "results", tmp_path, dirs_exist_ok=True)
    done = run(paper, "--page", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    mine = (tmp_path / "page.md").read_text(encoding="utf-8")
    kept = (HOME / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    assert mine == kept
    planned, finished = (sum(int(row[key]) for row in rows(tmp_path / "runs.csv")) for key in ("planned", "done"))
    assert (f"not complete: {finished:,} of {planned:,} units are done" in kept) == (finished < planned)
    pictures = [line.split("](")[1].split(")")[0] for line in kept.splitlines() if line.startswith("![")]
    assert [name for name in pictures if not (HOME / "docs" / "papers" / name).is_file()] == []


def test_a_claim_that_does_not_hold_ends_a_study_with_1(tmp_path: Path) -> None:
    """A row of the convergence study that says the impossible: the network that outruns its own limits."""
    head = "step,done,planned,cpu_seconds,budget,version,date,command\n"
    (tmp_path / "runs.csv").write_text(head + "mnist5k-grid,4,4,1,-,x,2026-01-01,y\n", encoding="utf-8")
    names = ("architecture.name", "optimiser.learning_rate", "epochs", "accuracy", "proven", "not_broken", "robust_low",
             "robust_high", "witnessed", "bound", "change_low", "change_high", "inputs", "cpu_seconds")  # fmt: skip
    good = [0.5, 0.6, 0.3, 0.8, 0.1, 0.2, 0.05, 0.3, 8, 1]
    lines = [",".join(["dense:10x1", "0.01", "3", str(0.9 + k / 100), *map(str, good)]) for k in range(4)]
    table = tmp_path / "mnist5k-grid.csv"
    table.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    assert run("002", "--page", "--folder", str(tmp_path)).returncode == 0
    lines[2] = lines[2].replace(",0.5,0.6,", ",0.9,0.95,")
    table.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    done = run("002", "--page", "--folder", str(tmp_path))
    assert done.returncode == 1
    assert "does not hold" in done.stderr
