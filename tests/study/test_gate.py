"""The gate's groups: what is not finished counts against its own question only."""

from __future__ import annotations

from radii.store import Selection, open_store
from radii.study.gate import Demand, judge
from radii.testing.store_exam import record, unit


def test_unfinished_units_count_against_their_own_parameters() -> None:
    """Two studies of one property with different parameters: one finished, the other hardly begun."""
    done, begun = ({"property": "strong", "property_parameters": {"eta": eta}} for eta in (0.1, 0.5))
    with open_store(":memory:") as store:
        finished = [unit(i, **done) for i in range(40)]
        waiting = [unit(i, **begun) for i in range(40)]
        store.plan("study", finished + waiting)
        store.put_many([record(one) for one in [*finished, *waiting[:10]]])
        found = judge(store, Selection(), [Demand(0.5, 0.05)], 0.95)
    assert [(one.n, one.missing, one.passed) for one in found] == [(40, 0, True), (40, 30, False)]
