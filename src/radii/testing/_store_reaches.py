"""The part of the exam of stores that asks about reaches: kept, narrowed, merged, exported, and older stores opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from radii.problem import Percent, Proof, Reach, Witness
from radii.problem.radius import Cost
from radii.store import (
    ReachRecord,
    Selection,
    Unit,
    export,
    merge,
    open_store,
    queries_frame,
    radii_frame,
    reaches_frame,
)
from radii.testing._store_records import record, unit

EPSILON = 0.05
FIRST = ["classifier", "dataset", "split", "index", "label", "prediction", "property", "target", "norm", "epsilon"]
THEN = ["lower", "upper", "status", "search", "verifier", "queries", "timeouts", "memory_errors", "cancelled"]
REACHES_CONTRACT = [*FIRST, *THEN, "cpu_seconds", "wall_seconds", "seed"]


def asked(index: int, network: str = "net", epsilon: float = EPSILON, **setting: Any) -> Unit:
    """A unit that asks for a reach."""
    return unit(index, network, **{"property": "standard", "epsilon": epsilon, **setting})


def reached(work: Unit, lower: float | None = 1.0, upper: float | None = 1.5, **more: Any) -> ReachRecord:
    """A finished reach of a greatest value: with a lower end it has a witness, with an upper end a proof."""
    witness = None
    if lower is not None:
        outputs = np.array([lower, -1.0], dtype=np.float32)
        witness = Witness(x=np.full((2, 3), lower, dtype=np.float32), distance=0.05, prediction=0, outputs=outputs)
    values = {"tolerance": 0.02, "start": 0.25, "resolution": 1e-6, "prediction": 1, "cost": Cost(cpu_seconds=1.5)}
    proof = None if upper is None else Proof("branch and bound")
    ends = {"lower": lower, "upper": upper, "witness": witness, "proof": proof}
    return ReachRecord(unit=work, reach=Reach(float(work.setting.epsilon or 0.0), **{**ends, **values, **more}))


class ReachExam(ABC):
    """Questions about reaches; every `test_` method is one."""

    shared: bool = True

    @abstractmethod
    def fresh(self, tmp_path: Path) -> str:
        """The address of a store that does not exist yet."""

    def test_a_reach_comes_back_as_it_was(self, tmp_path: Path) -> None:
        kept = [reached(asked(0)), reached(asked(1), -0.5, None, least=True, proof=None, unit="probability", note="x")]
        kept[1] = replace(kept[1], reach=replace(kept[1].reach, lower=None, upper=-0.5))
        with open_store(self.fresh(tmp_path)) as store:
            store.put_many([*kept, record(unit(0))])
            found = list(store.reaches())
            assert len(list(store.records())) == 1
            assert len(list(store.results())) == 3
        for one, other in zip(found, kept, strict=True):
            assert one.reach.witness is not None
            assert other.reach.witness is not None
            assert np.array_equal(one.reach.witness.x, other.reach.witness.x)
            assert replace(one.reach, witness=None) == replace(other.reach, witness=None)
            assert (one.unit.key, one.unit.setting.epsilon, one.finished) == (other.unit.key, EPSILON, other.finished)

    def test_the_size_of_the_ball_is_part_of_the_key(self, tmp_path: Path) -> None:
        works = [unit(0, property="standard"), asked(0), asked(0, epsilon=0.1)]
        assert len({work.key for work in works}) == 3
        with open_store(self.fresh(tmp_path)) as store:
            store.plan("study", works)
            store.put(reached(works[1]))
            assert store.pending(works) == [works[0], works[2]]
            assert [found.key for found in store.planned("study")] == [work.key for work in works]
            assert store.claim(works, "ann") == [works[0], works[2]]
            assert store.progress("study")[0].statuses == {"open": 1}

    def test_exported_reaches_have_the_columns_of_the_contract(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as store:
            store.put_many([reached(asked(3)), reached(asked(4), None, 2.0), record(unit(3))])
            frame = reaches_frame(store)
            assert list(frame.columns)[: len(REACHES_CONTRACT)] == REACHES_CONTRACT
            assert list(frame["index"]) == [3, 4]
            assert list(radii_frame(store)["index"]) == [3]
            assert len(queries_frame(store)) == 2
            assert len(reaches_frame(store, Selection(epsilon=(EPSILON,), status=("open",)))) == 2
            assert len(reaches_frame(store, Selection(epsilon=(0.5,)))) == 0
        rows = (export(frame, "csv") or "").splitlines()
        at = rows[0].split(",").index("epsilon")
        assert [row.split(",")[at : at + 3] for row in rows[1:]] == [["0.05", "1.0", "1.5"], ["0.05", "", "2.0"]]

    def test_later_reaches_narrow_and_contradictions_are_alarms(self, tmp_path: Path) -> None:
        work = asked(0)
        with open_store(self.fresh(tmp_path)) as store:
            store.put(reached(work, 1.0, 1.5))
            store.put(reached(work, 0.9, 1.25))
            found = next(store.reaches())
            assert (found.reach.lower, found.reach.upper) == (1.0, 1.25)
            assert found.reach.witness is not None
            assert found.reach.witness.outputs[0] == 1.0
            assert found.reach.cost.cpu_seconds == 3.0
            assert len(store.put_many([reached(work, 2.0, None)])) == 1
            found = next(store.reaches())
            assert (found.reach.lower, found.reach.upper) == (1.0, 1.25)
            crossed = Reach.found(EPSILON, 3.0, 2.0, least=False, witness=found.reach.witness)
            alarms = store.put_many([ReachRecord(unit=asked(1), reach=crossed)])
            assert [alarm.message[:14] for alarm in alarms] == ["contradiction:"]

    def test_reaches_are_merged(self, tmp_path: Path) -> None:
        with open_store(self.fresh(tmp_path)) as target, open_store(":memory:") as source:
            target.put(reached(asked(0), 1.0, 1.5))
            source.put_many([reached(asked(0), 1.2, 1.6), reached(asked(1)), record(unit(0))])
            done = merge(target, [source])
            assert (done.added, done.known) == (2, 1)
            frame = reaches_frame(target).set_index("index")
            assert (frame.loc[0, "lower"], frame.loc[0, "upper"]) == (1.2, 1.5)

    def test_a_store_of_the_second_schema_opens(self, tmp_path: Path) -> None:
        if not self.shared:
            return
        where, before = self.fresh(tmp_path), record(unit(0))
        with open_store(where) as store:
            store.put(before)
            with store.write() as connection:
                connection.exec_driver_sql("ALTER TABLE radii DROP COLUMN tolerance_percent")
                connection.exec_driver_sql("UPDATE radii_store SET value = '2' WHERE name = 'schema'")
        with open_store(where) as store:
            found = store.get(before.unit.key)
            assert found is not None
            assert found.radius.tolerance == before.radius.tolerance
            assert store.pending([unit(0)]) == []
            store.put(record(unit(1), tolerance=Percent(5.0)))

    def test_a_store_of_the_first_schema_opens(self, tmp_path: Path) -> None:
        if not self.shared:
            return
        where, before = self.fresh(tmp_path), record(unit(0))
        with open_store(where) as store:
            store.put(before)
            with store.write() as connection:
                connection.exec_driver_sql("ALTER TABLE settings DROP COLUMN epsilon")
                for name in ("extremum", "start", "resolution", "unit", "tolerance_percent"):
                    connection.exec_driver_sql(f"ALTER TABLE radii DROP COLUMN {name}")
                connection.exec_driver_sql("UPDATE radii_store SET value = '1' WHERE name = 'schema'")
        with open_store(where) as store:
            assert [one.unit.key for one in store.records()] == [before.unit.key]
            assert store.pending([unit(0), asked(0)]) == [asked(0)]
            store.put(reached(asked(0)))
            assert len(list(store.results())) == 2
