"""Operators that move values, and shape arithmetic, agree with onnxruntime at every opset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.build import OPSETS, QUICK, SEEDS, STYLES, Model, agree, operators, read

from radii.errors import ModelError, UnsupportedOperator


def end(model: Model, y: str) -> bytes:
    """The model that ends in a value; every entry is an output, so a wrong order of the values shows."""
    return model.bytes(model.node("Identity", y))


@QUICK
@given(OPSETS, STYLES, st.sampled_from([0, 1, 2, 3, 4]), st.sampled_from([1, "N"]))
def test_flatten(opset, style, axis, batch):
    model = Model(opset, [1 if axis != 1 else batch, 2, 3, 4], style)
    agree(end(model, model.node("Flatten", model.node("Relu", "x"), axis=axis)))


@QUICK
@given(
    OPSETS,
    STYLES,
    st.sampled_from([(0, -1), (1, 24), (-1, 24), (0, 0, 8), (24,), (4, 6), (0, 4, 3, 2), (2, 3, 4, 1), (-1, 1, 24)]),
)
def test_reshape_with_zeros_minus_one_and_a_fixed_batch(opset, style, shape):
    model = Model(opset, [1, 2, 3, 4], style)
    y = model.node("Transpose", "x", perm=[0, 2, 3, 1])
    agree(end(model, model.node("Reshape", y, model.ints(*shape))))


def test_a_free_batch_that_a_reshape_fixes_runs_input_by_input():
    model = Model(13, ["N", 2, 3])
    y = model.node("MatMul", model.node("Reshape", "x", model.ints(1, 6)), model.floats(6, 3))
    agree(model.bytes(y))


@QUICK
@given(OPSETS, st.permutations(range(4)), st.permutations(range(4)))
def test_transpose_moves_the_batch_and_brings_it_back(opset, first, second):
    model = Model(opset, [1, 2, 3, 4])
    y = model.node("Mul", model.node("Transpose", "x", perm=list(first)), model.const(np.float32(2)))
    y = model.node("Transpose", y, perm=list(second))
    agree(end(model, y))
    agree(end(model, model.node("Transpose", y)))


def test_channels_last_networks_with_transposes():
    model = Model(11, ["N", 8, 8, 3])
    y = model.node("Transpose", "x", perm=[0, 3, 1, 2])
    y = model.node("Relu", model.node("Conv", y, model.floats(4, 3, 3, 3), strides=[2, 2]))
    y = model.node("Transpose", y, perm=[0, 2, 3, 1])
    y = model.node("Add", y, model.floats(4))
    y = model.node("Gemm", model.node("Reshape", y, model.ints(-1, 36)), model.floats(36, 5), model.floats(5))
    net = agree(model.bytes(y))
    assert net.input_shape == (8, 8, 3)


@QUICK
@given(OPSETS, STYLES, st.sampled_from([None, [1], [-2], [1, 3], [0]]), st.sampled_from([[0], [1, 3], [-1], [2]]))
def test_squeeze_and_unsqueeze(opset, style, squeezed, put):
    model = Model(opset, [1, 1, 4, 1, 3] if squeezed == [1, 3] else [1, 1, 4, 3] if squeezed != [-2] else [1, 2, 1, 3])
    model.style = style
    y = model.node("Relu", "x")
    if opset >= 13:
        y = model.node("Squeeze", y, *([] if squeezed is None else [model.ints(*squeezed)]))
        y = model.node("Unsqueeze", y, model.ints(*put))
    else:
        y = model.node("Squeeze", y, **({} if squeezed is None else {"axes": squeezed}))
        put = [p for p in put if p >= 0] or [0]
        y = model.node("Unsqueeze", y, axes=put)
    agree(end(model, model.node("Mul", y, model.const(np.float32(3)))))


@st.composite
def slices(draw):
    axes = draw(st.sampled_from([[1], [2], [1, 3], [3, 2], [-1], [0, 2]]))
    rows = []
    for axis in axes:
        size = (1, 5, 6, 7)[axis]
        step = 1 if axis == 0 else draw(st.sampled_from([1, 2, -1, -2]))
        if axis == 0:
            rows.append((0, 2**31 - 1, 1))
        elif step > 0:
            start = draw(st.integers(-size, size - 2))
            rows.append((start, draw(st.sampled_from([2**31 - 1, size, (start % size) + 1])), step))
        else:
            start = draw(st.sampled_from([-1, size - 1, 2**31 - 1, 2]))
            rows.append((start, draw(st.sampled_from([-(2**31), 0, -size])), step))
    return axes, rows


@QUICK
@given(OPSETS, STYLES, slices())
def test_slice_by_attribute_and_by_input(opset, style, drawn):
    axes, rows = drawn
    model = Model(opset, [1, 5, 6, 7], style)
    starts, ends, steps = ([row[i] for row in rows] for i in range(3))
    if opset < 10:
        keep = [i for i, step in enumerate(steps) if step == 1]
        if not keep:
            return
        chosen = {"starts": [starts[i] for i in keep], "ends": [ends[i] for i in keep], "axes": [axes[i] for i in keep]}
        y = model.node("Slice", "x", **chosen)
    else:
        y = model.node("Slice", "x", model.ints(*starts), model.ints(*ends), model.ints(*axes), model.ints(*steps))
    agree(end(model, y))


@QUICK
@given(OPSETS, STYLES, st.sampled_from([(None, 2), ([1, 3], 2), ([2, 1, 1], 3)]), st.sampled_from([1, -2]))
def test_split_by_attribute_and_by_input(opset, style, pieces, axis):
    sizes, count = pieces
    model = Model(opset, [1, 4, 3] if axis == 1 else [1, 2, 4, 3], style)
    if sizes is None:
        extra = {"num_outputs": count} if opset >= 18 else {}
        parts = model.node("Split", "x", outputs=count, axis=axis, **extra)
    elif opset >= 13:
        parts = model.node("Split", "x", model.ints(*sizes), outputs=count, axis=axis)
    else:
        parts = model.node("Split", "x", outputs=count, axis=axis, split=sizes)
    agree(end(model, model.node("Concat", *reversed(parts), axis=axis)))


@QUICK
@given(
    OPSETS,
    STYLES,
    st.sampled_from([([2], 1), ([0, 0, 3], 2), (1, 2), ([[0, 1], [3, 2]], 2), ([-1, 0], 3), (0, 0), (2, -1)]),
)
def test_gather_with_constant_indices(opset, style, drawn):
    indices, axis = drawn
    if opset < 11:
        indices = np.abs(indices).tolist()
    model = Model(opset, [1, 3, 4, 5], style)
    y = model.node("Gather", "x", model.const(np.asarray(indices, dtype=np.int64)), axis=axis)
    agree(end(model, y))


@QUICK
@given(
    OPSETS,
    STYLES,
    st.sampled_from(["constant", "reflect", "edge"]),
    st.sampled_from([[0, 0, 1, 2, 0, 0, 2, 1], [0, 0, 0, 1, 0, 0, 0, 0], [0] * 8]),
    st.sampled_from([0.0, 1.5]),
)
def test_pad_by_attribute_and_by_input(opset, style, mode, pads, value):
    model = Model(opset, [1, 2, 4, 5], style)
    if opset < 11:
        y = model.node("Pad", "x", mode=mode, pads=pads, value=value)
    elif opset >= 18:
        axes = model.ints(-2, 3)
        y = model.node("Pad", "x", model.ints(*pads[2:4], *pads[6:]), model.const(np.float32(value)), axes, mode=mode)
    else:
        y = model.node("Pad", "x", model.ints(*pads), model.const(np.float32(value)), mode=mode)
    agree(end(model, model.node("Relu", y)))


def test_pad_may_cut_off_and_may_fill_channels():
    model = Model(13, [1, 2, 4, 5])
    agree(end(model, model.node("Pad", "x", model.ints(0, 1, -1, 0, 0, 2, 0, -2), model.const(np.float32(3)))))


@QUICK
@given(OPSETS, SEEDS, STYLES, st.sampled_from([1, 2, -1, 0]), st.permutations(["x", "branch", "constant"]))
def test_concat_of_branches_and_constants(opset, seed, style, axis, order):
    model = Model(opset, [1, 3, 4], style, seed)
    parts = {"x": "x", "branch": model.node("Relu", "x"), "constant": model.floats(1, 3, 4)}
    agree(end(model, model.node("Concat", *(parts[name] for name in order), axis=axis)))


@QUICK
@given(OPSETS, st.sampled_from([1, "N"]))
def test_shape_arithmetic_is_folded(opset, batch):
    """What torch writes for x.view(x.size(0), -1), and a constant made by ConstantOfShape."""
    model = Model(opset, [batch, 2, 3, 4])
    size = model.node("Gather", model.node("Shape", "x"), model.const(np.int64(0)), axis=0)
    if opset >= 13:
        size = model.node("Unsqueeze", size, model.ints(0))
    else:
        size = model.node("Unsqueeze", size, axes=[0])
    rest = model.node("Cast", model.node("Cast", model.ints(-1), to=1), to=7)
    y = model.node("Reshape", "x", model.node("Concat", size, rest, axis=0))
    if opset >= 9:
        y = model.node("Add", y, model.node("ConstantOfShape", model.ints(24)))
    net = agree(model.bytes(model.node("MatMul", y, model.floats(24, 3))))
    assert "Dense" in operators(net)


def test_shape_with_a_range_and_constants_in_all_forms():
    model = Model(15, ["N", 2, 3])
    shape = model.node("Shape", "x", start=1)
    scale = model.node("Constant", value_float=2.0)
    floats = model.node("Constant", value_floats=[1.0, 2.0, 3.0])
    flat = model.node("Constant", value_ints=[0, 6])
    y = model.node("Reshape", "x", model.node("Concat", model.node("Constant", value_ints=[-1]), shape, axis=0))
    y = model.node("Add", model.node("Mul", y, scale), floats)
    agree(model.bytes(model.node("Reshape", y, flat)))


def test_weights_computed_from_constants_are_folded():
    model = Model(13, ["N", 4])
    weight = model.node("Transpose", model.node("Mul", model.floats(3, 4), model.const(np.float32(0.5))), perm=[1, 0])
    net = agree(model.bytes(model.node("MatMul", "x", weight)))
    assert operators(net) == ["Dense"]


@QUICK
@given(OPSETS)
def test_identity_cast_and_dropout_do_nothing(opset):
    model = Model(opset, ["N", 4])
    y = model.node("Cast", model.node("Dropout", model.node("Identity", "x")), to=1)
    net = agree(model.bytes(model.node("MatMul", y, model.floats(4, 3))))
    assert operators(net) == ["Dense"]


def test_expand_repeats():
    model = Model(13, ["N", 3, 1])
    agree(end(model, model.node("Expand", "x", model.ints(1, 3, 4))))


def test_double_networks_run_in_double():
    model = Model(13, ["N", 4])
    weight = model.const(model.rng.normal(size=(4, 3)))
    agree(model.bytes(model.node("MatMul", "x", weight), kind=11))


@pytest.mark.parametrize(
    ("dims", "shape", "batch"),
    [
        ([1, 784, 1], (784, 1), True),
        (["N", 28, 28], (28, 28), True),
        ([1, 784], (784,), True),
        ([784], (784,), False),
        ([28, 28], (28, 28), False),
        ([1, 1, 1, 5], (1, 1, 5), True),
        ([-1, 5], (5,), True),
    ],
)
def test_odd_input_shapes(dims, shape, batch):
    model = Model(13, dims)
    size = int(np.prod(shape))
    y = model.node("MatMul", model.node("Reshape", "x", model.ints(-1, size)), model.floats(size, 3))
    net = agree(model.bytes(y))
    assert net.input_shape == shape
    assert net(np.zeros(shape)).shape == (3,)
    assert net(np.zeros((2, *shape))).shape == (2, 3)
    assert net(np.zeros(size)).shape == (3,)
    assert net(np.zeros((2, size))).shape == (2, 3)
    assert net.reference(np.zeros((2, size))).shape == (2, 3)
    assert batch or net.graph.nodes[0].shape == shape


def test_what_a_network_leaves_open_must_be_given():
    model = Model(13, ["N", "C", "L"])
    data = model.bytes(model.node("Relu", "x"))
    with pytest.raises(ModelError, match=r"input_shape"):
        read(data)
    from radii.models import load_classifier

    assert load_classifier(data, input_shape=(2, 3), domain=None).classes == 6
    with pytest.raises(ModelError, match=r"expected the input shape of the file, \?x\?, got 2"):
        load_classifier(data, input_shape=(2,))


def test_casts_to_whole_numbers_and_training_dropout_are_refused():
    model = Model(13, ["N", 4])
    y = model.node("Dropout", "x", model.const(np.float32(0.5)), model.const(np.bool_(True)))
    with pytest.raises(UnsupportedOperator, match=r"training mode.*Cast"):
        read(model.bytes(model.node("Relu", model.node("Add", y, model.node("Cast", "x", to=7)))))
