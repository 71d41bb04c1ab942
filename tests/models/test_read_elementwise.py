"""Arithmetic, activations and the final softmax agree with onnxruntime at every opset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.build import OPSETS, QUICK, SEEDS, STYLES, Model, agree, operators, read

from radii.errors import UnsupportedOperator

SHAPES = st.sampled_from([(), (1,), (4,), (3, 1), (3, 4), (1, 1, 1), (1, 3, 4), (1, 1, 3, 4), (2, 1, 1), (5, 1, 1, 1)])


@QUICK
@given(OPSETS, SEEDS, STYLES, st.sampled_from(["Add", "Sub", "Mul", "Div"]), st.booleans(), SHAPES)
def test_constants_on_either_side_with_broadcasting(opset, seed, style, operator, first, shape):
    model = Model(opset, [1, 3, 4], style, seed)
    array = model.rng.uniform(0.5, 2.0, size=shape).astype(np.float32)
    constant = model.const(array)
    y = model.node(operator, *((constant, "x") if first and operator != "Div" else ("x", constant)))
    agree(model.bytes(y))


def test_division_by_255_is_a_scale_that_says_it_was_rounded():
    model = Model(13, ["N", 1, 2, 2])
    net = agree(model.bytes(model.node("Div", "x", model.const(np.float32(255)))))
    (scale,) = [n.operator for n in net.graph.nodes[1:] if type(n.operator).__name__ == "Scale"]
    assert scale.rounded
    assert float(scale.scale) == 1 / 255  # in float64: the graph over the reals divides by 255 to 1e-16


def test_division_by_a_power_of_two_is_exact():
    model = Model(13, ["N", 4])
    net = agree(model.bytes(model.node("Div", "x", model.const(np.float32(4)))))
    assert not net.graph.nodes[1].operator.rounded


@QUICK
@given(
    OPSETS,
    SEEDS,
    st.sampled_from(["Add", "Sub", "Mul", "Sum"]),
    st.sampled_from([((3, 4), (3, 4)), ((3, 4), (1, 4)), ((1, 4), (3, 1)), ((3, 1), (3, 4))]),
)
def test_two_branches_with_broadcasting(opset, seed, operator, shapes):
    model = Model(opset, ["N", 6], seed=seed)
    branches = []
    for shape in shapes:
        product = model.node("MatMul", "x", model.floats(6, shape[0] * shape[1]))
        branches.append(model.node("Reshape", product, model.ints(-1, *shape)))
    net = agree(model.bytes(model.node(operator, *branches)))
    assert ("Product" if operator == "Mul" else "Add") in operators(net)


def test_branches_of_different_rank():
    model = Model(13, [1, 4])
    squeezed = model.node("Squeeze", "x", model.ints(0))
    agree(model.bytes(model.node("Add", model.node("Mul", "x", model.floats(4)), squeezed)))


@QUICK
@given(OPSETS, SEEDS, st.sampled_from(["Relu", "Sigmoid", "Tanh", "Neg"]), st.sampled_from([[1, 5], ["N", 2, 3], [5]]))
def test_activations(opset, seed, operator, dims):
    agree(Model(opset, dims, seed=seed).bytes_of(operator))


@QUICK
@given(OPSETS, st.sampled_from([None, 0.1, 0.2, 0.01]))
def test_leaky_relu(opset, alpha):
    model = Model(opset, ["N", 7])
    agree(model.bytes(model.node("LeakyRelu", "x", **({} if alpha is None else {"alpha": alpha}))))


@QUICK
@given(OPSETS, STYLES, st.sampled_from([(None, None), (0.0, None), (None, 0.5), (-1.0, 1.0), (0.0, 6.0), (0.0, 0.0)]))
def test_clip_by_attribute_and_by_input(opset, style, limits):
    model = Model(opset, ["N", 7], style)
    y = model.node("Mul", "x", model.floats(7))
    if opset < 11:
        given_limits = {k: v for k, v in zip(("min", "max"), limits) if v is not None}
        y = model.node("Clip", y, **given_limits)
    else:
        y = model.node("Clip", y, *("" if v is None else model.const(np.float32(v)) for v in limits))
    net = agree(model.bytes(y))
    wanted = {(None, None): [], (0.0, None): ["Relu"]}.get(limits, ["Clip"])
    assert operators(net)[1:] == wanted


@QUICK
@given(OPSETS, st.sampled_from(["Softmax", "LogSoftmax"]), st.booleans())
def test_final_softmax_is_kept_for_probabilities_and_dropped_for_margins(opset, operator, reshaped):
    model = Model(opset, ["N", 6])
    y = model.node(operator, model.node("MatMul", "x", model.floats(6, 4)), axis=1)
    if reshaped:
        y = model.node("Flatten", model.node("Reshape", y, model.ints(-1, 4, 1)))
    net = agree(model.bytes(y))
    assert operators(net)[-1] == "Softmax"
    assert net.graph.logits.nodes[-1].name != net.graph.nodes[-1].name
    assert any("softmaxed logits" in alarm for alarm in net.alarms)
    x = np.random.default_rng(0).normal(size=(3, 6))
    reference = net.reference(x)
    np.testing.assert_allclose(
        net.probabilities(x), np.exp(reference) if operator == "LogSoftmax" else reference, atol=1e-6
    )
    assert not np.allclose(net(x), reference)


@pytest.mark.parametrize("opset", [9, 13])
def test_softmax_in_the_middle_or_over_a_part_is_refused(opset):
    model = Model(opset, [1, 3, 4])
    with pytest.raises(UnsupportedOperator, match="softmax"):
        read(model.bytes(model.node("Relu", model.node("Softmax", "x", axis=1))))
    model = Model(13, [1, 3, 4])
    with pytest.raises(UnsupportedOperator, match="part of shape"):
        read(model.bytes(model.node("Softmax", "x", axis=2)))
