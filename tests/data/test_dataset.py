"""Dataset and the way from stored numbers to it: shapes, units, labels, alarms."""

from __future__ import annotations

import numpy as np
import pytest

from radii.data import Dataset
from radii.data.scale import channels_first, scaled
from radii.errors import DataError
from radii.problem import Domain, Instance

X = np.linspace(0, 1, 24, dtype=np.float32).reshape(6, 4)
Y = np.array([0, 1, 2, 0, 1, 2])


def bad(match):
    return pytest.raises(DataError, match=match)


def test_items_slices_and_lists():
    data = Dataset(X, Y, "toy", "test")
    assert isinstance(data[2], Instance)
    assert (data[2].label, data[2].index, data[2].dataset, data[2].split) == (2, 2, "toy", "test")
    assert data[-1].index == 5
    part = data[1:5:2]
    assert isinstance(part, Dataset)
    assert part.indices.tolist() == [1, 3]
    assert part[1].index == 3
    assert data[[4, 0]].indices.tolist() == [4, 0]
    assert data[Y == 2].indices.tolist() == [2, 5]
    assert [i.index for i in data] == list(range(6))
    assert (len(data), data.shape, data.classes, data.class_names) == (6, (4,), 3, ("0", "1", "2"))
    assert repr(data) == "Dataset(toy test: 6 inputs of 4, 3 classes)"


def test_beyond_the_end():
    data = Dataset(X, Y)
    with pytest.raises(IndexError, match="below 6, got 6"):
        data[6]
    with bad("positions below 6"):
        data[[0, 6]]
    with bad("empty selection from 6"):
        data[6:]
    with bad("empty selection"):
        data[[]]
    with bad("a position, a slice or a list"):
        data["0:3"]


def test_the_callers_array_stays_writable_and_ours_does_not():
    mine = X.copy()
    data = Dataset(mine, Y)
    assert mine.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.x[0, 0] = 1


def test_a_label_column_is_taken():
    assert Dataset(X, Y[:, None].astype(np.uint8)).y.tolist() == Y.tolist()
    assert Dataset(X, Y.astype(np.float64)).y.dtype == np.int64


@pytest.mark.parametrize(
    ("x", "y", "options", "says"),
    [
        (X, Y[:-1], {}, r"as many labels as inputs \(6\), got 5"),
        (X, Y, {"class_names": ("a", "b")}, r"labels from 0 to 1, got 2 at input 2 \(2 such labels\)"),
        (X, Y - 1, {}, "labels from 0 to 1, got -1 at input 0"),
        (X, Y + 0.5, {}, "expected whole numbers"),
        (X, np.eye(6), {}, "one whole number per input, got an array of shape"),
        (np.where(X > 0.9, np.nan, X), Y, {}, "NaN or infinity in 1 inputs, first in input 5"),
        (np.where(X > 0.9, np.inf, X), Y, {}, "NaN or infinity"),
        (X * 255, Y, {}, r"domain \[0, 1\], got \[0, 255\]: these look like pixels from 0 to 255; give scale=255"),
        (X * 2 - 1, Y, {}, r"got \[-1, 1\]; give domain=LOW,HIGH"),
        (X * 2 - 1, Y, {"domain": Domain(0, 2)}, r"domain \[0, 2\], got \[-1, 1\]"),
        (X[:0], Y[:0], {}, "nothing to study"),
        (X[0], Y[:4], {}, "nothing to study"),
    ],
)
def test_bad_values_are_one_line(x, y, options, says):
    with bad(says) as caught:
        Dataset(x, y, **options)
    assert "\n" not in str(caught.value)


def test_alarms():
    assert Dataset(X, Y).alarms == ()
    assert "divided by 255 twice" in Dataset(X / 255, Y).alarms[0]
    assert "all 6 inputs are the same" in Dataset(np.ones((6, 2)), Y).alarms[0]


def test_bytes_become_the_domain():
    pixels = np.arange(256, dtype=np.uint8)[None]
    unit = scaled(pixels, Domain())
    assert unit.dtype == np.float32
    assert (unit[0] == np.arange(256, dtype=np.float32) / np.float32(255)).all()
    assert (unit[0] == (np.arange(256) / 255).astype(np.float32)).all()
    assert scaled(pixels, Domain(0, 255)).max() == 255
    signed = scaled(pixels, Domain(-1, 1))
    assert (signed.min(), signed.max()) == (-1, 1)
    assert scaled(pixels, Domain.of(None)).max() == 255
    assert scaled(pixels, Domain(), 510).max() == 0.5


def test_other_types_are_taken_as_they_are():
    assert scaled(np.array([[0.25]]), Domain())[0, 0] == 0.25
    assert scaled(np.array([[16.0]]), Domain(), 16)[0, 0] == 1.0
    with bad("expected numbers, got values of type <U1"):
        scaled(np.array(["a"]), Domain())
    with bad(r"got only 0 and 1; give scale=1 \(.*\) or scale=255"):
        scaled(np.array([[0, 1]], dtype=np.uint8), Domain())
    assert scaled(np.array([[0, 1]], dtype=np.uint8), Domain(), 1).max() == 1


@pytest.mark.parametrize(
    ("shape", "layout", "found"),
    [
        ((2, 32, 30, 3), "auto", (2, 3, 32, 30)),
        ((2, 3, 32, 30), "auto", (2, 3, 32, 30)),
        ((2, 28, 28), "auto", (2, 1, 28, 28)),
        ((2, 28, 28, 1), "auto", (2, 1, 28, 28)),
        ((2, 3, 5, 1), "last", (2, 1, 3, 5)),
        ((2, 3, 5, 1), "first", (2, 3, 5, 1)),
        ((2, 28, 1), "auto", (2, 28, 1)),
        ((2, 7), "auto", (2, 7)),
        ((2, 6, 8, 9), "auto", (2, 6, 8, 9)),
    ],
)
def test_channels_go_first(shape, layout, found):
    images = np.arange(np.prod(shape)).reshape(shape)
    moved = channels_first(images, layout)
    assert moved.shape == found
    if found == (2, 3, 32, 30) and shape[-1] == 3:
        assert moved[1, 2, 5, 7] == images[1, 5, 7, 2]


def test_a_layout_that_cannot_be_told_is_asked_for():
    with bad("give layout=first"):
        channels_first(np.zeros((2, 3, 5, 1)))
