"""`radii report`, `stats` and `guarantee` as a user types them."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
from command import refused_here

from radii.cli.main import run

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from filled import Plan, fill


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("cli") / "s.db"
    fill(where, Plan(networks=("a", "b"), inputs=12))
    return where


def test_every_format_is_written(store: Path, tmp_path: Path) -> None:
    starts = {"r.html": "<!doctype html>", "r.md": "# Robustness report", "r.tex": "% needs", "r.pdf": "%PDF"}
    for name, start in starts.items():
        assert run(["report", str(store), "-o", str(tmp_path / name), "--eps", "8/255"]) == 0
        assert (tmp_path / name).read_bytes().strip().startswith(start.encode())


def test_stats_and_guarantee_agree(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", str(store), "--eps", "0.02", "--json"]) == 0
    shares = {one["name"]: one["unseen_low"] for one in json.loads(capfd.readouterr().out)["networks"]}
    assert run(["guarantee", str(store), "--eps", "0.02", "--json"]) == 0
    found = {one["network"]: one["low"] for one in json.loads(capfd.readouterr().out)["guarantees"]}
    assert found == shares
    assert run(["stats", str(store), "--compare", "a,b"]) == 0
    assert "a against b" in capfd.readouterr().out
    assert run(["guarantee", "--error", "0.05"]) == 0
    assert capfd.readouterr().out.startswith("738 inputs")


def test_bad_input_is_one_line(store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "expected an existing file" in refused_here(capfd, "report", tmp_path / "absent.db")
    assert "--eps" in refused_here(capfd, "report", store, "--eps", "x", "-o", tmp_path / "r.html")
    assert "existing folder" in refused_here(capfd, "report", store, "-o", tmp_path / "no" / "r.html")
    assert "two names" in refused_here(capfd, "stats", store, "--compare", "a,c")
    assert "--eps" in refused_here(capfd, "guarantee", store)
    assert "token" in refused_here(capfd, "serve", store, "--host", "0.0.0.0")


def test_a_model_card_is_exported(store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(store), "--format", "card", "--classifier", "a", "-o", str(tmp_path / "card.md")]) == 0
    assert run(["export", str(store), "--format", "card", "--classifier", "a"]) == 0
    text = capfd.readouterr().out
    assert "model-index" in text
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == text


def test_unknown_names_are_refused(store: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "r.html"
    refusal = refused_here(capfd, "report", store, "-o", page, "--classifier", "bb")
    assert "--classifier" in refusal
    assert "'b'" in refusal
    assert "--study" in refused_here(capfd, "report", store, "-o", page, "--study", "no study")
    assert not page.exists()
    assert run(["report", str(store), "-o", str(page), "--classifier", "b", "--study", "a study"]) == 0


def test_a_port_in_use_is_one_line(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another port" in refused_here(capfd, "serve", store, "--port", port)
    assert "existing file" in refused_here(capfd, "serve", store.parent / "absent.db")
