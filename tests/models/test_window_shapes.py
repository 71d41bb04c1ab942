"""The shapes of window operators are those that torch finds, and what torch refuses is refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.build import Model, read

from radii.errors import UnsupportedOperator
from radii.models.convolutions import AveragePool, Conv, ConvTranspose, MaxPool
from radii.models.importer.builder import Refused
from radii.models.importer.window_shapes import window_shape


@st.composite
def operators(draw):
    spatial = draw(st.integers(1, 3))

    def numbers(low, high, count=spatial):
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    kernel, stride, dilation, pads = numbers(1, 4), numbers(1, 3), numbers(1, 2), numbers(0, 3, 2 * spatial)
    groups, mine, out = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    kind = draw(st.sampled_from([Conv, ConvTranspose, MaxPool, AveragePool]))
    channels = mine * groups + draw(st.sampled_from([0, 0, 0, 1]))
    if kind is Conv:
        bias = draw(st.sampled_from([None, out * groups, out * groups + 1]))
        weight = torch.zeros(out * groups, mine, *kernel)
        operator = Conv(weight, None if bias is None else torch.zeros(bias), stride, pads, dilation, groups)
    elif kind is ConvTranspose:
        weight = torch.zeros(mine * groups, out, *kernel)
        operator = ConvTranspose(weight, None, stride, pads[:spatial], numbers(0, 2), dilation, groups)
    elif kind is MaxPool:
        operator = MaxPool(kernel, stride, pads, dilation, draw(st.booleans()))
    else:
        operator = AveragePool(kernel, stride, pads, draw(st.booleans()), draw(st.booleans()))
    return operator, (channels, *numbers(1, 6))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(operators())
def test_shapes_are_those_of_torch(drawn):
    operator, shape = drawn
    try:
        wanted = tuple(operator(torch.zeros((1, *shape))).shape[1:])
    except RuntimeError:
        wanted = None
    try:
        found = window_shape(operator, shape)
    except Refused:
        found = None
    assert found == (None if wanted is not None and 0 in wanted else wanted)  # nothing is left of the values


@pytest.mark.parametrize(
    ("operator", "weight", "attributes", "words"),
    [
        ("Conv", (2, 3, 2, 2), {}, "expected 3 input channels as the weights have, got 2"),
        ("Conv", (2, 2, 6, 2), {}, "expected a window that fits into 5 values, got one of 6"),
        ("Conv", (2, 2, 2, 2), {"strides": [0, 1]}, "expected strides of at least 1 for each of 2 axes"),
        ("Conv", (3, 1, 2, 2), {"group": 2}, "expected groups that divide 3 channels, got 2"),
        ("ConvTranspose", (2, 2, 2, 2), {"output_padding": [3, 0]}, "expected output_padding below the stride"),
    ],
)
def test_windows_that_do_not_fit_are_refused_in_one_line(operator, weight, attributes, words):
    model = Model(13, ["N", 2, 5, 5])
    with pytest.raises(UnsupportedOperator, match=words):
        read(model.bytes(model.node(operator, "x", model.floats(*weight), **attributes)))
