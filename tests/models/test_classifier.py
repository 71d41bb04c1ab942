"""Classifier: shapes, batches, preprocessing, identity, pickling, and what it refuses."""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.models.build import Model

from radii.errors import DataError, ModelError
from radii.models import Classifier, Preprocessing, load_classifier
from radii.problem import Domain


def image_model() -> bytes:
    model = Model(13, [1, 3, 6, 5])
    y = model.node("Relu", model.node("Conv", "x", model.floats(4, 3, 3, 3), model.floats(4)))
    y = model.node("Gemm", model.node("Flatten", y), model.floats(48, 4), model.floats(4))
    return model.bytes(y)


@pytest.fixture(scope="module")
def net() -> Classifier:
    return load_classifier(image_model(), name="image")


X = np.random.default_rng(3).uniform(size=(7, 3, 6, 5)).astype(np.float32)


def test_native_and_flat_inputs_single_and_batched(net):
    wanted = net(X)
    assert wanted.shape == (7, 4)
    assert wanted.dtype == np.float32
    np.testing.assert_array_equal(net(X.reshape(7, -1)), wanted)
    np.testing.assert_allclose(net(X[2]), wanted[2], rtol=1e-5)
    np.testing.assert_allclose(net(X[2].ravel()), wanted[2], rtol=1e-5)
    np.testing.assert_allclose(net(X[:1]), wanted[:1], rtol=1e-5)
    assert net(X[:0]).shape == (0, 4)
    assert net.reference(X[:0]).shape == (0, 4)
    np.testing.assert_allclose(net.reference(X), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net(X.tolist()), wanted, rtol=1e-5)


def test_large_batches_are_cut_into_chunks(net, monkeypatch):
    wanted = net(X)
    monkeypatch.setattr("radii.models.classifier.CHUNK_VALUES", 2 * sum(n.size for n in net.graph.nodes))
    np.testing.assert_allclose(net(X), wanted, rtol=1e-5)


def test_logits_are_differentiable_in_any_dtype(net):
    x = torch.from_numpy(X).double().requires_grad_()
    logits = net.logits(x)
    assert logits.dtype == torch.float64
    logits.sum().backward()
    assert x.grad.abs().sum() > 0
    assert torch.equal(net.torch_module()(torch.from_numpy(X)), net.logits(torch.from_numpy(X)))
    assert net.logits(torch.from_numpy(X.reshape(7, -1))).shape == (7, 4)


def test_predictions_accuracy_and_probabilities(net):
    labels = net.predict(X)
    assert net.accuracy(X, labels) == 1.0
    assert net.accuracy(X, (labels + 1) % 4) == 0.0
    assert int(net.predict(X[0])) == labels[0]
    np.testing.assert_allclose(net.probabilities(X).sum(1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(net.probabilities(X).argmax(1), labels)


def test_the_fingerprint_is_that_of_content(net):
    data = image_model()
    assert load_classifier(data, name="another").fingerprint == net.fingerprint
    assert load_classifier(data) == net
    assert len({load_classifier(data), net}) == 1
    assert load_classifier(data, domain=(0, 2)) != net
    assert load_classifier(data, preprocessing=(0.5, 1)) != net


def test_pickles_as_bytes_and_settings(net):
    net(X)  # builds graph and runtime, which must not travel
    packed = pickle.dumps(net)
    assert len(packed) < len(net.onnx_bytes) + 1000
    copy = pickle.loads(packed)
    assert copy == net
    assert (copy.name, copy.alarms, copy.difference) == (net.name, net.alarms, net.difference)
    np.testing.assert_array_equal(copy(X), net(X))
    np.testing.assert_array_equal(copy.reference(X), net.reference(X))
    assert repr(net) == "Classifier(image: 3x6x5 -> 4)"


@pytest.mark.parametrize("given", [(0.5, 0.25), {"mean": 0.5, "std": 0.25}, ([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])])
def test_preprocessing_comes_first_in_the_graph_and_in_the_reference(net, given):
    ours = load_classifier(image_model(), preprocessing=given)
    mean, std = given.values() if isinstance(given, dict) else given
    shape = (-1, 1, 1) if isinstance(mean, list) else ()
    normal = (X - np.reshape(mean, shape)) / np.reshape(std, shape)
    np.testing.assert_allclose(ours(X), net(normal), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.reference(X), net.reference(normal), rtol=1e-3, atol=1e-4)
    first = ours.graph.nodes[1]
    assert first.name == "preprocessing"
    assert first.operator.rounded
    assert first.operator.scale.dtype == torch.float64


def test_preprocessing_by_the_last_axis_for_channels_last_networks():
    mean, _ = Preprocessing((1.0, 2.0, 3.0), (1.0,)).arrays((4, 5, 3))
    assert mean.shape == (3,)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((0.5, 0.0), "std above 0"),
        ((0.5,), r"\(mean, std\) pair"),
        ("fast", r"\(mean, std\) pair"),
        ({"mean": 0.5, "scale": 2}, "got scale"),
        (([1, 2], [1, 2, 3]), "as many means as stds"),
        ((float("nan"), 1), "finite number"),
        (("a", 1), "finite number"),
        (([1, 2], [1, 2]), "one value per channel"),
    ],
)
def test_bad_preprocessing_is_refused(given, complaint):
    with pytest.raises(ModelError, match=complaint):
        load_classifier(image_model(), preprocessing=given)


def test_saves_what_was_loaded(net, tmp_path):
    path = net.save(tmp_path / "copy.onnx")
    again = load_classifier(path)
    assert again == net
    assert again.name == "copy"
    assert again.path == str(path)
    packed = tmp_path / "packed.onnx.gz"
    packed.write_bytes(gzip.compress(net.onnx_bytes))
    assert load_classifier(str(packed)) == net
    assert load_classifier(packed).name == "packed"
    with pytest.raises(ModelError, match="cannot write"):
        net.save(tmp_path / "no" / "folder.onnx")


def test_a_classifier_is_returned_as_it_is(net):
    assert load_classifier(net) is net


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (np.zeros((3, 5, 6)), r"expected shape 3x6x5 .*got 3x5x6"),
        (np.zeros((2, 89)), r"got 2x89"),
        (np.zeros((6, 5, 3)), "channels come last"),
        (np.zeros((2, 6, 5, 3)), "channels come last"),
        (np.full((3, 6, 5), np.nan), "finite"),
        (np.concatenate([X[:2].reshape(2, -1), np.full((1, 90), np.inf)]), "input 2: expected finite"),
        ([["a"]], "array of numbers"),
        (3.0, "a single number"),
    ],
)
def test_inputs_that_cannot_be_meant_are_refused(net, x, complaint):
    for ask in (net, net.reference, net.predict, net.check_inputs):
        with pytest.raises(DataError, match=complaint):
            ask(x)


def test_a_flat_network_refuses_channels_last_images():
    model = Model(13, [1, 48])
    net = load_classifier(model.bytes(model.node("MatMul", "x", model.floats(48, 2))))
    with pytest.raises(DataError, match="channels come last"):
        net(np.zeros((2, 4, 4, 3)))
    assert net(np.zeros((2, 3, 4, 4))).shape == (2, 2)


def test_pixels_from_0_to_255_raise_an_alarm(net):
    assert net.check_inputs(X, np.zeros(7, int)) == ()
    with pytest.raises(DataError, match="divide by 255"):
        net.check_inputs(X * 255)
    (alarm,) = net.check_inputs(X * 255, strict=False)
    assert "expected values in [0, 1]" in alarm
    with pytest.raises(DataError, match="look normalised"):
        net.check_inputs(X - 0.5)
    with pytest.raises(DataError, match="another domain"):
        net.check_inputs(X * 1.2)
    pixels = load_classifier(image_model(), domain=(0, 255))
    (alarm,) = pixels.check_inputs(X, strict=False)
    assert "multiply by 255" in alarm


def test_labels_outside_the_classes_are_refused(net):
    for bad in ([4] * 7, [-1] + [0] * 6):
        with pytest.raises(DataError, match="classes from 0 to 3"):
            net.check_inputs(X, bad)
        with pytest.raises(DataError, match="classes from 0 to 3"):
            net.accuracy(X, bad)
    with pytest.raises(DataError, match="one per input"):
        net.accuracy(X, [0])
    with pytest.raises(DataError, match="at least one input"):
        net.accuracy(X[:0], [])


def test_unbounded_and_half_bounded_domains():
    for domain in (None, (0, None), (None, 1), Domain(-2, 3)):
        found = load_classifier(image_model(), domain=domain)
        assert found.difference is not None
        assert found.difference < 1e-5


def test_importing_radii_models_loads_no_torch():
    code = "import sys, radii.models; sys.exit('torch' in sys.modules or 'onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
