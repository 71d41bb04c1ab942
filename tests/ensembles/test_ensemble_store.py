"""A store of an ensemble is a store like any other: checked, reported, exported, and resumed after kill -9."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.ensembles.toys import linear

import radii
from radii.cli.main import run
from radii.store import open_store
from radii.study.ensemble_stored import ensembles, stored_game


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """The store of a game of three members that one input can fool together."""
    # In L1 the first two err in different directions: only both together fool them at once.
    nets = (([[1, 0], [0, 0]], [0, 0.5]), ([[0, 0], [0, 1]], [0.6, 0]), ([[1, 0], [0, 0]], [0, 0.45]))
    for k, (rows, shift) in enumerate(nets):
        linear(rows, shift, f"net{k}").save(tmp_path / f"net{k}.onnx")
    np.savez(tmp_path / "points.npz", x=np.array([[0.8, 0.3], [0.9, 0.2]], np.float32), y=[0, 0])
    (tmp_path / "game.yaml").write_text(
        "classifiers: [net0.onnx, net1.onnx, net2.onnx]\ndata: points.npz\nnorm: l1\n"
        "search: {limit: 0.9}\nalpha: [0.5, 1]\n"
    )
    assert run(["ensemble", str(tmp_path / "game.yaml"), "--runner", "serial"]) == 0
    return tmp_path / "game.db"


def test_check_replays_joint_witnesses_on_every_member(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["check", str(played), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wrong"] == found["unchecked"] == found["missing"] == []
    joint = [row for row in found["rows"] if "+" in row["classifier"]]
    assert joint
    assert found["witnesses"] == found["records"]
    # An input that fools only some of the members is no witness of all of them.
    with sqlite3.connect(played) as base:
        mine = "select u.id from units u join classifiers c on u.classifiers_id = c.id where c.name like '%+%'"
        (key,) = base.execute(mine).fetchone()
        point = np.array([0.4, 0.3], np.float32).tobytes()
        assert base.execute("update witnesses set x = ? where units_id = ?", (point, key)).rowcount == 1
    base.close()
    assert run(["check", str(played)]) == 1


def test_report_has_a_section_of_the_ensemble(played: Path, tmp_path: Path) -> None:
    assert run(["report", str(played), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "Ensemble game: value" in page
    assert "data:image/png;base64," in page
    assert run(["report", str(played), "-o", str(tmp_path / "r.md")]) == 0
    assert "r-ensemble-1.png" in (tmp_path / "r.md").read_text()
    assert (tmp_path / "r-ensemble-1.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "net0.onnx").unlink()
    assert run(["report", str(played), "-o", str(tmp_path / "r.html")]) == 0
    assert "The ensemble is not shown" in (tmp_path / "r.html").read_text()


def test_the_stored_game_is_the_game(played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["ensemble", str(tmp_path / "game.yaml"), "--runner", "serial", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    with open_store(played) as store:
        game = stored_game(store, "game", ensembles(store)["game"])
    assert [list(game.value(row["epsilon"])) for row in rows] == [row["value"] for row in rows]
    assert run(["export", str(played), "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(",joint," in line for line in lines)


def test_a_killed_run_goes_on_and_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    for k in range(3):
        linear(rng.normal(size=(3, 4)).tolist(), [0.0] * 3, f"net{k}").save(tmp_path / f"net{k}.onnx")
    x = rng.uniform(size=(30, 4)).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=x, y=radii.load_classifier(tmp_path / "net0.onnx").predict(x))
    study = tmp_path / "game.yaml"
    study.write_text("classifiers: [net0.onnx, net1.onnx, net2.onnx]\ndata: points.npz\nsearch: {limit: 0.1}\n")
    words = [sys.executable, "-m", "radii", "ensemble", str(study), "--runner", "serial"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    done = _wait_for_some(tmp_path / "game.db", process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = _finished(tmp_path / "game.db")
    assert set(done) <= set(before)
    assert run(["ensemble", str(study), "--runner", "serial", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    after = _finished(tmp_path / "game.db")
    assert {key: after[key] for key in before} == before  # not done again
    assert run(["ensemble", str(study), "--runner", "serial", "--json", "--store", str(tmp_path / "other.db")]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in resumed] == [row["value"] for row in whole]


def _finished(path: Path) -> dict[str, float]:
    with open_store(path) as store:
        return store.finish_times(store.planned_keys("game"))


def _wait_for_some(path: Path, process: subprocess.Popen[bytes]) -> dict[str, float]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and (found := _maybe(path)):
            return found
        if process.poll() is not None:
            pytest.fail("the run ended before it could be killed")
        time.sleep(0.05)
    pytest.fail("no radius was stored")


def _maybe(path: Path) -> dict[str, float]:
    try:
        return _finished(path)
    except radii.RadiiError:  # the store is being made
        return {}
