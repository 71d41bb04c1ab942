"""Arithmetic float32: no proof covers overflow, folded constants that cancel or underflow, in engine and checker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.evidence.proofs import rewritten

import radii
from radii.bounds.float32 import float32_error
from radii.bounds.intermediate import bound_root
from radii.bounds.lowering import lower
from radii.bounds.region import Region
from radii.decide import Budget
from radii.engine.native import Native
from radii.errors import InputError, ModelError, UnsupportedOperator
from radii.evidence import check
from radii.evidence.ball import Ball
from radii.evidence.float32 import float32_error as error_of_the_checker
from radii.evidence.lowering import lowered
from radii.evidence.walk import Walk
from radii.models import Classifier, load_classifier
from radii.problem import LINF, Classification, Instance, Query, Radius, Reason, Status, Verdict
from radii.testing import overflow_toy

BUDGET = Budget(seconds=20)
DEPLOYED = Native(effort="fast", arithmetic="float32", evidence=True)
REAL = Native(effort="fast", evidence=True)


def model(inputs: int, outputs: int, *nodes, kind: int = TensorProto.FLOAT, **constants) -> bytes:
    """An ONNX network from x to y, its nodes written as (operator, inputs, output, attributes)."""
    made = [helper.make_node(op, names.split(), [out], name=f"{op}-{out}", **more) for op, names, out, more in nodes]
    floats = np.float64 if kind == TensorProto.DOUBLE else np.float32
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    cast = {name: a if a.dtype.kind == "i" else a.astype(floats) for name, a in arrays.items()}
    held = [numpy_helper.from_array(array, name) for name, array in cast.items()]
    ends = [helper.make_tensor_value_info(name, kind, ["N", size]) for name, size in (("x", inputs), ("y", outputs))]
    graph = helper.make_graph(made, "made", ends[:1], ends[1:], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(proto.SerializeToString())


def measured(native: Native, network: Classifier, x: float, label: int) -> Radius:
    instance = Instance(np.full(network.input_shape, x, dtype=np.float32), label)
    return native.measure(network, [instance], Classification(), LINF, BUDGET, tolerance=1e-3)[0]


def test_no_proof_covers_an_overflow():
    network = overflow_toy()
    radius = measured(DEPLOYED, network, 0.5, 1)
    # The larger row reaches the largest float32 at 0.5 + 0.30103.
    assert radius.lower == pytest.approx(0.30103, abs=1.5e-3)
    assert radius.lower < 0.30103
    assert radius.status is Status.OPEN
    assert "overflow" in radius.note
    assert check(radius.evidence, network).radius == radius.lower
    answer = DEPLOYED.decide(network, [Query(Instance(np.full(12, 0.5, np.float32), 1), 0.49)], BUDGET)[0]
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.INCOMPLETE)
    assert "overflow" in answer.detail


def test_the_checker_refuses_a_proof_that_overflows():
    network = overflow_toy()
    radius = measured(REAL, network, 0.5, 1)
    assert radius.lower > 0.49
    assert check(radius.evidence, network).radius == radius.lower
    with pytest.raises(InputError, match="may overflow"):
        check(rewritten(radius.evidence, {"arithmetic": "float32"}), network)


LARGE = np.stack([np.full(8, 0.5e38), np.full(8, 0.6e38)], 1)
HIDDEN = {
    # alpha makes the outputs small, the product before it is not.
    "product": model(8, 2, ("Gemm", "x w", "y", {"alpha": 1e-30}), w=LARGE),
    # The constants multiplied out are too large, the values of the operators are not.
    "constants": model(
        8,
        2,
        ("Mul", "x a", "z", {}),
        ("Mul", "z b", "v", {}),
        ("Gemm", "v w", "y", {}),
        a=np.float64(1e-30),
        b=np.float64(1e30),
        w=LARGE,
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_products_on_the_way_count(name):
    network = load_classifier(HIDDEN[name], check=False)
    assert measured(REAL, network, 0.5, 1).lower > 0.4
    assert measured(DEPLOYED, network, 0.5, 1).lower is None


def test_the_sum_of_a_mean_counts():
    network = load_classifier(
        model(
            8,
            2,
            ("Unsqueeze", "x one", "a", {}),
            ("Mul", "a w", "b", {}),
            ("ReduceMean", "b", "y", {"axes": [2], "keepdims": 0}),
            one=np.array([1]),
            w=np.array([[[0.5e38], [0.6e38]]]),
        ),
        check=False,
    )
    assert not np.isfinite(network.reference(np.ones((1, 8)))).all()
    assert measured(REAL, network, 0.5, 1).lower > 0.4
    lower = measured(DEPLOYED, network, 0.5, 1).lower
    assert lower is None or lower < 3.4028e38 / (8 * 0.6e38) - 0.5


def test_margins_that_may_be_flushed_to_zero_are_not_proven():
    network = load_classifier(model(2, 2, ("Gemm", "x w", "y", {}), w=[[1e-39, 2e-39]] * 2))
    assert measured(REAL, network, 0.5, 1).lower > 0.4
    assert measured(DEPLOYED, network, 0.5, 1).lower is None


def cancelling(size: float, third: float = -6000.0) -> bytes:
    """Gemm and BatchNormalization whose bias and mean nearly cancel; over the reals class 0 is ahead on [0, 1]."""
    mean, variance = np.array([1.0, 1.425, 0.0]) * size, np.array([1.0, 1.3, 1.0])
    mean, variance = mean.astype(np.float32).astype(float), variance.astype(np.float32).astype(float)
    bias = mean / np.sqrt(variance + 1e-5) + np.array([0.12, 0.0, third])
    return model(
        1,
        3,
        ("Gemm", "x w", "z", {}),
        ("BatchNormalization", "z one bias mean variance", "y", {}),
        w=[[1.0, 1.3, 0.0]],
        one=np.ones(3),
        bias=bias,
        mean=mean,
        variance=variance,
    )


def test_constants_that_cancel_are_charged_and_the_original_model_is_attacked():
    network = load_classifier(cancelling(1e6))
    x = np.linspace(0, 1, 1001, dtype=np.float64)[:, None]
    exact = network.graph.to(torch.float64)(torch.from_numpy(x)).numpy()
    assert (exact[:, 0] > exact[:, 1]).all()
    outputs = network.reference(x)
    wrong = np.abs(x[outputs[:, 0] <= outputs[:, 1], 0] - 0.5)
    assert 0.35 < wrong.min() < 0.5
    radius = measured(DEPLOYED, network, 0.5, 0)
    assert radius.lower is None or radius.lower < wrong.min()
    assert radius.upper == pytest.approx(wrong.min(), abs=0.05)
    real = measured(REAL, network, 0.5, 0)
    assert real.lower > 0.3
    assert real.upper == pytest.approx(radius.upper)
    with pytest.raises(InputError, match="margins open"):
        check(rewritten(real.evidence, {"arithmetic": "float32"}), network)


def test_what_cancels_a_little_is_still_proven():
    network = load_classifier(cancelling(100.0))
    radius = measured(DEPLOYED, network, 0.5, 0)
    assert radius.gap < 0.01
    assert check(radius.evidence, network).radius == radius.lower


def test_the_load_check_says_what_cancels():
    with pytest.raises(ModelError, match=r"off by .* large numbers cancel in node BatchNormalization-y.*float64"):
        load_classifier(cancelling(1e7, third=0.0))


def sessions(data: bytes):
    """onnxruntime with its graph optimised, and as it is."""
    for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.intra_op_num_threads = 1
        yield onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def chain(rng: np.random.Generator) -> bytes:
    """Layers with normalisations, products, sums and quotients of constants of very different sizes after them."""
    nodes, constants, at, size = [], {}, "x", 6
    for layer in range(int(rng.integers(1, 4))):
        width = int(rng.integers(2, 8))
        constants[f"w{layer}"] = rng.normal(size=(size, width))
        constants[f"b{layer}"] = rng.normal(size=width) * 10.0 ** rng.integers(-2, 5)
        nodes.append(("Gemm", f"{at} w{layer} b{layer}", f"g{layer}", {}))
        at, size = f"g{layer}", width
        for step in range(int(rng.integers(0, 3))):
            name = f"s{layer}{step}"
            large = 10.0 ** rng.integers(-3, 6)
            kind = rng.choice(["BatchNormalization", "Mul", "Add", "Div", "Sub"])
            if kind == "BatchNormalization":
                mean, variance = rng.normal(size=width) * large, rng.uniform(1e-3, 4, size=width)
                parts = {"g": rng.normal(size=width), "v": variance, "m": mean, "c": rng.normal(size=width) * large}
                constants |= {name + key: value for key, value in parts.items()}
                nodes.append((kind, f"{at} {name}g {name}c {name}m {name}v", name, {}))
            else:
                constants[name + "k"] = rng.normal(size=width) * large + (0.1 if kind == "Div" else 0.0)
                nodes.append((kind, f"{at} {name}k", name, {}))
            at = name
        if rng.random() < 0.7:
            nodes.append((str(rng.choice(["Relu", "LeakyRelu"])), at, f"r{layer}", {}))
            at = f"r{layer}"
    operator, inputs, _, more = nodes[-1]
    nodes[-1] = (operator, inputs, "y", more)
    return model(6, size, *nodes, **constants)


def engines_error(network: Classifier, x: np.ndarray, epsilon: float) -> np.ndarray:
    size = torch.tensor([epsilon], dtype=torch.float64)
    ball = Region.around(torch.from_numpy(x[None]), size, LINF, network.domain)
    return float32_error(bound_root(lower(network.graph).to(torch.float64), ball))[0].numpy()


def checkers_error(network: Classifier, x: np.ndarray, epsilon: float) -> np.ndarray:
    ball = Ball.around(torch.from_numpy(x.astype(np.float64)), "linf", epsilon, network.domain)
    walk = Walk(lowered(network.graph).graph, ball)
    for relu in walk.relus:
        layer = walk.open(relu)
        walk.close(layer, layer.undecided)
    walk.outputs(torch.eye(network.classes, dtype=torch.float64))
    return error_of_the_checker(walk.network).numpy()


def test_the_error_covers_onnxruntime_folded_and_unfolded():
    """Engine's and checker's bounds on a ball hold at its points, whatever onnxruntime folds; some come near it."""
    rng, nearest = np.random.default_rng(0), 0.0
    for _ in range(60):
        data = chain(rng)
        network = load_classifier(data, check=False)
        x = rng.uniform(0.2, 0.8, size=6).astype(np.float32)
        points = (x + rng.uniform(-0.0999, 0.0999, size=(200, 6))).astype(np.float32)
        exact = network.graph.to(torch.float64)(torch.from_numpy(points.astype(np.float64))).flatten(1).numpy()
        bound = np.minimum(engines_error(network, x, 0.1), checkers_error(network, x, 0.1))
        for session in sessions(data):
            off = np.abs(session.run(None, {"x": points})[0] - exact).max(0)
            assert (off <= bound).all()
            nearest = max(nearest, float((off / bound).max()))
    assert nearest > 0.02


def test_what_no_runtime_promises_is_refused():
    softmax = model(2, 2, ("Gemm", "x w", "z", {}), ("Softmax", "z", "y", {}), w=[[1.0, 2.0]] * 2)
    parts = {"a": np.ones((2, 3)), "b": np.ones((3, 2)) * np.array([1.0, 2.0])}
    product = model(2, 2, ("MatMul", "a b", "w", {}), ("MatMul", "x w", "y", {}), **parts)
    for data, what in ((softmax, "Softmax"), (product, "MatMul")):
        network = load_classifier(data)
        with pytest.raises(UnsupportedOperator, match=f"float32.*{what}.*real"):
            measured(DEPLOYED, network, 0.5, 1)
        proof = measured(REAL, network, 0.5, 1).evidence
        assert check(proof, network).arithmetic == "real"
        with pytest.raises(InputError, match="float32"):
            check(rewritten(proof, {"arithmetic": "float32"}), network)


def test_a_proof_of_the_shipped_network_is_still_made():
    """What is charged stays far below the margins of a trained network."""
    network = load_classifier(Path(radii.__file__).parent / "zoo" / "mnist5k-conv.onnx")
    instance = radii.load_dataset("mnist5k", split="test")[0]
    real = REAL.measure(network, [instance], Classification(), LINF, Budget(nodes=40), tolerance=0.01)[0]
    deployed = DEPLOYED.measure(network, [instance], Classification(), LINF, Budget(nodes=40), tolerance=0.01)[0]
    assert deployed.lower > 0.9 * real.lower
