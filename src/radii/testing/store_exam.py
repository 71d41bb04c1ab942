"""The exam every store passes: subclass `StoreExam` in a test module and say where a fresh one is.

class TestMine(StoreExam):
    def fresh(self, tmp_path):
        return f"sqlite:///{tmp_path}/mine.db"
"""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from radii.errors import Contradiction, StoreError
from radii.problem import Classification, Percent, Radius, StrongClassification, Witness
from radii.store import (
    RadiusRecord,
    Selection,
    Setting,
    Store,
    export,
    merge,
    open_store,
    queries_frame,
    radii_frame,
)
from radii.testing._store_reaches import ReachExam
from radii.testing._store_records import record, unit

CONTRACT = [
    "classifier",
    "dataset",
    "split",
    "index",
    "label",
    "prediction",
    "property",
    "target",
    "norm",
    "lower",
    "upper",
    "status",
    "search",
    "verifier",
    "queries",
    "timeouts",
    "memory_errors",
    "cancelled",
    "cpu_seconds",
    "wall_seconds",
    "seed",
]


def same(one: RadiusRecord, other: RadiusRecord) -> bool:
    """Whether two records agree in every value, arrays included."""
    a, b = one.radius.witness, other.radius.witness
    if (a is None) != (b is None):
        return False
    if a is not None and b is not None:
        pairs = ((a.x, b.x), (a.outputs, b.outputs))
        arrays = all(np.array_equal(p, q) and p.dtype == q.dtype for p, q in pairs)
        if not arrays or (a.distance, a.prediction) != (b.distance, b.prediction):
            return False
    bare = [dataclasses.replace(r, radius=dataclasses.replace(r.radius, witness=None)) for r in (one, other)]
    return bare[0] == bare[1] and one.unit.key == other.unit.key


_CLAIMER = """
import sys
from radii.store import open_store
from radii.testing.store_exam import record, unit
where, owner, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
units = [unit(i) for i in range(number)]
with open_store(where) as store:
    for start in range(0, number, 5):
        for work in store.claim(units[start:start + 5], owner):
            print(work.instance.index, flush=True)
            store.put(record(work))
"""


class StoreExam(ReachExam, ABC):
    """Questions about any place a store can live; every `test_` method is one."""

    @abstractmethod
    def fresh(self, tmp_path: Path) -> str:
        """The address of a store that does not exist yet."""

    shared: bool = True  # whether other processes can open the same address

    def test_a_record_comes_back_as_it_was(self, tmp_path: Path) -> None:
        kept = record(unit(4, target=7, property_parameters={}, search_parameters={"tolerance": 0.002}))
        with open_store(self.fresh(tmp_path)) as store:
            store.put(kept)
            found = store.get(kept.unit.key)
            assert found is not None
            assert same(found, kept)
            assert store.get("0" * 32) is None

    def test_a_float64_witness_keeps_its_digits(self, tmp_path: Path) -> None:
        given = record(unit(0))
        fine = Witness(np.array([0.1, 0.3]), 0.2, 3, np.array([1000.5, 1000.50001]))
        given = dataclasses.replace(given, radius=dataclasses.replace(given.radius, witness=fine))
        with open_store(self.fresh(tmp_path)) as store:
            store.put(given)
            found = store.get(given.unit.key)
            assert found is not None
            assert same(found, given)

    def test_finished_units_survive_closing(self, tmp_path: Path) -> None:
        if not self.shared:
            return
        where = self.fresh(tmp_path)
        with open_store(where) as store:
            store.put(record(unit(1)))
        with open_store(where, create=False) as store:
            assert [found.unit.instance.index for found in store.records()] == [1]

    def test_an_absent_end_stays_absent(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(unit(0), lower=None, upper=2.0))
            store.put(record(unit(1), upper=None))
            store.put(record(unit(2), lower=None, upper=None, prediction=None, note="crash: SIGSEGV"))
            frame = radii_frame(store)
            assert [math.isnan(value) for value in frame["lower"]] == [True, False, True]
            assert [math.isnan(value) for value in frame["upper"]] == [False, True, True]
            lines = str(export(frame, "csv")).splitlines()
            assert lines[1].split(",")[9:12] == ["", "2.0", "open"]
            assert lines[3].split(",")[5] == ""
            assert store.info().statuses == {"closed": 0, "open": 2, "misclassified": 0, "unsolved": 1, "robust": 0}

    def test_the_columns_are_the_contract(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            assert list(radii_frame(store).columns)[: len(CONTRACT)] == CONTRACT
            store.put(record(unit(3, target=5, norm="l2")))
            row = radii_frame(store).iloc[0]
            wanted = ["net", "toy", "test", 3, 3, 1, "classification", 5, "l2", 0.1, 0.2, "closed", "direct", "native"]
            assert [row[name] for name in CONTRACT] == [*wanted, 2, 0, 0, 0, 1.5, 0.0, 0]
            asked = queries_frame(store)
            assert list(asked["epsilon"]) == [0.1, 0.3]
            assert list(asked["verdict"]) == ["robust", "unknown"]

    def test_selections_filter(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            store.put_many([record(unit(i, network)) for network in "ab" for i in range(20)])
            store.plan("small", [unit(i, "a") for i in range(5)])
            assert len(radii_frame(store)) == 40
            assert set(radii_frame(store, Selection(classifier=("b",)))["classifier"]) == {"b"}
            assert list(radii_frame(store, Selection(classifier=("a",), label=(3,)))["index"]) == [3, 13]
            assert len(radii_frame(store, Selection(study=("small",)))) == 5
            assert len(radii_frame(store, Selection(status=("open",)))) == 0

    def test_keys_are_content(self) -> None:
        base = unit(1)
        assert base.key == unit(1).key
        assert base.key == dataclasses.replace(base, budget={"seconds": 1}).key
        others = [unit(2), unit(1, "other"), unit(1, norm="l2"), unit(1, target=3), unit(1, seed=1)]
        others += [unit(1, identity="native 2"), unit(1, search_parameters={"tolerance": 0.1})]
        assert len({base.key, *(other.key for other in others)}) == len(others) + 1
        strong = Setting.of(StrongClassification(0.5), "linf")
        assert strong.property_parameters == {"eta": 0.5}
        assert Setting.of(Classification(3), "l2").target == 3

    def test_pending_and_retry(self, tmp_path: Path) -> None:
        units = [unit(i) for i in range(5)]
        with open_store(self.fresh(tmp_path)) as store:
            assert [u.key for u in store.pending(units)] == [u.key for u in units]
            store.put(record(units[0]))
            store.put(record(units[1], tolerance=0.01))
            store.put(record(units[2], lower=None, upper=None))
            assert store.pending(units) == units[3:]
            later = time.time() + 1
            assert store.pending(units, retry_before=later) == units[2:]
            richer = [dataclasses.replace(u, budget={"seconds": 600}) for u in units]
            assert store.pending(richer, retry_before=later) == richer[1:]
            assert store.pending(richer, retry_before=later - 3600) == richer[3:]
            store.put(record(richer[1], lower=0.15, tolerance=0.01))
            assert store.pending(richer, retry_before=later) == richer[2:]

    def test_later_results_narrow(self, tmp_path: Path) -> None:
        work = unit(0)
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(work, 0.1, 0.2, tolerance=0.01))
            store.put(record(work, 0.15, 0.25, tolerance=0.01))
            found = store.get(work.key)
            assert found is not None
            assert (found.radius.lower, found.radius.upper) == (0.15, 0.2)
            assert found.radius.witness is not None
            assert found.radius.witness.distance == 0.2
            assert found.radius.cost.cpu_seconds == 3.0
            assert len(found.queries) == 4

    def test_relative_tolerances_come_back(self, tmp_path: Path) -> None:
        works = [unit(0, search_parameters={"tolerance": "5%"}), unit(1)]
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(works[0], 0.18, 0.2, tolerance=Percent(5.0)))
            store.put(record(works[1], 0.1, 0.2, tolerance=0.01))
            assert [one.radius.tolerance for one in store.records()] == [Percent(5.0), 0.01]
            store.put(record(works[0], 0.191, 0.2, tolerance=Percent(5.0)))
            frame = radii_frame(store)
            assert frame["status"].tolist() == ["closed", "open"]
            assert frame["tolerance"].tolist() == [0.0, 0.01]
            assert frame["tolerance_percent"].fillna(-1).tolist() == [5.0, -1.0]

    def test_contradictions_are_alarms(self, tmp_path: Path) -> None:
        work = unit(0)
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(work, 0.1, 0.2))
            assert refuses(Contradiction, "proven robust up to 0.3", lambda: store.put(record(work, 0.3, None)))
            found = store.get(work.key)
            assert found is not None
            assert (found.radius.lower, found.radius.upper) == (0.1, 0.2)
            assert [alarm.index for alarm in store.alarms()] == [0]
            inside = dataclasses.replace(record(unit(1), None), radius=Radius.found(0.3, 0.2))
            assert [alarm.message[:14] for alarm in store.put_many([inside])] == ["contradiction:"]
            assert [alarm.index for alarm in store.alarms()] == [0, 1]

    def test_a_unit_may_come_twice_in_one_transaction(self, tmp_path: Path) -> None:
        ends = [(0.1, 0.3), (0.15, 0.4), (0.12, 0.2), (0.35, None)]
        with open_store(self.fresh(tmp_path)) as store:
            alarms = store.put_many([record(unit(0), *pair) for pair in ends] + [record(unit(1))])
            frame = radii_frame(store)
            assert (list(frame["lower"]), list(frame["upper"])) == ([0.15, 0.1], [0.2, 0.2])
            assert len(alarms) == 1

    def test_a_changed_classifier_is_noticed(self, tmp_path: Path) -> None:
        work = unit(0)
        other = dataclasses.replace(work.classifier, fingerprint="another")
        changed = dataclasses.replace(work, classifier=other)
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(work))
            assert refuses(StoreError, "'net' (net.onnx) has changed", lambda: store.put(record(changed)))
            assert refuses(StoreError, "has changed", lambda: store.plan("study", [changed]))
            assert len(radii_frame(store)) == 1

    def test_claims_exclude_expire_and_end(self, tmp_path: Path) -> None:
        units = [unit(i) for i in range(6)]
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(units[0]))
            assert store.claim(units[:4], "ann") == units[1:4]
            assert store.claim(units, "bob") == units[4:]
            assert store.claim(units, "bob") == units[4:]
            store.put(record(units[1]))
            assert store.release("bob") == 2
            assert store.claim(units, "cid") == units[4:]
            assert store.renew("ann", seconds=-1) == 2
            assert store.claim(units, "dan") == units[2:4]
            assert store.info().rows["claims"] == 4

    def test_processes_share_the_work(self, tmp_path: Path) -> None:
        if not self.shared:
            return
        where, number = self.fresh(tmp_path), 60
        commands = [[sys.executable, "-c", _CLAIMER, where, owner, str(number)] for owner in ("ann", "bob", "cid")]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
        outputs = [process.communicate(timeout=120)[0].split() for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0]
        times = Counter(index for output in outputs for index in output)
        assert times == Counter({str(i): 1 for i in range(number)})
        with open_store(where) as store:
            assert len(radii_frame(store)) == number
            assert store.info().rows["claims"] == 0

    def test_progress_counts(self, tmp_path: Path) -> None:
        units = [unit(i, network) for network in "ab" for i in range(4)]
        with open_store(self.fresh(tmp_path)) as store:
            store.plan("study", units, {"name": "study"})
            store.plan("other", [unit(9, "c")])
            store.put(record(units[0]))
            store.put(record(units[1], lower=0.5, upper=1.5))
            store.claim(units[2:5], "ann")
            store.claim(units[5:6], "bob", seconds=0.0)  # has run out at once
            a, b = store.progress("study")
            assert (a.classifier, a.planned, a.statuses, a.claimed) == ("a", 4, {"closed": 1, "open": 1}, 2)
            assert (a.width, b.width) == (1.0, None)
            assert (store.finished_since(0.0, "study"), store.finished_since(0.0, "other")) == (2, 0)
            assert store.finished_since(time.time() + 60) == 0
            assert (b.classifier, b.planned, b.statuses, b.claimed, b.done) == ("b", 4, {}, 1, 0)
            assert len(store.progress()) == 3
            assert store.studies() == {"study": {"name": "study"}, "other": {}}
            assert [u.key for u in store.planned("other")] == [unit(9, "c").key]
            store.plan("study", units[:1])
            assert [p.planned for p in store.progress("study")] == [1]

    def test_merge(self, tmp_path: Path) -> None:
        left, right = self.fresh(tmp_path), f"sqlite:///{tmp_path}/right.db"
        with open_store(left) as target, open_store(right) as source:
            target.put_many([record(unit(0)), record(unit(1), 0.1, 0.2), record(unit(2), 0.1, 0.2)])
            work = unit(5)
            clash = dataclasses.replace(work, classifier=dataclasses.replace(work.classifier, fingerprint="ffffffffff"))
            source.put(record(clash))
            with open_store(":memory:") as third:
                third.put_many([record(unit(1), 0.12, 0.3), record(unit(2), 0.3, None), record(unit(3))])
                third.plan("study", [unit(3), unit(4)])
                done = merge(target, [source, third])
                assert (done.added, done.known, done.renamed) == (2, 2, {"net": "net-ffffffff"})
                assert [alarm.index for alarm in done.alarms] == [2]
                again = merge(target, [third])
                assert (again.added, again.known) == (0, 3)
            frame = radii_frame(target).set_index("index")
            assert (frame.loc[1, "lower"], frame.loc[1, "upper"]) == (0.12, 0.2)
            assert (frame.loc[2, "lower"], frame.loc[2, "upper"]) == (0.1, 0.2)
            assert frame.loc[5, "classifier"] == "net-ffffffff"
            assert target.progress("study")[0].planned == 2

    def test_vacuum_keeps_everything(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            store.put_many([record(unit(i)) for i in range(50)])
            assert store.vacuum() >= 0
            assert len(list(store.records())) == 50

    def test_a_newer_store_is_refused(self, tmp_path: Path) -> None:
        if not self.shared:
            return
        where = self.fresh(tmp_path)
        with open_store(where) as store, store.write() as connection:
            connection.exec_driver_sql("UPDATE radii_store SET value = '99' WHERE name = 'schema'")
        assert refuses(StoreError, "got schema 99; upgrade radii", lambda: open_store(where))

    def test_a_failed_transaction_leaves_nothing(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            store.put(record(unit(0)))
            good, bad = record(unit(1)), record(unit(2))
            nothing: Any = None
            broken = dataclasses.replace(bad, finished=nothing)
            assert refuses(StoreError, "", lambda: store.put_many([good, broken]))
            assert [found.unit.instance.index for found in store.records()] == [0]
            store.put(good)
            assert len(radii_frame(store)) == 2


def refuses(kind: type[Exception], text: str, action: Any) -> bool:
    """Whether the action raises that kind of error, with the text, in one line."""
    try:
        result = action()
    except kind as error:
        return text in str(error) and "\n" not in str(error)
    if isinstance(result, Store):
        result.close()
    return False
