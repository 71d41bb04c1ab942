"""How a run is shown: the table fits the terminal, the counts are those of the store, the terminal is left sane."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from tests.study.build import toy_study

from radii.cli.live import picture, progress_line, shortened
from radii.cli.pools import requested
from radii.errors import InputError
from radii.problem import Radius
from radii.runners import SerialRunner
from radii.store import RadiusRecord, open_store
from radii.study.describe import plan_lines
from radii.study.plan import load_plan
from radii.study.run import Run
from radii.study.tally import Row, Tally


@pytest.fixture
def tally(tmp_path: Path) -> Tally:
    """A study of two networks with two units finished by another process."""
    plan = load_plan(toy_study(tmp_path / "s", inputs=4))
    with open_store(":memory:") as store, SerialRunner() as runner:
        remaining = Run(plan, store, runner).prepare()
        made = Tally(plan, store, remaining)
        assert (made.done, made.rate, made.seconds_left) == (0, None, None)
        ends = (Radius(0.1, 0.3, tolerance=0.01), Radius(0.1, 0.105, tolerance=0.01))
        store.put_many([RadiusRecord(unit=u, radius=r) for u, r in zip(plan.records, ends, strict=False)])
        made.look()
        return made


def drawn(tally: Tally, columns: int, lines: int) -> list[str]:
    console = Console(width=columns, height=lines, file=io.StringIO())
    console.print(picture(tally, columns, lines))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_what_others_finish_is_counted(tally: Tally) -> None:
    assert (tally.done, tally.planned, tally.progressed) == (2, 8, 2)
    row = tally.rows["toy0"]
    assert (row.statuses, row.planned) == (Counter(open=1, closed=1), 4)
    assert row.width == pytest.approx(0.2)
    assert progress_line(tally) == "2/8 done: 1 closed, 1 open"
    assert drawn(tally, 80, 24)[1:] == [
        "classifier  done  closed  open  width",
        "toy0         2/4       1     1    0.2",
        "toy1         0/4       0     0      -",
    ]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_many_long_names_fit_and_stay_apart(tally: Tally, columns: int, lines: int) -> None:
    names = [f"a-network-with-a-long-name-trained-by-some-recipe-{i:03d}" for i in range(100)]
    every = Counter(closed=1234, open=567, robust=89, misclassified=10, unsolved=7)
    tally.rows = {name: Row(planned=2000, statuses=Counter(every), width=0.0123) for name in names}
    picture = drawn(tally, columns, lines)
    assert len(picture) < lines
    assert max(map(len, picture)) <= columns - 2
    shown = [line.split()[0] for line in picture[2:-1]]
    assert len(set(shown)) == len(shown) == lines - 5
    assert "1907/2000" in picture[2]
    assert "0.012" in picture[2]
    assert picture[-1].strip() == f"and {100 - len(shown)} more classifiers"


def test_names_are_cut_in_the_middle() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("mnist-net-trained-for-9", 12) == "mni…ed-for-9"


def test_a_plan_is_told_before_it_starts(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "s", property={"kind": "classification", "target": "all"}, norm=["linf", "l2"])
    lines = plan_lines(load_plan(study))
    assert lines[0] == "classifiers: toy0, toy1"
    assert lines[1].startswith("inputs: 6 of points")
    assert "classification target 0, 1, 2" in lines[2]
    assert ", l2, direct by native" in lines[2]
    assert lines[3] == "budget: 50 nodes per input; seed 0"


def test_what_a_ray_task_occupies() -> None:
    found = requested(["cpus=2", "gpus=1/4", "memory=4GiB", "bigmem=1"])
    assert found.needs() == {"CPU": 2.0, "GPU": 0.25, "memory": 4.0 * 2**30, "bigmem": 1.0}
    for text in ("cpus", "cpus=many", "bigmem=0"):
        with pytest.raises(InputError, match="--request"):
            requested([text])


def test_a_terminal_is_left_sane(tmp_path: Path) -> None:
    """In a real terminal: the table is drawn, Ctrl-C is obeyed, the cursor comes back and no picture stays."""
    study = toy_study(tmp_path / "s", inputs=40)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = [sys.executable, "-m", "radii.cli.main", "run", str(study), "--workers", "1"]
    env = {**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, preexec_fn=_own_terminal)
    os.close(theirs)
    text = b""
    while b" done, " not in text:
        text += os.read(ours, 65536)
    os.write(ours, b"\x03")
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert process.wait() == 3
    said = text.decode()
    assert "toys: 80 units, 80 to do" in said
    assert "toy1" in said
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")
    after = said[said.rindex("\x1b[?25h") :]
    assert "classifier" not in after
    assert after.rstrip().endswith("run the same command again to go on")


def _own_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
