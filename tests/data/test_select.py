"""Selection: the inputs asked for, all of them, in order; wrong ones are remembered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.data import Dataset, only, parse_indices, select
from radii.errors import InputError


def make(labels, indices=()):
    labels = np.asarray(labels)
    x = np.linspace(0, 1, 3 * len(labels), dtype=np.float32).reshape(-1, 3)
    return Dataset(x, labels, "toy", "test", ("a", "b", "c"), indices=np.asarray(indices, dtype=np.int64))


DATA = make([0, 1, 2, 0, 1, 2, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0:3", [0, 1, 2]),
        ("0,5,7", [0, 5, 7]),
        ("7:", [7, 8, 9]),
        (":2", [0, 1]),
        (" 0:6:2 , 9", [0, 2, 4, 9]),
        ([3, 1], [3, 1]),
        (np.array([4]), [4]),
        (4, [4]),
    ],
)
def test_indices(text, found):
    assert select(DATA, indices=text).indices.tolist() == found


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"indices": "0:11"}, r"among the 10 it holds \(0 to 9\), got 10 \(1 such\)"),
        ({"indices": "3:3"}, "empty selection"),
        ({"indices": []}, "empty selection"),
        ({"indices": "1,1"}, "got 1 twice"),
        ({"indices": "a"}, "'0:100' or '0,5,7', got 'a'"),
        ({"indices": "-1"}, "got '-1'"),
        ({"indices": "0:4:0"}, "step of at least 1"),
        ({"indices": [1.5]}, "indices: expected a whole number"),
        ({"first": 11}, "expected first of at most 10, got 11"),
        ({"first": 0}, "first: expected a whole number of at least 1"),
        ({"per_class": 3}, r"per_class \(class b\) of at most 3|per_class \(class c\) of at most 2, got 3"),
        ({"stratified": 11}, "expected stratified of at most 10"),
        ({"first": 1, "indices": "0"}, "expected one of indices, first, per_class, stratified, got indices and first"),
    ],
)
def test_bad_selections_are_one_line(asked, says):
    with pytest.raises(InputError, match=says) as caught:
        select(DATA, **asked)
    assert "\n" not in str(caught.value)


def test_first_and_per_class():
    assert select(DATA, first=3).indices.tolist() == [0, 1, 2]
    picked = select(DATA, per_class=2)
    assert picked.indices.tolist() == [0, 1, 2, 3, 4, 5]
    assert select(DATA) is DATA


def test_indices_are_positions_in_the_split_not_in_the_part():
    part = make([0, 1, 2], indices=[40, 10, 30])
    assert select(part, indices="30,40").x[:, 0].tolist() == part.x[[2, 0], 0].tolist()
    with pytest.raises(InputError, match="10 to 40"):
        select(part, indices="0")


@given(st.integers(3, 60), st.integers(0, 1000), st.data())
def test_stratified_keeps_shares_and_repeats(n, seed, data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    dataset = make(labels)
    count = data.draw(st.integers(1, n))
    picked = select(dataset, stratified=count, seed=seed)
    assert len(picked) == len(set(picked.indices.tolist())) == count
    for label in range(3):
        share = labels.count(label) * count / n
        assert abs((picked.y == label).sum() - share) < 1
    again = select(dataset, stratified=count, seed=seed)
    assert picked.indices.tolist() == again.indices.tolist()


def test_stratified_seeds_differ():
    dataset = make([0, 1, 2] * 40)
    assert (
        select(dataset, stratified=30, seed=0).indices.tolist()
        != select(dataset, stratified=30, seed=1).indices.tolist()
    )


def test_only_correct_remembers_the_wrong_ones():
    predictions = DATA.y.copy()
    predictions[[2, 5]] = [0, 1]
    chosen = only(DATA, "correct", predictions)
    assert [i.index for i in chosen.instances] == [0, 1, 3, 4, 6, 7, 8, 9]
    assert [i.index for i in chosen.misclassified] == [2, 5]
    assert chosen.predictions.tolist() == [0, 1]
    assert len(chosen) == len(DATA)


def test_only_at_the_ends():
    all_wrong = only(DATA, "correct", (DATA.y + 1) % 3)
    assert all_wrong.instances == []
    assert len(all_wrong.misclassified) == 10
    all_right = only(DATA, "correct", DATA.y)
    assert all_right.misclassified == []
    assert only(DATA, "all", None).instances == DATA.instances
    with pytest.raises(InputError, match="expected 10 predictions"):
        only(DATA, "correct", [0, 1])
    with pytest.raises(InputError, match="only: expected one of correct, all, got 'right'"):
        only(DATA, "right", DATA.y)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10, unique=True))
def test_text_and_list_agree(values):
    assert parse_indices(",".join(map(str, values))) == values == parse_indices(values)
