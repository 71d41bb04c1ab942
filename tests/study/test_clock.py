"""A clock that is set while a study runs: claims hold, the dead are still known, and what is retried is right."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.study.build import toy_study

from radii.problem import Radius
from radii.store import RadiusRecord, Store, open_store
from radii.study.claims import Claims, release_dead
from radii.study.plan import Plan, load_plan

HOUR = 3600.0


class Jumps:
    """The wall clock, set forwards or backwards; what counts seconds goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Jumps:
    return Jumps(monkeypatch)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "study.db") as opened:
        yield opened


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return load_plan(toy_study(tmp_path / "s", nets=1))


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_claims_outlive_a_jump(jump: float, store: Store, plan: Plan, clock: Jumps) -> None:
    mine, theirs = Claims(store, plan.units), Claims(store, plan.units)
    held = {unit.key for unit in mine.draw(4)}
    clock.ahead = jump
    mine.tend()
    assert held.isdisjoint(unit.key for unit in theirs.draw(6))
    # They run out by the new clock, not by the old one.
    clock.ahead = jump + 600.0
    assert len(store.claim(plan.records[:4], "another", seconds=1.0)) == 4


def test_a_living_process_is_not_taken_for_a_dead_one(store: Store, plan: Plan, tmp_path: Path) -> None:
    """The kernel's time of the last start moves with the clock; who holds claims must not be known by it."""
    claim = (
        "import sys; from radii.store import open_store; from radii.study.claims import Claims;"
        "from radii.study.plan import load_plan; plan = load_plan(sys.argv[1]);"
        "print(len(Claims(open_store(sys.argv[2]), plan.units).draw(4)), flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", claim, str(tmp_path / "s" / "study.yaml"), str(tmp_path / "study.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "4\n"
        with pytest.MonkeyPatch.context() as patch:
            _set_back(patch)
            assert release_dead(store) == 0
        process.kill()
        process.wait()
        assert release_dead(store) == 4


def _set_back(patch: pytest.MonkeyPatch) -> None:
    """The machine seems to have been started an hour later, as after a clock that was set an hour ahead."""
    import psutil

    native = sys.modules[psutil.Process()._proc.__class__.__module__]
    boot = psutil.boot_time() + HOUR
    patch.setattr(native, "boot_time", lambda: boot)


def test_what_a_fast_clock_left_unsolved_is_tried_again(store: Store, plan: Plan, clock: Jumps) -> None:
    unit, now = plan.records[0], time.time()
    clock.ahead = 24 * HOUR
    store.put(RadiusRecord(unit=unit, radius=Radius(tolerance=0.01), finished=time.time()))
    clock.ahead = 0.0
    assert [one.key for one in store.pending([unit], retry_before=now)] == [unit.key]
    assert store.finished_since(now - 60.0) == 0
    store.put(RadiusRecord(unit=unit, radius=Radius(tolerance=0.01), finished=time.time()))
    assert store.pending([unit], retry_before=now) == []
    assert store.finished_since(now - 60.0) == 1
