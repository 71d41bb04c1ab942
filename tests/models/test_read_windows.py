"""Pooling and reductions agree with onnxruntime at every opset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.build import OPSETS, QUICK, SEEDS, Model, agree, read

from radii.errors import UnsupportedOperator


@st.composite
def windows(draw):
    spatial = draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    attributes = {"kernel_shape": kernel}
    if draw(st.booleans()):
        attributes["strides"] = draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    mode = draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"]))
    if mode == "pads":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
    elif mode != "none":
        attributes["auto_pad"] = mode
        if "strides" in attributes:  # onnxruntime itself refuses strides that skip over values here
            attributes["strides"] = [min(s, k) for s, k in zip(attributes["strides"], kernel)]
    size = draw(st.lists(st.integers(4, 7), min_size=spatial, max_size=spatial))
    return attributes, size


@QUICK
@given(OPSETS, SEEDS, windows(), st.sampled_from([1, "N"]), st.booleans(), st.data())
def test_max_pool(opset, seed, drawn, batch, ceil, data):
    attributes, size = drawn
    ceil = ceil and opset >= 10 and "auto_pad" not in attributes
    if ceil:
        attributes["ceil_mode"] = 1
    elif opset >= 10 and "auto_pad" not in attributes and data.draw(st.booleans()):
        attributes["dilations"] = [2 if n + 2 > 2 * k else 1 for k, n in zip(attributes["kernel_shape"], size)]
    model = Model(opset, [batch, 2, *size], seed=seed)
    agree(model.bytes(model.node("MaxPool", "x", **attributes)))


@QUICK
@given(OPSETS, SEEDS, windows(), st.booleans(), st.booleans())
def test_average_pool(opset, seed, drawn, ceil, include):
    attributes, size = drawn
    ceil = ceil and opset >= 10 and "auto_pad" not in attributes
    if ceil:
        attributes["ceil_mode"] = 1
    if include:
        attributes["count_include_pad"] = 1
    model = Model(opset, ["N", 2, *size], seed=seed)
    agree(model.bytes(model.node("AveragePool", "x", **attributes)))


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", [[2, 2], [0, 2], [2, 0], [1, 1]])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("opset", [10, 12, 20])
def test_windows_that_rounding_up_adds(operator, pads, stride, opset):
    model = Model(opset, ["N", 2, 7])
    agree(model.bytes(model.node(operator, "x", kernel_shape=[3], strides=[stride], pads=pads, ceil_mode=1)))


@pytest.mark.parametrize("opset", [8, 13, 20])
@pytest.mark.parametrize("size", [(5,), (4, 5), (2, 3, 4)])
def test_global_average_pool(opset, size):
    model = Model(opset, ["N", 3, *size])
    agree(model.bytes(model.node("GlobalAveragePool", "x")))


@QUICK
@given(
    OPSETS,
    st.sampled_from(["ReduceMean", "ReduceSum"]),
    st.sampled_from([None, [1], [-1], [1, 3], [0, 2], [2, 3]]),
    st.booleans(),
)
def test_reductions_by_attribute_and_by_input(opset, operator, axes, keep):
    model = Model(opset, [1, 2, 3, 4])
    by_input = opset >= (13 if operator == "ReduceSum" else 18)
    scaled = model.node("Mul", "x", model.floats(2, 3, 4))
    inputs, attributes = [scaled], {"keepdims": int(keep)}
    if axes is not None and by_input:
        inputs.append(model.ints(*axes))
    elif axes is not None:
        attributes["axes"] = axes
    agree(model.bytes(model.node(operator, *inputs, **attributes)))


def test_an_empty_reduction_may_mean_nothing():
    model = Model(18, [1, 2, 3])
    scaled = model.node("Mul", "x", model.floats(3))
    net = agree(model.bytes(model.node("ReduceSum", scaled, noop_with_empty_axes=1)))
    assert net.classes == 6


def test_pooling_with_dilations_or_used_indices_is_refused():
    model = Model(19, [1, 1, 6, 6])
    with pytest.raises(UnsupportedOperator, match="dilations"):
        read(model.bytes(model.node("AveragePool", "x", kernel_shape=[2, 2], dilations=[2, 2])))
    model = Model(13, [1, 1, 6, 6])
    values, indices = model.node("MaxPool", "x", outputs=2, kernel_shape=[2, 2])
    cast = model.node("Cast", indices, to=1)
    with pytest.raises(UnsupportedOperator, match="first output"):
        read(model.bytes(model.node("Add", values, cast)))
