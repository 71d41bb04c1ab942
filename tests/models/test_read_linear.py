"""Products, convolutions and batch normalisation agree with onnxruntime at every opset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.build import OPSETS, QUICK, SEEDS, STYLES, Model, agree, operators


@QUICK
@given(OPSETS, SEEDS, STYLES, st.sampled_from([["N", 6], [1, 6], [1, 4, 6], ["N", 2, 4, 6], [6], [4, 6]]))
def test_matmul_with_the_constant_on_the_right(opset, seed, style, dims):
    model = Model(opset, dims, style, seed)
    y = model.node("MatMul", "x", model.floats(6, 3))
    net = agree(model.bytes(model.node("Add", y, model.floats(3))))
    assert "Scale" not in operators(net)  # the constant became the bias


@QUICK
@given(OPSETS, SEEDS, STYLES, st.sampled_from([["N", 6, 4], [1, 6, 4], [6, 4], [6, 1], [6], ["N", 2, 6, 3]]))
def test_matmul_with_the_constant_on_the_left(opset, seed, style, dims):
    model = Model(opset, dims, style, seed)
    y = model.node("MatMul", model.floats(3, 6), "x")
    shift = model.floats(3, 1) if len(dims) > 1 else model.floats(3)
    agree(model.bytes(model.node("Add", y, shift)))


@QUICK
@given(OPSETS, SEEDS, st.sampled_from([("N", 4, 6), (4, 6), (1, 6)]), st.booleans())
def test_matmul_with_a_vector_or_a_stack_of_one(opset, seed, dims, stack):
    model = Model(opset, list(dims), seed=seed)
    agree(model.bytes(model.node("MatMul", "x", model.floats(1, 6, 3) if stack else model.floats(6))))


@QUICK
@given(
    OPSETS,
    SEEDS,
    STYLES,
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([None, (3,), (1, 3), (), (1, 1)]),
    st.sampled_from([(1.0, 1.0), (0.5, 2.0), (0.3, 0.7)]),
)
def test_gemm(opset, seed, style, transposed, bias, factors):
    model = Model(opset, [6, 1] if transposed[0] else [1, 6], style, seed)
    # An input of 6x1 has no batch; transA makes a row of it.
    weight = model.floats(3, 6) if transposed[1] else model.floats(6, 3)
    inputs = ["x", weight] + ([] if bias is None and opset >= 11 else [model.floats(*(bias or (3,)))])
    y = model.node(
        "Gemm", *inputs, transA=int(transposed[0]), transB=int(transposed[1]), alpha=factors[0], beta=factors[1]
    )
    agree(model.bytes(y))


@QUICK
@given(OPSETS, SEEDS, st.booleans(), st.booleans(), st.sampled_from([(4,), (3, 1), (3, 4), (1,)]))
def test_gemm_with_the_constant_on_the_left(opset, seed, trans_a, trans_b, bias):
    model = Model(opset, [4, 6] if trans_b else [6, 4], seed=seed)
    weight = model.floats(6, 3) if trans_a else model.floats(3, 6)
    agree(model.bytes(model.node("Gemm", weight, "x", model.floats(*bias), transA=int(trans_a), transB=int(trans_b))))


def test_gemm_adds_a_branch():
    model = Model(13, ["N", 6])
    first = model.node("Gemm", "x", model.floats(6, 3), model.floats(3))
    agree(model.bytes(model.node("Gemm", "x", model.floats(6, 3), first, beta=0.5)))


@st.composite
def convolutions(draw):
    spatial = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 2]))
    kernel = draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    attributes = {
        "strides": draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial)),
        "dilations": draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)),
        "group": groups,
    }
    mode = draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"]))
    if mode == "pads":
        attributes["pads"] = draw(st.lists(st.integers(0, 2), min_size=2 * spatial, max_size=2 * spatial))
    elif mode != "none":
        attributes["auto_pad"] = mode
    if mode.startswith("SAME"):
        attributes["dilations"] = [1] * spatial  # onnxruntime itself is not consistent about both
    size = draw(st.lists(st.integers(5, 7), min_size=spatial, max_size=spatial))
    return groups, kernel, attributes, size


@QUICK
@given(OPSETS, SEEDS, STYLES, convolutions(), st.booleans(), st.sampled_from([1, "N"]))
def test_conv(opset, seed, style, drawn, bias, batch):
    groups, kernel, attributes, size = drawn
    model = Model(opset, [batch, 2 * groups, *size], style, seed)
    inputs = ["x", model.floats(4, 2, *kernel)] + ([model.floats(4)] if bias else [])
    agree(model.bytes(model.node("Conv", *inputs, **attributes)))


@QUICK
@given(OPSETS, SEEDS, convolutions(), st.booleans(), st.data())
def test_conv_transpose(opset, seed, drawn, bias, data):
    groups, kernel, attributes, size = drawn
    spatial = len(kernel)
    attributes = {k: v for k, v in attributes.items() if k != "auto_pad"}
    reach = [(k - 1) * d for k, d in zip(kernel, attributes["dilations"])]
    if "pads" in attributes:  # no more than the kernel covers
        attributes["pads"] = [min(p, r) for p, r in zip(attributes["pads"], reach + reach)]
    if data.draw(st.booleans()):
        attributes["output_padding"] = [data.draw(st.integers(0, s - 1)) for s in attributes["strides"]]
    model = Model(opset, ["N", 2 * groups, *size], seed=seed)
    inputs = ["x", model.floats(2 * groups, 3, *kernel)] + ([model.floats(3 * groups)] if bias else [])
    agree(model.bytes(model.node("ConvTranspose", *inputs, **attributes)))
    assert spatial == len(size)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("opset", [8, 11, 18])
def test_conv_transpose_same(mode, stride, opset):
    model = Model(opset, [1, 2, 5, 6])
    y = model.node("ConvTranspose", "x", model.floats(2, 3, 4, 3), auto_pad=mode, strides=[stride, stride])
    agree(model.bytes(y))


@pytest.mark.parametrize("wanted", [[9, 11], [10, 12], [8, 10]])
@pytest.mark.parametrize("opset", [8, 11, 18])
def test_conv_transpose_output_shape(wanted, opset):
    model = Model(opset, [1, 2, 5, 6])
    y = model.node("ConvTranspose", "x", model.floats(2, 3, 3, 3), output_shape=wanted, strides=[2, 2])
    agree(model.bytes(y))


@QUICK
@given(OPSETS, SEEDS, STYLES, st.sampled_from([("N", 3), (1, 3, 5), (1, 3, 4, 5)]), st.sampled_from([1e-5, 1e-3]))
def test_batch_normalization(opset, seed, style, dims, epsilon):
    model = Model(opset, list(dims), style, seed)
    variance = model.const(model.rng.uniform(0.1, 2.0, size=3).astype(np.float32))
    y = model.node(
        "BatchNormalization", "x", model.floats(3), model.floats(3), model.floats(3), variance, epsilon=epsilon
    )
    net = agree(model.bytes(y))
    assert net.graph.nodes[-1].operator is not None
    scales = [n.operator for n in net.graph.nodes if type(n.operator).__name__ == "Scale"]
    assert scales[0].rounded
