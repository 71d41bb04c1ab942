"""Runs: each result is kept at once, failures are results, nothing is done twice."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.study.build import Misbehaving, assert_same, table, toy_study

from radii.decide import Budget
from radii.models import load_classifier
from radii.runners import ProcessRunner, Runner, SerialRunner
from radii.store import Selection, Store, open_store, radii_frame
from radii.study.audit import audit
from radii.study.claims import Claims, owner_name, release_dead
from radii.study.estimate import forecast
from radii.study.plan import Plan, PlannedUnit, load_plan
from radii.study.question import Question
from radii.study.run import Finished, Run
from radii.study.stop import Stop


@pytest.fixture(scope="module")
def pool() -> Iterator[Runner]:
    """Two warm workers for all tests of this file."""
    with ProcessRunner(2, threads=1, preload=("radii.study.worker", "tests.study.build")) as runner:
        yield runner


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "study.db") as opened:
        yield opened


def misbehaving(plan: Plan, decider: Misbehaving, budget: Budget) -> Plan:
    """The plan with another decider."""
    first = plan.units[0].question
    question = Question(first.source, first.classifier, dataclasses.replace(first.settings, budget=budget), decider)
    units = [PlannedUnit(w.record, question, w.instance) for w in plan.units if w.question is first]
    return Plan(plan.name, units, plan.body)


def test_a_study_is_done_once_and_true(tmp_path: Path, store: Store, pool: Runner) -> None:
    plan = load_plan(toy_study(tmp_path / "s", inputs=8))
    heard: list[Finished] = []
    done = Run(plan, store, pool, listen=heard.append).run()
    assert (done.planned, done.known, done.done, done.complete) == (16, 0, 16, True)
    assert {f.unit.key for f in heard} == {u.key for u in plan.records}
    frame = radii_frame(store)
    # The labels are those of toy0, so toy0 has none wrong, and toy1 those where the two networks differ.
    nets = {name: load_classifier(tmp_path / "s" / "nets" / f"{name}.onnx") for name in ("toy0", "toy1")}
    for name, net in nets.items():
        data = np.load(tmp_path / "s" / "points.npz")
        wrong = int((net.predict(data["x"]) != data["y"]).sum())
        assert int((frame[frame["classifier"] == name]["status"] == "misclassified").sum()) == wrong
    assert set(frame["status"]) <= {"closed", "open", "misclassified"}
    record = next(store.records(Selection(status=("closed",))))
    assert record.radius.witness is not None
    assert record.environment is not None
    assert "torch" in record.environment.versions
    (row,) = record.queries  # a direct search leaves one row with its whole cost
    assert (row.epsilon, row.verdict, row.detail) == (record.radius.upper, "broken", "direct search, closed")
    assert (row.cpu_seconds, row.nodes) == (record.radius.cost.cpu_seconds, record.radius.cost.nodes)
    found = audit(store)
    assert (found.wrong, found.unchecked) == ([], [])
    assert found.witnesses + found.misclassified == 16
    again = Run(plan, store, pool).run()
    assert (again.known, again.done) == (16, 0)
    assert radii_frame(store).equals(frame)


def test_serial_and_local_agree(tmp_path: Path, store: Store, pool: Runner) -> None:
    plan = load_plan(toy_study(tmp_path / "s"))
    Run(plan, store, pool).run()
    with open_store(tmp_path / "other.db") as other, SerialRunner() as serial:
        Run(plan, other, serial).run()
    assert_same(table(tmp_path / "study.db"), table(tmp_path / "other.db"))


def test_a_search_over_a_grid_keeps_its_queries(tmp_path: Path, store: Store, pool: Runner) -> None:
    grid = {"start": 0.01, "stop": 0.3, "step": 0.01}
    plan = load_plan(toy_study(tmp_path / "s", inputs=4, search={"method": "kbinary", "k": 2, "grid": grid}))
    assert Run(plan, store, pool).run().complete
    direct = load_plan(toy_study(tmp_path / "d", inputs=4))
    with open_store(tmp_path / "direct.db") as other:
        Run(direct, other, pool).run()
        exact = {(r.unit.classifier.name, r.unit.instance.index): r.radius for r in other.records()}
    for record in store.records():
        if record.radius.misclassified:
            continue
        assert len(record.queries) == record.radius.cost.queries > 0
        assert {q.verdict for q in record.queries} <= {"robust", "broken", "unknown"}
        radius = exact[record.unit.classifier.name, record.unit.instance.index]
        assert radius.upper is not None
        assert radius.lower is not None
        if record.radius.lower is not None:
            assert record.radius.lower < radius.upper
        if record.radius.upper is not None:
            assert record.radius.upper > radius.lower
    assert audit(store).wrong == []


def test_a_worker_over_its_memory_is_recorded(tmp_path: Path, store: Store, pool: Runner) -> None:
    plan = load_plan(toy_study(tmp_path / "s", nets=1))
    done = Run(misbehaving(plan, Misbehaving("memory"), Budget(seconds=None, memory=900 * 2**20)), store, pool).run()
    assert (done.done, done.failures) == (6, [])
    frame = radii_frame(store).set_index("index")
    assert frame["memory_errors"].to_dict() == {i: int(i == 1) for i in range(6)}
    assert frame.loc[1, "note"].startswith("memory: ")
    assert frame.loc[1, "peak_memory"] > 900 * 2**20


@pytest.mark.parametrize("how", ["crash", "error"])
def test_a_crash_is_recorded_and_retried_when_asked(tmp_path: Path, store: Store, pool: Runner, how: str) -> None:
    plan = load_plan(toy_study(tmp_path / "s", nets=1))
    done = Run(misbehaving(plan, Misbehaving(how), Budget(seconds=None)), store, pool).run()
    assert [f.unit.instance.index for f in done.failures] == [1]
    assert (done.done, done.complete) == (6, False)
    assert radii_frame(store).set_index("index").loc[1, "note"].startswith(f"{how}: ")
    assert Run(plan, store, pool).run().done == 0
    # Every unit of the misbehaving decider is unsolved; the true one solves them when it is asked to retry.
    cured = Run(plan, store, pool, retry=True).run()
    assert (cured.done, cured.complete) == (6, True)
    assert set(radii_frame(store)["status"]) <= {"closed", "open"}


def test_a_stop_keeps_what_is_finished(tmp_path: Path, store: Store, pool: Runner) -> None:
    plan, stop = load_plan(toy_study(tmp_path / "s", inputs=12)), Stop()
    finished: list[Finished] = []

    def listen(one: Finished) -> None:
        finished.append(one)
        stop.asked = len(finished) >= 5

    done = Run(plan, store, pool, stop, listen=listen).run()
    assert done.stopped
    assert 5 <= done.done < 24
    assert store.info().rows["claims"] == 0
    rest = Run(plan, store, pool).run()
    assert rest.known == done.done
    assert rest.known + rest.done == 24


def test_two_runs_on_one_store_split_the_work(tmp_path: Path) -> None:
    plan = load_plan(toy_study(tmp_path / "s", inputs=12))
    heard: list[list[str]] = [[], []]
    together = threading.Barrier(2)

    def work(place: int) -> None:
        with open_store(tmp_path / "study.db") as opened, SerialRunner() as serial:
            together.wait()
            Run(plan, opened, serial, listen=lambda one: heard[place].append(one.unit.key)).run()

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(map(len, heard)) > 0
    assert sorted(heard[0] + heard[1]) == sorted(unit.key for unit in plan.records)


def test_claims_of_the_dead_are_given_back(tmp_path: Path, store: Store) -> None:
    plan = load_plan(toy_study(tmp_path / "s", nets=1))
    mine, theirs = Claims(store, plan.units), Claims(store, plan.units)
    first = mine.draw(4)
    second = theirs.draw(4)
    assert {w.key for w in first} | {w.key for w in second} == {u.key for u in plan.records}
    assert (len(first), len(second), theirs.waiting) == (4, 2, 4)
    place, pid, _, tail = owner_name().split("/")
    assert release_dead(store) == 0
    store.release(mine.owner)
    # This process number, but begun at another time: a process that is gone.
    assert len(store.claim([w.record for w in first], f"{place}/{pid}/1.00/{tail}")) == 4
    # A claim from elsewhere is only given up when it runs out.
    store.release(theirs.owner)
    assert len(store.claim([w.record for w in second], f"elsewhere/{pid}/1.00/{tail}")) == 2
    assert release_dead(store) == 4
    # A run of this process that ended without being able to give its claims back.
    ended = Claims(store, plan.units)
    assert len(ended.draw(2)) == 2
    assert release_dead(store) == 0
    ended.end()
    assert release_dead(store) == 2


def test_forecast_from_similar_work(tmp_path: Path, store: Store, pool: Runner) -> None:
    plan = load_plan(toy_study(tmp_path / "s"))
    fresh = forecast(plan, store, 2)
    assert (fresh.total, fresh.seconds, fresh.most) == (12, None, None)
    Run(plan, store, pool).run()
    more = load_plan(toy_study(tmp_path / "m", inputs=9, budget={"seconds": 30}))
    found = forecast(more, store, 2)
    assert found.total == 18 - 12
    assert found.samples == 12
    mean = {name: rows["cpu_seconds"].mean() for name, rows in radii_frame(store).groupby("classifier")}
    assert found.seconds == pytest.approx(3 * (mean["toy0"] + mean["toy1"]) / 2)
    assert found.most == pytest.approx(6 * 30 / 2)
