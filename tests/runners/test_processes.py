"""What only the local pool promises: warm workers, bounded threads, and no process left whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from radii.errors import InputError, RunnerError
from radii.runners import Limits, ProcessRunner, Reason, Task
from radii.runners.processes import cores
from radii.testing.runner_exam import eventually, gone, take, touch_and_sleep, with_child, written

DRIVER = """
import sys, time
from radii.runners import ProcessRunner, Task
from radii.testing.runner_exam import with_child

def local(x):
    return x + 1

with ProcessRunner(2) as runner:
    print(next(runner.run([Task(key="own", function=local, args=(1,))])).value, flush=True)
    try:
        for outcome in runner.run([Task(key=p, function=with_child, args=(p,)) for p in sys.argv[1:]]):
            print(outcome, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print("left", flush=True)
"""


def environment(name: str) -> str | None:
    return os.environ.get(name)


def loaded(module: str) -> bool:
    return module in sys.modules


def parent() -> int:
    return os.getppid()


def shout() -> None:
    os.write(1, b"noise")


def driver(tmp_path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    paths = [tmp_path / "one", tmp_path / "two"]
    process = subprocess.Popen([sys.executable, script, *paths], stdout=subprocess.PIPE, text=True)
    assert eventually(lambda: all(written(path) for path in paths), 60)
    pids = [pid for path in paths if (pid := written(path)) is not None]
    family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    assert set(pids) < set(family)
    return process, family


def test_ctrl_c_finishes_cleanly(tmp_path: Path) -> None:
    process, family = driver(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output.split() == ["2", "interrupted", "left"]
    assert process.returncode == 0
    assert eventually(lambda: all(gone(pid) for pid in family))


def test_a_killed_driver_leaves_no_process(tmp_path: Path) -> None:
    process, family = driver(tmp_path)
    process.kill()
    process.communicate()
    assert eventually(lambda: all(gone(pid) for pid in family))


def test_a_killed_zygote_is_replaced() -> None:
    with ProcessRunner(1) as runner:
        runner.submit(Task(key="a", function=parent))
        zygote = psutil.Process(take(runner).value)
        runner.submit(Task(key="b", function=time.sleep, args=(60,), limits=Limits(wall_seconds=50)))
        time.sleep(0.2)
        zygote.kill()
        assert take(runner).reason is Reason.CRASH
        runner.submit(Task(key="c", function=parent))
        assert take(runner).value != zygote.pid


def test_a_zygote_killed_while_it_loads_is_replaced() -> None:
    """It was taken for bad input ("check the modules to preload"), which it is not."""
    with ProcessRunner(1, preload=["colorsys"]) as runner:
        runner.warm()
        (loading,) = psutil.Process().children()
        loading.kill()
        runner.submit(Task(key="a", function=parent))
        assert take(runner).value != loading.pid


def test_a_zygote_killed_again_and_again_is_no_bad_input() -> None:
    runner = ProcessRunner(1, preload=["tests.runners.suicide"])
    with pytest.raises(RunnerError, match="the helper process was ended by SIGKILL"):
        runner.submit(Task(key="a", function=parent))
    runner.close()


def test_a_stopped_worker_goes_on_where_it_was(tmp_path: Path) -> None:
    with ProcessRunner(1) as runner:
        path = tmp_path / "pid"
        runner.submit(Task(key="a", function=touch_and_sleep, args=(str(path), 0.5)))
        assert eventually(lambda: written(path))
        worker = psutil.Process(int(path.read_text()))
        worker.suspend()
        assert runner.wait(timeout=1.5) is None
        worker.resume()
        assert take(runner).ok


def test_a_stopped_worker_ends_at_its_wall_limit(tmp_path: Path) -> None:
    with ProcessRunner(1) as runner:
        path = tmp_path / "pid"
        limits = Limits(wall_seconds=1.5)
        runner.submit(Task(key="a", function=touch_and_sleep, args=(str(path), 0.5), limits=limits))
        assert eventually(lambda: written(path))
        worker = psutil.Process(int(path.read_text()))
        worker.suspend()
        assert take(runner).reason is Reason.TIME
        assert eventually(lambda: gone(worker.pid))
        runner.submit(Task(key="b", function=parent))
        assert take(runner).ok


STOPPED = """
import sys, time
from radii.runners import Limits, ProcessRunner, Task
from radii.testing.runner_exam import touch_and_sleep
with ProcessRunner(1) as runner:
    limits = Limits(wall_seconds=3.0)
    runner.submit(Task(key="a", function=touch_and_sleep, args=(sys.argv[1], 1.0), limits=limits))
    print(runner.wait(timeout=60))
"""


def test_time_in_which_everything_was_stopped_does_not_count(tmp_path: Path) -> None:
    """As when a container is paused: all processes stand still while the clock goes on."""
    path = tmp_path / "pid"
    driver = subprocess.Popen([sys.executable, "-c", STOPPED, str(path)], stdout=subprocess.PIPE, text=True)
    assert eventually(lambda: written(path), 60)
    worker, main = psutil.Process(int(path.read_text())), psutil.Process(driver.pid)
    main.suspend()
    worker.suspend()
    time.sleep(3.5)
    worker.resume()
    main.resume()
    output, _ = driver.communicate(timeout=60)
    assert "failure=None" in output


def test_a_worker_killed_by_the_system_is_a_recorded_crash(tmp_path: Path) -> None:
    with ProcessRunner(1) as runner:
        path = tmp_path / "pid"
        runner.submit(Task(key="a", function=touch_and_sleep, args=(str(path), 60)))
        assert eventually(lambda: written(path))
        os.kill(int(path.read_text()), signal.SIGKILL)
        outcome = take(runner)
    assert outcome.reason is Reason.CRASH
    assert outcome.failure is not None
    assert "SIGKILL" in outcome.failure.message
    assert "memory" in outcome.failure.message


def test_cancellation_is_quick_and_leaves_nothing(tmp_path: Path) -> None:
    with ProcessRunner(1) as runner:
        path = tmp_path / "pid"
        runner.submit(Task(key="a", function=with_child, args=(str(path),)))
        assert eventually(lambda: written(path))
        family = [child.pid for child in psutil.Process().children(recursive=True)]
        assert runner.cancel("a")
        assert take(runner, 1).reason is Reason.CANCELLED
        assert eventually(lambda: gone(int(path.read_text())), 1)
    assert eventually(lambda: all(gone(pid) for pid in family), 5)


def test_workers_times_threads_stay_within_the_cores() -> None:
    with ProcessRunner(cores()) as runner:
        runner.submit(Task(key="a", function=environment, args=("OMP_NUM_THREADS",)))
        assert take(runner).value == "1"
    with pytest.raises(InputError, match=f"within {cores()} cores, got 1 × {cores() + 1}"):
        ProcessRunner(1, threads=cores() + 1)
    with pytest.raises(InputError, match="workers: expected a whole number of at least 1, got 0"):
        ProcessRunner(0)


def test_workers_are_warm_and_share_devices() -> None:
    with ProcessRunner(2, preload=["colorsys"], devices=["0", "1"]) as runner:
        runner.submit(Task(key="module", function=loaded, args=("colorsys",)))
        assert take(runner).value is True
        for key in "ab":
            runner.submit(Task(key=key, function=environment, args=("CUDA_VISIBLE_DEVICES",)))
        assert {take(runner).value for _ in "ab"} <= {"0", "1"}


def test_workers_load_while_the_caller_goes_on() -> None:
    with ProcessRunner(1, preload=["colorsys", "no_such_module?"]) as runner:
        runner.warm()
        (loading,) = psutil.Process().children()
        runner.submit(Task(key="a", function=parent))
        assert take(runner).value == loading.pid
    unused = ProcessRunner(1, preload=["torch"])
    unused.warm()
    (loading,) = psutil.Process().children()
    unused.close()
    assert gone(loading.pid)


def test_a_module_that_cannot_be_preloaded_is_named() -> None:
    runner = ProcessRunner(1, preload=["no_such_module"])
    with pytest.raises(InputError, match="no_such_module"):
        runner.submit(Task(key="a", function=parent))
    runner.close()


def test_what_tasks_print_stays_out_of_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    with ProcessRunner(1) as runner:
        runner.submit(Task(key="a", function=shout))
        assert take(runner).ok
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == "noise"
