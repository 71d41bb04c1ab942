"""Tasks and limits refuse nonsense; fair order spans the groups."""

from __future__ import annotations

from collections import Counter

import pytest

from radii.errors import InputError
from radii.runners import Limits, Task, fair_order


@pytest.mark.parametrize("bad", [{"cpu_seconds": 0}, {"wall_seconds": -1}, {"memory_bytes": float("nan")}])
def test_limits_are_positive(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"limits\.\w+: expected a number above 0"):
        Limits(**bad)  # type: ignore[arg-type]


def test_tasks_need_a_key_a_function_and_a_count() -> None:
    with pytest.raises(InputError, match="expected a key"):
        Task(key="", function=abs)
    with pytest.raises(InputError, match="retries"):
        Task(key="a", function=abs, retries=-1)


def test_fair_order_spans_classifiers_and_classes() -> None:
    items = [(net, label, i) for net in "AB" for label in range(3) for i in range(4)]
    order = fair_order(items, group=lambda item: item[:2])
    assert sorted(order) == sorted(items)
    assert Counter(item[0] for item in order[:6]) == {"A": 3, "B": 3}
    assert {item[:2] for item in order[:6]} == {(net, label) for net in "AB" for label in range(3)}
    mine = [item[2] for item in order if item[:2] == ("A", 1)]
    assert mine == [0, 1, 2, 3]


def test_fair_order_of_uneven_groups_keeps_everything() -> None:
    items = ["a1", "a2", "a3", "b1", "c1", "c2"]
    assert fair_order(items, group=lambda item: item[0]) == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert fair_order([], group=lambda item: item) == []
