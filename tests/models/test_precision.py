"""Precision: a network is run, attacked, replayed, stored and checked in its own floats; half precision is refused."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.models.build import Model, operators

import radii
from radii.attacks import BoundaryProjection, Fgsm, MinimumNorm, Pgd
from radii.cli.main import run
from radii.decide import Budget, replay
from radii.engine.native import Native
from radii.errors import ModelError
from radii.models import load_classifier
from radii.problem import Clause, Instance, OutputSpec, Query, SpecQuery, Status, Verdict
from radii.store import open_store
from radii.testing import double_toy

BUDGET = Budget(seconds=20)
CENTER = Instance(np.full(1, 0.5, dtype=np.float32), 0)  # of radius 0.4 in the double toy


def affine(weight: object, bias: object, kind: int) -> bytes:
    """A network W x + b in one of ONNX's floats."""
    floats = helper.tensor_dtype_to_np_dtype(kind)
    w, b = (np.asarray(value, dtype=np.float64).astype(floats) for value in (weight, bias))
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    ends = [helper.make_tensor_value_info(n, kind, ["N", s]) for n, s in (("x", w.shape[1]), ("y", w.shape[0]))]
    held = [numpy_helper.from_array(array, name) for name, array in (("w", w), ("b", b))]
    graph = helper.make_graph([node], "made", ends[:1], ends[1:], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(proto.SerializeToString())


def test_outputs_that_float32_cannot_tell_apart_are_not_a_tie():
    network = load_classifier(affine([[0.0], [0.0]], [1000.5, 1000.50001], TensorProto.DOUBLE))
    assert network.dtype == np.float64
    for outputs in (network.reference(CENTER.x)[0], network(CENTER.x)):
        np.testing.assert_array_equal(outputs, [1000.5, 1000.50001])
    assert network.predict(CENTER.x) == 1
    radius = radii.radius(network, CENTER.x, 1, seconds=5)
    assert radius.status is not Status.MISCLASSIFIED
    assert radius.lower == pytest.approx(0.5)
    assert radii.radius(network, CENTER.x, 0, seconds=5).status is Status.MISCLASSIFIED


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_the_radius_of_a_float64_network_is_its_own(norm):
    network = double_toy()
    radius = radii.radius(network, CENTER.x, 0, norm=norm, seconds=10, tolerance=1e-3)
    assert radius.status is Status.CLOSED
    assert radius.lower <= 0.4 <= radius.upper + 1e-8  # within 3e-9 of 0.9 even float64 ties
    witness = radius.witness
    assert (witness.x.dtype, witness.outputs.dtype) == (np.float64, np.float64)
    session = onnxruntime.InferenceSession(network.onnx_bytes, providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {"x": witness.x.reshape(1, 1)})
    np.testing.assert_array_equal(outputs[0], witness.outputs)
    assert outputs[0, 1] >= outputs[0, 0]


@pytest.mark.parametrize("attack", [Pgd(), Fgsm(), MinimumNorm(), BoundaryProjection()])
def test_attacks_work_in_float64(attack):
    answers = attack.decide(double_toy(), [Query(CENTER, 0.39), Query(CENTER, 0.45)], BUDGET)
    assert [a.verdict for a in answers] == [Verdict.UNKNOWN, Verdict.BROKEN]
    assert answers[1].witness.x.dtype == np.float64


def test_replay_takes_a_point_as_the_model_does():
    network, query = double_toy(), Query(CENTER, 0.41)
    assert replay(network, query, [0.9 + 1e-8]) is not None
    assert replay(network, query, [0.9 - 1e-8]) is None  # both are 0.9 in float32


def test_specifications_are_answered_in_float64():
    network = double_toy()
    violated = OutputSpec((Clause(np.array([[1.0, -1.0]]), np.zeros(1)),))
    for high, verdict in ((0.9 - 1e-5, Verdict.ROBUST), (0.9 + 1e-7, Verdict.BROKEN)):
        query = SpecQuery(np.array([0.1]), np.array([high]), violated)
        assert Native(effort="fast").decide_spec(network, query, BUDGET).verdict is verdict


def test_a_store_of_a_float64_network_is_confirmed(tmp_path):
    double_toy().save(tmp_path / "double.onnx")
    np.savez(tmp_path / "data.npz", x=np.array([[0.5], [0.95]], dtype=np.float32), y=np.array([0, 0]))
    study = tmp_path / "study.yaml"
    study.write_text("name: double\nclassifiers: [double.onnx]\ndata: {source: data.npz}\nbudget: {nodes: 50}\n")
    assert run(["run", str(study), "--runner", "serial"]) == 0
    with open_store(tmp_path / "study.db") as store:
        records = sorted(store.records(), key=lambda record: record.unit.instance.index)
    assert [record.radius.status for record in records] == [Status.CLOSED, Status.MISCLASSIFIED]
    assert records[0].radius.witness.x.dtype == np.float64
    assert run(["check", str(tmp_path / "study.db")]) == 0


@pytest.mark.parametrize(("kind", "limit"), [(np.float64, 1e39), (np.float32, 3.401e38)])
def test_a_limit_near_the_end_of_float32_binds(kind, limit):
    """Clip at what looks like "no limit": float64 networks go beyond it, and so do float32 ones over the reals."""
    model = Model(13, ["N", 1])
    y = model.node("Clip", model.node("Mul", "x", model.const(kind([[1e37, 2e37]]))), "", model.const(kind(limit)))
    network = load_classifier(model.bytes(y, helper.np_dtype_to_tensor_dtype(np.dtype(kind))), domain=(0, 1000))
    tied = float(network.graph(torch.full((1, 1), 900.0, dtype=torch.float64)).diff())
    assert tied == 0.0
    radius = radii.radius(network, np.ones(1, dtype=np.float32), 1, seconds=5)
    assert radius.lower < limit / 1e37


def test_no_limit_is_told_by_the_largest_number_of_the_type():
    for kind in (np.float32, np.float64):
        model = Model(13, ["N", 2])
        y = model.node("Clip", "x", model.const(kind(0)), model.const(np.finfo(kind).max))
        net = load_classifier(model.bytes(y, helper.np_dtype_to_tensor_dtype(np.dtype(kind))))
        assert operators(net) == ["Relu"]


def test_casts_inside_a_network_round_and_are_charged():
    """Float32 in, float64 inside, float32 out: the cast's rounding decides, so no float32 proof may leave it out."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.DOUBLE),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["d", "e"], ["y"]),
    ]
    held = [
        numpy_helper.from_array(np.array([1e6 + 0.02, 1e6]), "b"),
        numpy_helper.from_array(np.array([1e6, 1e6], dtype=np.float32), "e"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", s]) for n, s in (("x", 1), ("y", 2))]
    graph = helper.make_graph(nodes, "made", ends[:1], ends[1:], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    network = load_classifier(proto.SerializeToString(), check=False)
    assert network.dtype == np.float32
    outputs = network.reference(np.array([[0.51]]))
    assert outputs[0, 0] == outputs[0, 1]  # a tie, although 0.02 apart over the reals
    answer = Native(effort="fast", arithmetic="float32").decide(network, [Query(CENTER, 0.02)], BUDGET)[0]
    assert answer.verdict is not Verdict.ROBUST


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16"])
def test_half_precision_is_refused_by_name(kind):
    model = affine([[1.0], [0.0]], [0.0, 0.5], getattr(TensorProto, kind))
    with pytest.raises(ModelError, match=f"expected an input of float32 or float64, got {kind}") as caught:
        load_classifier(model)
    assert "\n" not in str(caught.value)


def test_a_module_in_half_precision_is_refused_by_name():
    module = torch.nn.Linear(3, 2).half()
    with pytest.raises(ModelError, match=r"float32 or float64, got (FLOAT16|float16)") as caught:
        load_classifier(module, input_shape=(3,))
    assert "\n" not in str(caught.value)


def test_a_module_in_float64_keeps_its_precision():
    module = torch.nn.Linear(3, 2).double()
    network = load_classifier(module, input_shape=(3,))
    x = np.random.default_rng(0).random((5, 3))
    np.testing.assert_allclose(network(x), module(torch.from_numpy(x)).detach().numpy(), rtol=1e-14)
    assert network.reference(x).dtype == np.float64
