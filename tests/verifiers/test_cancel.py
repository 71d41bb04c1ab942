"""Cancelled queries, as a search cancels them: the runner kills the worker while the verifier's program runs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import psutil
from test_process import gone, marked, zombies
from tests.verifiers.nets import Net, f32

from radii.decide import Budget
from radii.problem import Domain, Instance, Query
from radii.runners import ProcessRunner, Reason, Task
from radii.verifiers.command import Command
from radii.verifiers.process import scratch

QUERIES = 100


def network():
    net = Net((1,))
    net.add("Gemm", f32([[1.0], [-1.0]]), f32([0.0, 0.0]), transB=1)
    return net.build(2, Domain(-1, 1))


def decide(command, classifier, query):
    return command.decide(classifier, [query], Budget(seconds=600))


def folders() -> list[Path]:
    return [f for f in Path(tempfile.gettempdir()).glob("radii-*-*") if f.name.split("-")[1].isdigit()]


def alive(folder: Path) -> bool:
    return psutil.pid_exists(int(folder.name.split("-")[1]))


def started(count: int) -> bool:
    """Whether that many programs run by now (within a minute)."""
    for _ in range(3000):
        if len(marked()) >= count:
            return True
        time.sleep(0.02)
    return False


def test_a_hundred_cancelled_queries_leave_no_process_file_or_memory():
    # The program is a child with a child of its own; both must go.
    command = Command("sh -c 'sleep 600 & sleep 600' {network} {query}", name="sleeper")
    query, classifier = Query(Instance(f32([0.5]), 0), 0.25), network()
    slowest = 0.0
    with ProcessRunner(2, preload=["radii.verifiers.command"]) as runner:
        for i in range(QUERIES):
            runner.submit(Task(key=f"q{i}", function=decide, args=(command, classifier, query)))
            if i % 10 == 0:  # every tenth is cancelled while the program runs, the others whenever it happens
                assert started(1)
            begin = time.perf_counter()
            assert runner.cancel(f"q{i}")
            outcome = runner.wait(60)
            slowest = max(slowest, time.perf_counter() - begin)
            assert outcome.reason is Reason.CANCELLED
            if i == 9:
                memory = psutil.Process().memory_info().rss
        assert psutil.Process().memory_info().rss - memory < 16 * 2**20
    assert gone()
    assert zombies() == []
    with scratch("the sweep of what killed workers left"):
        assert [f for f in folders() if not alive(f)] == []
    print(f"slowest cancellation: {slowest:.3f} s")
