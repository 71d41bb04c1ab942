"""Bad networks are refused in one line that says what was expected; odd ones raise alarms."""

from __future__ import annotations

import gzip

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from tests.models.build import Model, read, version
from torch import nn

from radii.errors import ModelError, UnsupportedOperator
from radii.models import load_classifier
from radii.models.check import examine


def small() -> bytes:
    model = Model(13, ["N", 4])
    return model.bytes(model.node("Gemm", "x", model.floats(4, 3), model.floats(3)))


def refused(source, match, **options) -> str:
    with pytest.raises(ModelError, match=match) as caught:
        load_classifier(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_files(tmp_path, share):
    path = tmp_path / "cut.onnx"
    data = small()
    path.write_bytes(data[: int(len(data) * share)])
    message = refused(path, "ONNX")
    assert message.startswith(str(path))


def test_a_truncated_archive(tmp_path):
    path = tmp_path / "cut.onnx.gz"
    path.write_bytes(gzip.compress(small())[:-20])
    refused(path, "truncated or damaged archive")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty file"),
        (b"PK\x03\x04 rest", "zip archive"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"\x93NUMPY", "numpy array"),
        (b"\x89PNG\r\n", "picture"),
        (b"(declare-const X_0 Real)", "VNN-LIB"),
        (b"hello, this is no network at all", "not ONNX"),
    ],
)
def test_wrong_file_types(tmp_path, content, match):
    path = tmp_path / "wrong.onnx"
    path.write_bytes(content)
    refused(path, match)
    refused(str(path), match)


def test_paths_that_hold_nothing(tmp_path):
    refused(tmp_path / "absent.onnx", "nothing is")
    refused(tmp_path, "a folder")
    refused(3, "expected a path, ONNX bytes or a torch module, got int")


@pytest.mark.parametrize("opset", [6, 7, 21, 23])
def test_opsets_outside_the_range(opset):
    proto = onnx.load_from_string(small())
    proto.opset_import[0].version = opset
    refused(proto, f"opset from 8 to 20, got {opset}")


def test_all_unsupported_operators_are_listed_at_once():
    model = Model(13, ["N", 4])
    y = model.node("Elu", "x")
    y = model.node("Relu", model.node("Erf", y))
    y = model.node("LRN", y, size=3)
    y = model.node("Add", y, model.node("Div", model.floats(4), "x"))
    with pytest.raises(UnsupportedOperator) as caught:
        read(model.bytes(y))
    assert set(caught.value.operators) == {"Elu", "Erf", "LRN", "Div"}
    message = str(caught.value)
    for words in (
        "Elu (node n0)",
        "Erf (node n1)",
        "LRN (node n3)",
        "division by a computed value",
        "retrain with ReLU",
    ):
        assert words in message
    assert "\n" not in message


def test_operators_of_other_domains_and_random_numbers_are_refused():
    proto = onnx.load_from_string(small())
    proto.graph.node[0].domain = "com.microsoft"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    refused(proto, "the domain com.microsoft")
    model = Model(13, ["N", 4])
    refused(model.bytes(model.node("Add", "x", model.node("RandomNormal", shape=[4]))), "random numbers")


def test_products_of_two_computed_values():
    model = Model(13, [4, 4])
    refused(model.bytes(model.node("MatMul", "x", model.node("Relu", "x"))), "product of two computed values")
    refused(model.bytes(model.node("Gemm", "x", "x")), "product of two computed values")


def test_unusual_windows_and_modes():
    model = Model(13, [1, 1, 4, 4])
    y = model.node("Conv", "x", model.node("Relu", "x"))
    refused(model.bytes(y), "expected input 1 to be a constant")
    model = Model(15, ["N", 3])
    parts = [model.floats(3) for _ in range(4)]
    y = model.node("BatchNormalization", "x", *parts, training_mode=1)
    refused(model.bytes(y), "evaluation mode")
    model = Model(13, ["N", 4])
    refused(model.bytes(model.node("MatMul", "x", model.floats(5, 3))), "weight for 4 values, got one for 5")
    refused(model.bytes(model.node("Div", "x", model.const(np.float32(0)))), "division by 0")


def test_more_than_one_input_or_output():
    proto = onnx.load_from_string(small())
    proto.graph.input.append(helper.make_tensor_value_info("second", 1, [1, 4]))
    refused(proto, "one input, got x, second")
    proto = onnx.load_from_string(small())
    proto.graph.output.append(helper.make_tensor_value_info("x", 1, None))
    refused(proto, "one output")


def test_inputs_of_other_types_and_constant_outputs():
    model = Model(13, ["N", 4])
    refused(model.bytes(model.node("Cast", "x", to=1), kind=6), "float32 or float64, got INT32")
    model = Model(13, ["N", 4])
    refused(model.bytes(model.floats(1, 3) and model.node("Relu", model.floats(1, 3))), "got a constant")


def test_a_fixed_batch_above_one_is_not_mistaken(tmp_path):
    model = Model(13, [8, 4])
    data = model.bytes(model.node("MatMul", "x", model.floats(4, 3)))
    assert read(data).input_shape == (8, 4)
    refused(data, "8x4, got 4", input_shape=(4,))


def test_networks_that_mix_the_inputs_of_a_batch():
    model = Model(13, ["N", 4])
    mean = model.node("ReduceMean", "x", axes=[0], keepdims=1)
    refused(model.bytes(model.node("Sub", "x", mean)), "mixes the inputs of a batch")


def test_outputs_that_are_not_finite():
    model = Model(13, ["N", 4])
    refused(model.bytes(model.node("Mul", "x", model.const(np.float32(np.inf)))), "finite outputs")


def test_a_graph_that_computes_something_else_is_refused(monkeypatch):
    """The check itself: a graph with another weight does not pass for the file."""
    net = load_classifier(small(), check=False)
    assert net.difference is None
    other = Model(13, ["N", 4], seed=1)
    wrong = load_classifier(other.bytes(other.node("Gemm", "x", other.floats(4, 3), other.floats(3)))).graph
    net.__dict__["graph"] = wrong
    with pytest.raises(ModelError, match=r"within 0\.0001 of the largest output, got"):
        examine(net)


def test_alarms():
    model = Model(13, ["N", 4])
    zero = model.node("Mul", "x", model.const(np.float32(0)))
    net = read(model.bytes(model.node("Add", zero, model.floats(4))))
    assert [a.split(":")[0] for a in net.alarms] == ["constant outputs"]
    # Steps: values differ between inputs, slopes vanish everywhere but on a set that random inputs do not hit.
    model = Model(13, ["N", 4])
    steep = model.node("Mul", model.node("Sub", "x", model.const(np.float32(0.3))), model.const(np.float32(1e9)))
    net = read(model.bytes(model.node("Clip", steep, model.const(np.float32(0)), model.const(np.float32(1)))))
    assert [a.split(":")[0] for a in net.alarms] == ["zero gradients"]
    model = Model(13, ["N", 4])
    net = read(model.bytes(model.node("MatMul", "x", model.floats(4, 1))))
    assert [a.split(":")[0] for a in net.alarms] == ["a single output"]
    assert load_classifier(small()).alarms == ()


def test_outputs_that_are_probabilities_without_a_softmax_raise_an_alarm():
    model = Model(13, ["N", 1])
    p = model.node("Sigmoid", "x")
    y = model.node("Concat", p, model.node("Sub", model.const(np.ones((1, 1), np.float32)), p), axis=1)
    (alarm,) = read(model.bytes(y)).alarms
    assert alarm.startswith("softmaxed logits: the outputs are probabilities")


def test_weights_in_a_file_beside_the_network(tmp_path):
    path = tmp_path / "big.onnx"
    proto = onnx.load_from_string(small())
    weight = proto.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).repeat(1, axis=0), weight.name))
    onnx.save_model(proto, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    net = load_classifier(path)
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(net(x), load_classifier(small())(x), rtol=1e-6)
    (tmp_path / "weights.bin").unlink()
    refused(path, "weights in files beside it")


class Steps(nn.Module):
    """A decision on a value, which no export can hold."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x or −x."""
        return x if x.sum() > 0 else -x


def test_torch_modules():
    module = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(48, 4)
    )
    module.train()
    module[1](torch.randn(50, 3, 4, 4))  # statistics that are not the defaults
    net = load_classifier(module, input_shape=(1, 6, 6), name="mine")
    assert module.training
    assert all(part.training for part in module.modules())
    x = torch.rand(5, 1, 6, 6)
    module.eval()
    np.testing.assert_allclose(net(x.numpy()), module(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert (net.name, net.alarms, net.classes) == ("mine", (), 4)
    double = load_classifier(nn.Sequential(nn.Linear(3, 2)).double(), input_shape=(3,))
    assert double.classes == 2


def test_torch_modules_that_cannot_be_used():
    module = nn.Sequential(nn.Linear(4, 4), Steps(), nn.Linear(4, 2))
    refused(nn.Linear(4, 2), r"input_shape=")
    refused(nn.Linear(4, 2), "does not run on inputs of shape", input_shape=(5,))
    message = refused(module, r"these modules cannot be exported to ONNX: 1 \(Steps\)", input_shape=(4,))
    assert "Linear" not in message
    refused(nn.Sequential(nn.Linear(4, 2), nn.ELU()), r"Elu \(node", input_shape=(4,))
    refused(nn.LSTM(4, 2), "returns one tensor, got tuple", input_shape=(3, 4))


def test_torch_modules_that_draw_random_numbers():
    class Noisy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + float(np.random.default_rng().normal())

    net = load_classifier(nn.Sequential(nn.Linear(4, 2), Noisy()), input_shape=(4,))
    assert net.alarms[0].startswith("non-deterministic outputs")


def test_torch_modules_that_only_torch_export_understands():
    class Sized(nn.Module):
        """A branch on a size, of which tracing warns though it is harmless."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            size = torch.tensor(x.shape[1])
            return torch.relu(x) if bool(size > 3) else -x

    module = nn.Sequential(nn.Linear(4, 4), Sized(), nn.Linear(4, 2))
    net = load_classifier(module, input_shape=(4,))
    x = torch.rand(3, 4)
    np.testing.assert_allclose(net(x.numpy()), module(x).detach().numpy(), rtol=1e-4, atol=1e-6)
    assert version(net.onnx_bytes) == 18  # tracing writes 17


def test_a_network_that_overflows_inside_is_not_called_misread():
    """onnxruntime's Clip makes a finite output of inf − inf; what is wrong is the overflow, not how it was read."""
    weight, ends = np.full((2, 2), 3e38), [np.array(v, np.float32) for v in (-1e37, 1e37)]
    constants = [numpy_helper.from_array(v.astype(np.float32), f"c{i}") for i, v in enumerate([weight, *ends])]
    nodes = [
        helper.make_node("MatMul", ["x", "c0"], ["wide"], name="wide"),
        helper.make_node("Clip", ["wide", "c1", "c2"], ["y"]),
    ]
    shape = ["N", 2]
    entry, last = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", "y"))
    graph = helper.make_graph(nodes, "overflow", [entry], [last], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(ModelError, match=r"expected values that float32 can hold, got infinity or NaN in node wide"):
        load_classifier(model, domain=(-3.0, 3.0))


def test_a_network_of_too_many_nodes():
    model = Model(13, ["N", 4])
    name = "x"
    for _ in range(5_000):
        name = model.node("Relu", name)
    refused(model.bytes(model.node("Gemm", name, model.floats(4, 3))), "at most 5000 nodes, got 5001")


def test_functions_that_stand_for_billions_of_nodes():
    """Each function calls the one before it twice: 2 kB of file, 2^30 nodes when written out."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def model(depth: int, *more: onnx.FunctionProto) -> bytes:
        functions = [helper.make_function("own", "F0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports)]
        for i in range(1, depth):
            calls = [helper.make_node(f"F{i - 1}", *ends, domain="own") for ends in ((["a"], ["t"]), (["t"], ["b"]))]
            functions.append(helper.make_function("own", f"F{i}", ["a"], ["b"], calls, imports))
        ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 3]) for n in "xy"]
        node = helper.make_node(f"F{depth - 1}", ["x"], ["y"], domain="own")
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        whole = helper.make_model(graph, opset_imports=imports, ir_version=8, functions=[*functions, *more])
        return whole.SerializeToString()

    assert len(load_classifier(model(4)).graph.nodes) == 9
    refused(model(31), "at most 5000 nodes, got 1073741824")
    refused(model(1000), "at most 50 deep")
    call = helper.make_node("F0", ["a"], ["b"], domain="own")
    refused(model(1, helper.make_function("own", "F0", ["a"], ["b"], [call], imports)), "at most 50 deep")
