"""The exam every runner passes: subclass `RunnerExam` in a test module and say how to make one.

    class TestMine(RunnerExam):
        def make(self, workers):
            return MyRunner(workers)

Runners with `hard_limits = False` are excused from the questions about stopping a running task.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import psutil

from radii.errors import InputError
from radii.runners import Limits, Outcome, Reason, Runner, Task
from radii.testing._runner_tasks import (
    MIB,
    crash,
    crash_leaving_child,
    devour,
    devouring_child,
    die_once,
    fail,
    hold,
    spin,
    spinning_child,
    square,
    touch_and_sleep,
    unsendable,
    with_child,
)


def eventually(condition: Any, seconds: float = 10.0) -> bool:
    """Whether the condition comes true within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def gone(pid: int) -> bool:
    """Whether the process has ended (a zombie waiting for its parent has)."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def written(path: Path) -> int | None:
    """The process id in a file, once it is there."""
    return int(text) if path.exists() and (text := path.read_text()) else None


def take(runner: Runner, seconds: float = 60.0) -> Outcome:
    """The next outcome, or an assertion."""
    outcome = runner.wait(timeout=seconds)
    assert outcome is not None, "expected an outcome, got none in time"
    return outcome


class RunnerExam(ABC):
    """Questions about any runner; every `test_` method is one."""

    @abstractmethod
    def make(self, workers: int) -> Runner:
        """A fresh runner with that many workers."""

    def limited(self) -> Runner | None:
        """A runner with two workers if it has hard limits, None if it is excused."""
        runner = self.make(2)
        if runner.hard_limits:
            return runner
        runner.close()
        return None

    def test_every_task_has_one_outcome(self) -> None:
        with self.make(2) as runner:
            tasks = [Task(key=f"t{i}", function=square, args=(i,)) for i in range(25)]
            outcomes = list(runner.run(tasks))
        assert sorted((o.key, o.value) for o in outcomes) == sorted((f"t{i}", i * i) for i in range(25))
        assert all(o.ok and o.attempts == 1 and o.wall_seconds >= 0 for o in outcomes)

    def test_nothing_pending_gives_none(self) -> None:
        with self.make(1) as runner:
            assert runner.wait() is None
            assert list(runner.run([])) == []

    def test_exceptions_are_outcomes(self) -> None:
        with self.make(1) as runner:
            outcomes = list(
                runner.run(
                    [Task(key="a", function=fail, args=("bad\nthing",)), Task(key="b", function=square, args=(3,))]
                )
            )
        bad, good = sorted(outcomes, key=lambda outcome: outcome.key)
        assert bad.reason is Reason.ERROR
        assert bad.failure is not None
        assert bad.failure.message == "ValueError: bad"
        assert "in fail" in bad.failure.detail
        assert good.value == 9

    def test_pending_keys_are_unique(self) -> None:
        with self.make(1) as runner:
            runner.submit(Task(key="same", function=square, args=(1,)))
            assert self.refused(runner, Task(key="same", function=square, args=(2,)))
            assert take(runner).value == 1

    def test_tasks_are_drawn_lazily_and_early_close_cancels(self) -> None:
        drawn = []

        def source() -> Any:
            for i in range(1000):
                drawn.append(i)
                yield Task(key=str(i), function=square, args=(i,))

        with self.make(1) as runner:
            stream = runner.run(source())
            assert next(stream).ok
            stream.close()
            assert len(drawn) < 20
            assert runner.wait(timeout=1) is None
            assert next(iter(runner.run([Task(key="0", function=square, args=(5,))]))).value == 25

    def test_queued_tasks_can_be_cancelled(self) -> None:
        with self.make(1) as runner:
            for i in range(3):
                runner.submit(Task(key=str(i), function=hold, args=(10,)))
            assert runner.cancel("2")
            assert not runner.cancel("unknown")
            outcomes = {o.key: o for o in (take(runner) for _ in range(3))}
        assert outcomes["2"].reason is Reason.CANCELLED
        assert outcomes["0"].ok
        assert outcomes["1"].ok

    def test_closing_twice_is_fine_and_closed_means_closed(self) -> None:
        runner = self.make(1)
        runner.submit(Task(key="a", function=square, args=(2,)))
        assert take(runner).value == 4
        runner.close()
        runner.close()
        assert self.refused(runner, Task(key="b", function=square, args=(2,)))

    def test_costs_are_measured(self) -> None:
        with self.make(1) as runner:
            light, heavy = sorted(
                runner.run(
                    [Task(key="a", function=spin, args=(0.2,)), Task(key="b", function=hold, args=(200 * MIB,))]
                ),
                key=lambda outcome: outcome.key,
            )
        assert 0.19 <= light.cpu_seconds < 5
        assert light.wall_seconds >= 0.19
        assert heavy.wall_seconds >= 0.1
        assert heavy.peak_memory is None or heavy.peak_memory >= 200 * MIB
        # A peak belongs to its task, not to the worker's life.
        assert light.peak_memory is None or heavy.peak_memory is None or light.peak_memory < heavy.peak_memory

    def test_unsendable_results_are_errors(self) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            runner.submit(Task(key="a", function=unsendable))
            outcome = take(runner)
        assert outcome.reason is Reason.ERROR

    def test_unsendable_tasks_are_refused(self) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            assert self.refused(runner, Task(key="a", function=lambda: 1))
            assert runner.wait(timeout=0) is None

    def test_first_finished_then_cancel_the_others(self, tmp_path: Path) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            slow = tmp_path / "slow"
            runner.submit(Task(key="slow", function=touch_and_sleep, args=(str(slow), 60)))
            assert eventually(lambda: written(slow))
            runner.submit(Task(key="quick", function=square, args=(3,)))
            assert take(runner).key == "quick"
            pid = written(slow)
            assert pid is not None
            assert runner.cancel("slow")
            outcome = take(runner, 5)
            assert outcome.key == "slow"
            assert outcome.reason is Reason.CANCELLED
            assert eventually(lambda: gone(pid), 5)
            assert not runner.cancel("slow")
            runner.submit(Task(key="slow", function=square, args=(4,)))
            assert take(runner).value == 16

    def test_cancelling_ends_child_processes(self, tmp_path: Path) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            path = tmp_path / "child"
            runner.submit(Task(key="a", function=with_child, args=(str(path),)))
            assert eventually(lambda: written(path))
            pid = written(path)
            assert pid is not None
            runner.cancel("a")
            assert take(runner, 5).reason is Reason.CANCELLED
            assert eventually(lambda: gone(pid), 5)

    def test_closing_ends_what_runs(self, tmp_path: Path) -> None:
        if (runner := self.limited()) is None:
            return
        path = tmp_path / "child"
        with runner:
            runner.submit(Task(key="a", function=with_child, args=(str(path),)))
            assert eventually(lambda: written(path))
        pid = written(path)
        assert pid is not None
        assert eventually(lambda: gone(pid), 5)

    def test_time_limits_hold(self) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            runner.submit(Task(key="wall", function=time.sleep, args=(60,), limits=Limits(wall_seconds=0.3)))
            runner.submit(Task(key="cpu", function=spin, args=(60,), limits=Limits(cpu_seconds=0.3)))
            outcomes = {o.key: o for o in (take(runner), take(runner))}
            runner.submit(Task(key="child", function=spinning_child, limits=Limits(cpu_seconds=0.3)))
            child = take(runner)
        assert {o.reason for o in outcomes.values()} | {child.reason} == {Reason.TIME}
        assert outcomes["wall"].cpu_seconds < 0.3 <= outcomes["wall"].wall_seconds < 50
        assert 0.3 <= outcomes["cpu"].cpu_seconds < 50
        assert child.cpu_seconds >= 0.3

    def test_memory_limits_hold_and_others_go_on(self) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            runner.submit(Task(key="greedy", function=devour, limits=Limits(memory_bytes=400 * MIB)))
            for i in range(8):
                runner.submit(Task(key=str(i), function=hold, args=(10,)))
            outcomes = {o.key: o for o in (take(runner) for _ in range(9))}
        greedy = outcomes.pop("greedy")
        assert greedy.reason is Reason.MEMORY
        assert greedy.peak_memory is not None
        assert greedy.peak_memory > 400 * MIB
        assert all(o.ok for o in outcomes.values())

    def test_memory_of_child_processes_counts(self) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            # More than the worker itself and its libraries need.
            runner.submit(Task(key="a", function=devouring_child, limits=Limits(memory_bytes=800 * MIB)))
            outcome = take(runner)
        assert outcome.reason is Reason.MEMORY

    def test_a_storm_of_cancellations_loses_no_outcome(self) -> None:
        if (runner := self.limited()) is None:
            return
        count = 60
        with runner:
            for i in range(count):
                runner.submit(Task(key=str(i), function=time.sleep, args=(0.02 * (i % 3),)))
                if i % 2:
                    runner.cancel(str(i // 2))
            outcomes = [take(runner) for _ in range(count)]
            assert runner.wait(timeout=0.2) is None
        assert sorted(int(outcome.key) for outcome in outcomes) == list(range(count))
        assert {outcome.reason for outcome in outcomes} <= {None, Reason.CANCELLED}

    def test_a_crash_is_an_outcome_and_the_pool_refills(self, tmp_path: Path) -> None:
        if (runner := self.limited()) is None:
            return
        path = tmp_path / "child"
        with runner:
            runner.submit(Task(key="crash", function=crash_leaving_child, args=(str(path),)))
            outcome = take(runner)
            assert outcome.reason is Reason.CRASH
            assert outcome.failure is not None
            assert "SIGABRT" in outcome.failure.message
            pid = written(path)
            assert pid is not None
            assert eventually(lambda: gone(pid), 5)
            values = [o.value for o in runner.run(Task(key=str(i), function=square, args=(i,)) for i in range(4))]
        assert sorted(values) == [0, 1, 4, 9]

    def test_crashes_are_retried_when_asked(self, tmp_path: Path) -> None:
        if (runner := self.limited()) is None:
            return
        with runner:
            once = Task(key="a", function=die_once, args=(str(tmp_path / "once"),), retries=1)
            always = Task(key="b", function=crash, retries=2)
            first, second = sorted(runner.run([once, always]), key=lambda outcome: outcome.key)
        assert (first.value, first.attempts) == ("second", 2)
        assert (second.reason, second.attempts) == (Reason.CRASH, 3)

    @staticmethod
    def refused(runner: Runner, task: Task) -> bool:
        """Whether submitting the task raises `InputError`."""
        try:
            runner.submit(task)
        except InputError:
            return True
        return False
