"""Drivers: the radii of a linear classifier on a grid, against its closed form, in batches and concurrently."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from linear import Exact, RunnerPool, ShufflingPool

from radii.decide import Budget
from radii.errors import InputError
from radii.problem import Instance, Radius, Reason, Status
from radii.runners import SerialRunner
from radii.search import Grid, GridSearch, Iterative, KBinary, concurrently, direct, in_batches
from radii.testing.toys import LinearToy, linear_toy

GRID = Grid.steps(0.01, 0.5, 0.01)


@pytest.fixture(scope="module")
def toy() -> LinearToy:
    return linear_toy(3)


@pytest.fixture(scope="module")
def instances(toy: LinearToy) -> list[Instance]:
    """Twenty inputs, all but the last with the label that the network gives."""
    x = np.random.default_rng(0).uniform(size=(20, 5)).astype(np.float32)
    labels = toy.classifier.predict(x)
    labels[-1] = (labels[-1] + 1) % 3
    return [Instance(a, int(label), i) for i, (a, label) in enumerate(zip(x, labels, strict=True))]


def expected(toy: LinearToy, instance: Instance) -> tuple[float | None, float | None]:
    radius = toy.radius(instance.x, instance.label)
    below = [e for e in GRID if e < radius]
    above = [e for e in GRID if e >= radius]
    return (below[-1] if below else None, above[0] if above else None)


def check(toy: LinearToy, instances: list[Instance], found: list[Radius]) -> None:
    assert len(found) == len(instances)
    for instance, radius in zip(instances[:-1], found[:-1], strict=True):
        assert (radius.lower, radius.upper) == expected(toy, instance)
        assert radius.prediction == instance.label
        assert radius.limit == 0.5
        assert (radius.proof is None) == (radius.lower is None)
        if radius.upper is not None:
            assert radius.witness is not None
            assert radius.witness.distance <= radius.upper
        if radius.lower is not None and radius.upper is not None:
            assert radius.status is Status.CLOSED
        elif radius.upper is None:
            assert radius.status is Status.ROBUST
    assert found[-1].status is Status.MISCLASSIFIED
    assert found[-1].cost.queries == 0


SEARCHES: list[Callable[[], GridSearch]] = [
    partial(KBinary, GRID, k=1),
    partial(KBinary, GRID, k=3),
    partial(Iterative, GRID),
]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("at_once", [1, 7, 256])
def test_in_batches(toy: LinearToy, instances: list[Instance], search: Callable[[], GridSearch], at_once: int) -> None:
    decider, seen = Exact(toy), []
    found = in_batches(
        toy.classifier, search, decider, instances, Budget(), at_once=at_once, progress=lambda p, r: seen.append(p)
    )
    check(toy, instances, found)
    assert sorted(seen) == list(range(20))
    assert sum(decider.asked) == sum(r.cost.queries for r in found)
    assert all(r.cost.cancelled == 0 for r in found)
    assert all(r.cost.cpu_seconds == 0.5 * r.cost.queries for r in found)
    if at_once == 256 and search is SEARCHES[0]:
        assert decider.asked[0] == 19  # one question of each instance in one batch
        assert len(decider.asked) <= 6


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(5))
def test_concurrently_in_any_order(
    toy: LinearToy, instances: list[Instance], search: Callable[[], GridSearch], seed: int
) -> None:
    pool = ShufflingPool(toy.classifier, Exact(toy), seed)
    found = concurrently(toy.classifier, search, pool, instances, at_once=4)
    check(toy, instances, found)
    assert pool.most <= 4 * search().k
    assert sum(r.cost.cancelled for r in found) == pool.cancels
    for r in found:
        answered = r.cost.queries - r.cost.cancelled
        assert r.cost.cpu_seconds == answered * 0.5 + r.cost.cancelled * 0.125


def test_missing_answers_are_counted_and_gone_around(toy: LinearToy, instances: list[Instance]) -> None:
    instance = next(i for i in instances if expected(toy, i)[0] not in (None, 0.01) and expected(toy, i)[1] is not None)
    low, high = expected(toy, instance)
    assert low is not None
    assert high is not None
    missing = {low: Reason.TIME, high: Reason.MEMORY}
    (radius,) = in_batches(toy.classifier, partial(KBinary, GRID, k=2), Exact(toy, missing), [instance], Budget())
    place = GRID.epsilons.index(low)
    assert (radius.lower, radius.upper) == (GRID[place - 1], GRID[place + 2])
    assert radius.critical_termination
    assert radius.status is Status.OPEN
    assert (radius.cost.timeouts, radius.cost.memory_errors) == (1, 1)
    assert radius.cost.peak_memory == 1000
    assert radius.cost.nodes == 3 * radius.cost.queries


def test_unsolved_when_nothing_is_answered(toy: LinearToy, instances: list[Instance]) -> None:
    every = dict.fromkeys(GRID, Reason.ERROR)
    (radius,) = in_batches(toy.classifier, partial(KBinary, GRID, k=4), Exact(toy, every), instances[:1], Budget())
    assert (radius.lower, radius.upper, radius.status) == (None, None, Status.UNSOLVED)
    assert radius.cost.queries == len(GRID)
    assert radius.note == "50 queries without an answer, the last: error as the test wants it"


class DeafPool(ShufflingPool):
    """Cancels too late, always: every query is answered."""

    def cancel(self, key: str) -> None:
        assert key


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_contradiction_stops_one_instance_with_an_alarm(
    toy: LinearToy, instances: list[Instance], concurrent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    closest = min(instances[:-1], key=lambda i: toy.radius(i.x, i.label))
    others = [i for i in instances[:-1] if toy.radius(i.x, i.label) > 0.49][:2]
    job, search = toy.classifier, partial(KBinary, GRID, k=50)
    decider = Exact(toy, lies=frozenset({0.49}))
    if concurrent:
        found = concurrently(job, search, DeafPool(toy.classifier, decider, 1), [closest, *others], at_once=3)
    else:
        found = in_batches(job, search, decider, [closest, *others], Budget())
    assert found[0].lower is None
    assert found[0].upper is not None
    assert found[0].witness is not None
    assert "contradiction" in found[0].note
    assert "0.49" in found[0].note
    assert "contradiction" in caplog.text
    for other in found[1:]:
        assert other.note == ""
        assert other.lower is not None


def test_a_runner_is_a_pool_in_a_few_lines(toy: LinearToy, instances: list[Instance]) -> None:
    with SerialRunner() as runner:
        pool = RunnerPool(runner, toy.classifier, Exact(toy), Budget())
        found = concurrently(toy.classifier, partial(KBinary, GRID, k=2), pool, instances, at_once=2)
    check(toy, instances, found)


def test_a_decider_that_loses_answers_is_refused(toy: LinearToy, instances: list[Instance]) -> None:
    class Short(Exact):
        def decide(self, classifier, queries, budget):  # type: ignore[no-untyped-def]
            return super().decide(classifier, queries, budget)[:-1]

    with pytest.raises(InputError, match="exact-linear: expected 19 answers"):
        in_batches(toy.classifier, SEARCHES[0], Short(toy), instances, Budget())


def test_direct_needs_a_measurer(toy: LinearToy, instances: list[Instance]) -> None:
    with pytest.raises(InputError, match="give the ε to ask about"):
        direct(toy.classifier, Exact(toy), instances, Budget())


def test_direct_hands_everything_on(toy: LinearToy, instances: list[Instance]) -> None:
    class Measures(Exact):
        def measure(self, classifier, instances, property, norm, budget, *, tolerance, limit=None, progress=None):  # type: ignore[no-untyped-def]
            found = []
            for i in instances:
                r = self.toy.radius(i.x, i.label)
                found.append(Radius(lower=max(0.0, r - tolerance / 2), tolerance=tolerance, limit=limit))
            return found

    found = direct(toy.classifier, Measures(toy), instances[:3], Budget(), tolerance=0.01, limit=0.7)
    assert [r.limit for r in found] == [0.7] * 3
    with pytest.raises(InputError, match="tolerance"):
        direct(toy.classifier, Measures(toy), instances, Budget(), tolerance=0.0)


def test_open_when_the_smallest_step_is_broken(toy: LinearToy, instances: list[Instance]) -> None:
    """No query proves anything then, however near to 0 the first step is."""
    radius = toy.radius(instances[0].x, instances[0].label)
    for start in (radius * 1.5, radius * 3):
        grid = Grid.steps(start, 10 * radius, 2 * radius)
        (found,) = in_batches(toy.classifier, partial(KBinary, grid), Exact(toy), instances[:1], Budget())
        assert (found.lower, found.upper, found.status) == (None, start, Status.OPEN)


def test_no_instances(toy: LinearToy) -> None:
    assert in_batches(toy.classifier, SEARCHES[0], Exact(toy), [], Budget()) == []
    assert concurrently(toy.classifier, SEARCHES[0], ShufflingPool(toy.classifier, Exact(toy), 0), []) == []
