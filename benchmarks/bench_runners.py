"""What a runner costs a unit, and what a second worker gains: python benchmarks/bench_runners.py [--ray]"""

from __future__ import annotations

import argparse
import time

from radii.runners import ProcessRunner, RayRunner, Runner, SerialRunner, Task
from radii.testing.runner_exam import spin, square


def overhead(runner: Runner, number: int) -> float:
    """Wall milliseconds a trivial unit, once the runner is warm."""
    list(runner.run(Task(key=f"warm{i}", function=square, args=(i,)) for i in range(10 * runner.workers)))
    start = time.perf_counter()
    outcomes = list(runner.run(Task(key=str(i), function=square, args=(i,)) for i in range(number)))
    elapsed = time.perf_counter() - start
    assert all(outcome.ok for outcome in outcomes)
    return elapsed / number * 1e3


def cancellation(runner: Runner, number: int = 20) -> tuple[float, float]:
    """Wall milliseconds to cancel a running task, and to have an answer from its successor: mean and worst."""
    times = []
    for i in range(number):
        runner.submit(Task(key=f"sleep{i}", function=time.sleep, args=(60,)))
        time.sleep(0.05)
        start = time.perf_counter()
        runner.cancel(f"sleep{i}")
        runner.submit(Task(key=f"next{i}", function=square, args=(i,)))
        while runner.wait() is not None:
            pass
        times.append((time.perf_counter() - start) * 1e3)
    return sum(times) / number, max(times)


def study(workers: int, number: int, seconds: float) -> float:
    """Wall seconds of units that each use that many CPU seconds."""
    with ProcessRunner(workers, threads=1) as runner:
        list(runner.run(Task(key=f"warm{i}", function=square, args=(i,)) for i in range(10 * workers)))
        start = time.perf_counter()
        list(runner.run(Task(key=str(i), function=spin, args=(seconds,)) for i in range(number)))
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=2000)
    parser.add_argument("--ray", action="store_true", help="also measure Ray, on a local cluster")
    options = parser.parse_args()
    with SerialRunner() as serial:
        print(f"serial: {overhead(serial, options.units):.3f} ms per unit")
    with ProcessRunner(2, threads=1) as local:
        print(f"local, 2 workers: {overhead(local, options.units):.3f} ms per unit")
        print("local, cancel and go on: {:.0f} ms (worst {:.0f})".format(*cancellation(local)))
    if options.ray:
        with RayRunner() as ray:
            print(f"ray, {ray.workers} workers: {overhead(ray, options.units // 4):.3f} ms per unit")
            print("ray, cancel and go on: {:.0f} ms (worst {:.0f})".format(*cancellation(ray)))
    one, two = study(1, 200, 0.05), study(2, 200, 0.05)
    print(f"200 units of 50 CPU ms: {one:.2f} s with one worker, {two:.2f} s with two: {one / two:.2f} times faster")


if __name__ == "__main__":
    main()
