"""radii.distribution and radii run share one driver: query rows, resume, shared work and workers are the same."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radii
from radii.decide import Budget
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Query
from radii.runners import ProcessRunner, SerialRunner
from radii.store import open_store, queries_frame, radii_frame
from radii.testing.toys import relu_toy
from radii.verifiers.bounds_only import BoundsOnly

NET = relu_toy(1)
X = np.random.default_rng(0).uniform(0.2, 0.8, size=(6, 4)).astype(np.float32)
DATA = (X, NET.predict(X))
GRID: dict[str, Any] = {"grid": [0.01, 0.02, 0.05, 0.1, 0.2], "verifier": "bounds"}
SAME = ["index", "epsilon", "verdict", "reason", "decider"]


def asked(path: Path, **options: Any) -> list[Any]:
    """The query rows that a distribution leaves in its store."""
    with open_store(path) as store:
        radii.distribution(NET, DATA, store=store, **GRID, **options)
        return queries_frame(store)[SAME].sort_values(["index", "epsilon"]).fillna("").values.tolist()


def test_query_rows_are_stored_whatever_runs_them(tmp_path: Path) -> None:
    """From Python a search over a grid left no query rows."""
    here = asked(tmp_path / "here.db")
    assert len(here) >= len(X)
    assert asked(tmp_path / "serial.db", runner=SerialRunner()) == here
    with ProcessRunner(2, threads=1) as pool:
        assert asked(tmp_path / "pool.db", runner=pool) == here
        with open_store(":memory:") as store:  # direct search by the same workers
            found = radii.distribution(NET, DATA, store=store, runner=pool, nodes=50)
            alone = radii.distribution(NET, DATA, nodes=50)
            np.testing.assert_array_equal(found.lower, alone.lower)
            assert set(radii_frame(store)["verifier"]) == {"native"}
        assert pool.workers == 2  # the caller's runner stays open


@dataclass(frozen=True)
class Counting:
    """Bounds that count the questions, and wait for another process to have begun."""

    asked: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    identity: str = "counting 1"
    proves: bool = True
    refutes: bool = False

    def decide(self, classifier: Classifier, queries: list[Query], budget: Budget) -> list[Answer]:
        self.asked.extend(query.instance.index for query in queries)
        self.gate.wait(20)
        return BoundsOnly().decide(classifier, queries, budget)


def test_two_calls_on_one_store_share_the_work(tmp_path: Path) -> None:
    """Both began every input before: there were no claims."""
    decider, path, found = Counting(), tmp_path / "shared.db", []

    def call() -> None:
        found.append(radii.distribution(NET, DATA, store=path, grid=[0.01], verifier=decider, progress=False))

    first = threading.Thread(target=call)
    first.start()
    while not decider.asked:
        first.join(0.01)
    second = threading.Thread(target=call)
    second.start()
    second.join(1.0)
    decider.gate.set()
    first.join()
    second.join()
    assert sorted(decider.asked) == list(range(len(X)))
    np.testing.assert_array_equal(found[0].lower, found[1].lower)


def test_workers_by_number(tmp_path: Path) -> None:
    dist = radii.distribution(NET, DATA, workers=1, nodes=50, store=tmp_path / "w.db", progress=False)
    assert len(dist) == len(X)
    for options, said in (
        ({"workers": 0}, "workers: expected"),
        ({"workers": 1, "runner": SerialRunner()}, "leave one"),
    ):
        with pytest.raises(InputError, match=said):
            radii.distribution(NET, DATA, **options)
