"""A study killed with SIGKILL at random moments and resumed ends in the table of an uninterrupted run.

The full size (100 inputs, 10 kills) runs with RADII_SLOW=1.
"""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.study.build import assert_same, digits_study, events, killed, start, table

from radii.cli.main import run
from radii.store import open_store

SLOW = bool(os.environ.get("RADII_SLOW"))
INPUTS, NODES, KILLS = (100, 60, 10) if SLOW else (6, 8, 2)
pytestmark = pytest.mark.timeout(7200 if SLOW else 900)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_study(tmp_path_factory.mktemp("digits"), INPUTS, NODES)


@pytest.fixture(scope="module")
def expected(study: Path) -> Any:
    """The table of a run that nobody disturbed, in this process."""
    store = study.parent / "undisturbed.db"
    assert run(["run", str(study), "--store", str(store), "--runner", "serial"]) == 0
    found = table(store)
    assert len(found) == 3 * INPUTS
    return found


def kill_and_resume(study: Path, store: str, seed: int, *words: object) -> int:
    """Kill runs at random moments and let the last one finish; how many units were finished before it."""
    rng, said = random.Random(seed), set[str]()
    for _ in range(KILLS):
        count = rng.randrange(0, max(2, 3 * INPUTS // KILLS))
        pause, heard = rng.uniform(0, 0.3), iter(range(10**6))

        def now(count: int = count, pause: float = pause, heard: Iterator[int] = heard) -> bool:
            if next(heard) < count:
                return False
            time.sleep(pause)
            return True

        said |= {one["key"] for one in killed(start(study, store, *words), now)}
        with open_store(store, create=False) as opened:
            stored = {record.unit.key for record in opened.records()}
        assert said <= stored, "a unit that was reported as finished is lost"
    last = start(study, store, *words)
    out, err = last.communicate()
    assert last.returncode == 0, err
    (end,) = events(out, "end")
    assert end["known"] >= len(said)
    assert end["known"] + end["done"] == 3 * INPUTS
    return int(end["known"])


def test_sqlite(study: Path, expected: Any) -> None:
    store = study.parent / "killed.db"
    kill_and_resume(study, str(store), 1)
    assert_same(table(store), expected)


def test_two_processes_share_one_file(study: Path, expected: Any) -> None:
    share(study, str(study.parent / "shared.db"), expected)


def share(study: Path, store: str, expected: Any) -> None:
    """Two processes on one store do every unit once, between them."""
    both = [start(study, store, "--workers", 1) for _ in range(2)]
    outs = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    keys = [one["key"] for out, _ in outs for one in events(out)]
    assert sorted(keys) == sorted(expected["key"])
    assert_same(table(store), expected)


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(study: Path, expected: Any) -> None:
    store = study.parent / "stopped.db"
    process = start(study, store, "--workers", 1)
    assert process.stdout is not None
    for line in process.stdout:
        if events(line):
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    out, err = process.communicate()
    assert process.returncode == 3, err
    assert "run the same command again to go on" in err.splitlines()[-1]
    assert events(out, "end")[0]["stopped"] is True
    found = table(store)
    assert 0 < len(found) < len(expected)
    with open_store(store) as opened:
        assert opened.info().rows["claims"] == 0
    assert_same(found, expected[expected["key"].isin(found["key"])].reset_index(drop=True))


def test_postgresql(study: Path, expected: Any, fresh_database: Callable[[], str]) -> None:
    killed_store, shared_store = fresh_database(), fresh_database()
    kill_and_resume(study, killed_store, 2)
    assert_same(table(killed_store), expected)
    share(study, shared_store, expected)


@pytest.mark.filterwarnings("ignore")
def test_ray_loses_a_node(study: Path, expected: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster_utils = pytest.importorskip("ray.cluster_utils", reason="RAY ABSENT: pip install 'radii[ray]'")
    store = study.parent / "ray.db"
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        other = cluster.add_node(num_cpus=1)
        process = start(study, store, "--runner", "ray", "--address", cluster.address)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if len(lines) == INPUTS:
                cluster.remove_node(other, allow_graceful=False)
        assert process.wait() == 0
    finally:
        cluster.shutdown()
    assert len(events("".join(lines))) == 3 * INPUTS
    assert_same(table(store), expected)
