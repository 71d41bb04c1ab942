"""Ctrl-C in `radius`, `guarantee` and `demo` keeps what is done, prints it, and says how to go on."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

NET = "zoo:mnist5k-conv"


def finished(store: Path) -> int:
    """How many radii a store holds now, by a look from outside."""
    if not store.is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return int(connection.execute("select count(*) from radii").fetchone()[0])
    except sqlite3.OperationalError:  # the tables are not there yet
        return 0


def interrupted(store: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The end of a command that was sent Ctrl-C when its store held the first radius."""
    process = subprocess.Popen(
        [sys.executable, "-m", "radii", *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    while not finished(store):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() - begun < 500
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_radius_stores_each_input_as_it_ends_and_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "r.db"
    words = ("radius", NET, "--data", "mnist5k", "--seconds", "1", "--store", "r.db", "--json", "--index")
    done = interrupted(store, *words, "0:32", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    kept = finished(store)
    assert len(json.loads(done.stdout)) == kept < 32
    assert f"stopped, {kept} of 32 inputs done; kept in r.db: run the same command again to go on" in done.stderr
    # What is stored is not done again.
    again = subprocess.run(
        [sys.executable, "-m", "radii", *words, f"0:{kept}"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    before = {row["index"]: row["cpu_seconds"] for row in json.loads(done.stdout)}
    assert {row["index"]: row["cpu_seconds"] for row in json.loads(again.stdout)} == before


def test_guarantee_says_what_is_measured_and_promises_nothing(tmp_path: Path) -> None:
    store = tmp_path / "g.db"
    words = ("guarantee", NET, "--data", "mnist5k", "--eps", "0.01", "--inputs", "40", "--seconds", "1")
    done = interrupted(store, *words, "--store", "g.db", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert re.search(r"of the \d+ inputs? measured so far .* nothing follows yet for unseen inputs", done.stdout)
    assert f"{finished(store)} of 40 inputs done; kept in g.db" in done.stderr


def test_the_demo_shows_what_is_done(tmp_path: Path) -> None:
    done = interrupted(tmp_path / "radii-demo" / "demo.db", "demo", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    kept = finished(tmp_path / "radii-demo" / "demo.db")
    assert f"stopped, {kept} of 60 radii are done and shown" in done.stderr
    assert "mnist5k-" in done.stdout
    assert (tmp_path / "radii-demo" / "report.html").is_file()


def test_python_m_radii() -> None:
    done = subprocess.run([sys.executable, "-m", "radii", "--name"], capture_output=True, text=True, check=True)
    assert done.stdout == "radii\n"
