"""Programs that misbehave are ended within their limits, with all their children, and leave nothing behind."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

from radii.errors import InputError, ToolMissing
from radii.verifiers.process import MARK, Limits, run, scratch

TAG = "RADII_TEST_RUN"
os.environ.setdefault(TAG, uuid.uuid4().hex)  # other programs of radii may run on this machine


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def marked() -> list[int]:
    """The programs that these tests started and that still run, wherever they went."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) and process.environ().get(TAG) == os.environ[TAG]:
                found.append(process.pid)
    return found


def gone(seconds: float = 1.0) -> bool:
    """Whether none of them runs any more, or all end within a second of having been killed."""
    end = time.perf_counter() + seconds
    while marked():
        if time.perf_counter() > end:
            return False
        time.sleep(0.01)
    return True


def zombies() -> list[int]:
    return [c.pid for c in psutil.Process().children() if c.status() == psutil.STATUS_ZOMBIE]


def test_output_code_and_cost_come_back():
    done = run(python("import sys; print(sys.stdin.read()); sys.exit(3)"), Limits(wall=30), stdin=b"hello")
    assert (done.end, done.code, done.stdout) == ("exit", 3, "hello\n")
    assert done.cpu_seconds > 0


def test_a_crash_is_a_negative_code():
    done = run(python("import os; os.kill(os.getpid(), 11)"), Limits(wall=30))
    assert (done.end, done.code) == ("exit", -11)


@pytest.mark.parametrize(
    ("code", "limits", "end"),
    [
        ("import time; time.sleep(600)", Limits(wall=0.3), "time"),
        ("while True: pass", Limits(cpu=0.3, wall=60), "time"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", Limits(wall=0.3), "time"),
        ("a = []\nwhile True: a.append(bytearray(2**22))", Limits(wall=60, memory=200 * 2**20), "memory"),
    ],
)
def test_limits_end_it(code, limits, end):
    done = run(python(code), limits)
    assert done.end == end
    assert marked() == []
    assert zombies() == []


def test_memory_of_children_counts():
    code = (
        "import os, time\nfor _ in range(3):\n  if os.fork() == 0:\n"
        "    a = bytearray(b'x' * 80 * 2**20); time.sleep(60)\ntime.sleep(60)"
    )
    assert run(python(code), Limits(wall=60, memory=200 * 2**20)).end == "memory"
    assert marked() == []


CHILDREN = {
    "forked": "import os, time\nfor _ in range(5): os.fork()\ntime.sleep(600)",
    "own session": "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(600)\ntime.sleep(600)",
    "daemon": (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
        "  time.sleep(600)\ntime.sleep(600)"
    ),
    "left behind": "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(600)\nprint('done')",
}


@pytest.mark.parametrize("kind", CHILDREN)
def test_children_end_with_it(kind):
    run(python(CHILDREN[kind]), Limits(wall=0.5))
    assert marked() == []
    assert zombies() == []


def test_endless_output_is_cut_and_does_not_fill_memory():
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536); sys.stderr.write('y' * 65536)"
    before = psutil.Process().memory_info().rss
    done = run(python(code), Limits(wall=1.0, output=10_000))
    assert done.end == "time"
    assert len(done.stdout) == len(done.stderr) == 10_000
    assert psutil.Process().memory_info().rss - before < 64 * 2**20


def test_the_end_of_stderr_is_kept():
    code = "import sys; sys.stderr.write('a' * 50_000 + 'the reason')"
    assert run(python(code), Limits(wall=30, output=1000)).stderr.endswith("the reason")


def test_ending_takes_under_a_second():
    stop = threading.Event()
    asked = []

    def later() -> None:
        time.sleep(0.5)
        asked.append(time.perf_counter())
        stop.set()

    thread = threading.Thread(target=later)
    thread.start()
    done = run(python(CHILDREN["forked"]), Limits(wall=600), stop=stop.is_set)
    ended = time.perf_counter()
    thread.join()
    assert done.end == "cancelled"
    assert marked() == []
    assert ended - asked[0] < 1.0


def test_a_hundred_cancelled_runs_leave_nothing():
    folder, calls = Path(tempfile.gettempdir()), {"n": 0}
    me = psutil.Process()

    def soon() -> bool:
        calls["n"] += 1
        return calls["n"] % 3 == 0

    def once() -> None:
        with scratch("the test") as place:
            (place / "query").write_text("x")
            assert run(["sh", "-c", "sleep 600 & sleep 600"], Limits(wall=60), cwd=place, stop=soon).end == "cancelled"

    for _ in range(5):
        once()
    gc.collect()
    files, handles, memory = set(folder.glob("radii-*")), me.num_fds(), me.memory_info().rss
    for _ in range(100):
        once()
    gc.collect()
    assert marked() == []
    assert zombies() == []
    assert set(folder.glob("radii-*")) <= files
    assert me.num_fds() == handles
    assert me.memory_info().rss - memory < 8 * 2**20


def test_an_exception_ends_it_too():
    def fail() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(python("import time; time.sleep(600)"), Limits(wall=60), stop=fail)
    assert marked() == []


def test_bad_input_is_said_in_one_line(tmp_path):
    with pytest.raises(ToolMissing, match="no-such-program"):
        run(["no-such-program"], Limits())
    with pytest.raises(InputError, match="folder"):
        run(["true"], Limits(), cwd=tmp_path / "absent")
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(InputError, match="cannot be started"):
        run([str(text)], Limits())


def runs_a_program(exit_line, tmp_path):
    """A Python that runs a program with a child of its own; gives the process once both are there."""
    code = (
        "import threading, time\nfrom radii.verifiers.process import Limits, end_all, run\n"
        f"{exit_line}\nrun(['sh', '-c', 'sleep 600 & sleep 600'], Limits())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    for _ in range(3000):
        if len(marked()) >= 2:
            return parent
        time.sleep(0.02)
    raise AssertionError("the program did not start")


def test_a_terminated_process_takes_its_program_with_it(tmp_path):
    parent = runs_a_program("", tmp_path)
    parent.terminate()
    assert parent.wait(60) == 128 + signal.SIGTERM
    assert gone()


def test_a_process_that_leaves_at_once_can_end_its_programs_first(tmp_path):
    leave = "import os\nthreading.Timer(3, lambda: (end_all(), os._exit(7))).start()"
    parent = runs_a_program(leave, tmp_path)
    assert parent.wait(60) == 7
    assert gone(10)


def test_a_folder_asked_for_is_not_replaced_by_another(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"absent: expected a folder to write to .* TMPDIR"), scratch("the test"):
        pass


def test_an_unwritable_scratch_folder_is_bad_input(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="TMPDIR"), scratch("the test"):
        pass
    assert os.environ.get(MARK) is None
