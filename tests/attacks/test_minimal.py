"""The minimum-norm attack against closed forms, exact radii and published ones."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.attacks.min_norm import Minimum, minimum_norm
from radii.attacks.refine import refine
from radii.errors import InputError
from radii.models import Classifier, load_classifier
from radii.problem import Norm
from radii.testing.exact import exact_radius
from radii.testing.toys import linear_toy, random_instance, random_network, relu_toy
from shared import DATA, needs_data

NORMS = ("linf", "l2", "l1")


def check(classifier: Classifier, x: np.ndarray, labels: np.ndarray, norm: str, found: Minimum) -> None:
    """Every reported point is in the domain, as far as reported, and breaks the original model."""
    for point, center, label, distance, prediction in zip(
        found.points, x, labels, found.distances, found.predictions, strict=True
    ):
        if not np.isfinite(distance):
            assert np.isnan(point).all()
            assert prediction == -1
            continue
        assert point.dtype == np.float32
        assert classifier.domain.contains(point)
        assert Norm.of(norm).distance(point, center) == distance
        outputs = classifier.reference(point[None])[0]
        assert outputs[prediction] >= outputs[label]
        assert prediction != label


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("domain", [(0.0, 1.0), (0.1, 0.8), None])
@given(seed=st.integers(0, 500))
@settings(max_examples=8)
def test_linear_networks_are_solved(norm: str, domain: tuple[float, float] | None, seed: int) -> None:
    toy = linear_toy(seed, inputs=12, classes=4, domain=domain)
    instances = [random_instance(toy.classifier, seed + k) for k in range(4)]
    x = np.stack([i.x for i in instances])
    labels = np.array([i.label for i in instances])
    found = minimum_norm(toy.classifier, x, labels, norm, effort="fast")
    check(toy.classifier, x, labels, norm, found)
    exact = np.array([toy.radius(i.x, i.label, norm) for i in instances])
    assert (found.distances >= exact * (1 - 1e-5)).all()
    reached = np.isfinite(exact)
    assert found.distances[reached] == pytest.approx(exact[reached], rel=0.02, abs=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_tiny_networks_are_nearly_solved(norm: str) -> None:
    ratios = []
    for seed in range(3):
        for kind in ("dense", "conv", "residual", "leaky", "maxpool"):
            network = random_network(seed, kind)
            instance = random_instance(network, seed)
            found = minimum_norm(network, instance.x[None], [instance.label], norm)
            check(network, instance.x[None], np.array([instance.label]), norm, found)
            exact = exact_radius(network, instance.x, instance.label, norm)
            assert found.distances[0] >= exact * (1 - 1e-5)
            if 0 < exact < np.inf:
                ratios.append(found.distances[0] / exact)
    assert np.median(ratios) < 1.01
    assert np.quantile(ratios, 0.9) < 1.1


def test_each_target_and_one_target_agree_with_exact_radii() -> None:
    network = relu_toy(5, widths=(5, 8, 8, 4))
    instance = random_instance(network, 5)
    each = minimum_norm(network, instance.x[None], [instance.label], targets="each")
    assert each.points.shape == (1, 4, *network.input_shape)
    assert np.isinf(each.distances[0, instance.label])
    for target in range(4):
        if target == instance.label:
            continue
        exact = exact_radius(network, instance.x, instance.label, target=target)
        alone = minimum_norm(network, instance.x[None], [instance.label], targets=target)
        for distance, point in (
            (each.distances[0, target], each.points[0, target]),
            (alone.distances[0], alone.points[0]),
        ):
            assert distance >= exact * (1 - 1e-5)
            if np.isfinite(distance):
                outputs = network.reference(point[None])[0]
                assert outputs[target] >= outputs[instance.label]
                assert distance <= exact * 1.1 + 1e-6


@pytest.mark.parametrize("norm", NORMS)
def test_two_classes(norm: str) -> None:
    network = relu_toy(2, widths=(4, 8, 2))
    instance = random_instance(network, 2)
    found = minimum_norm(network, instance.x[None], [instance.label], norm)
    exact = exact_radius(network, instance.x, instance.label, norm)
    check(network, instance.x[None], np.array([instance.label]), norm, found)
    assert found.distances[0] == pytest.approx(exact, rel=0.05)


def test_misclassified_inputs_are_at_distance_zero() -> None:
    network = relu_toy(1)
    instance = random_instance(network, 1)
    wrong = (instance.label + 1) % network.classes
    found = minimum_norm(network, instance.x[None], [wrong], effort="fast")
    assert found.distances[0] == 0.0
    assert np.array_equal(found.points[0], instance.x)


def test_deterministic_for_a_seed_and_empty_batches() -> None:
    network = relu_toy(4)
    instances = [random_instance(network, k) for k in range(5)]
    x, labels = np.stack([i.x for i in instances]), [i.label for i in instances]
    first, second = (minimum_norm(network, x, labels, seed=3) for _ in range(2))
    assert np.array_equal(first.points, second.points, equal_nan=True)
    assert np.array_equal(first.distances, second.distances)
    empty = minimum_norm(network, x[:0], [])
    assert empty.points.shape == (0, *network.input_shape)
    assert empty.distances.shape == (0,)


def test_time_that_is_over_ends_the_attack_with_what_it_has_found() -> None:
    toy = relu_toy(4)
    instances = [random_instance(toy, k) for k in range(5)]
    x, labels = np.stack([i.x for i in instances]), np.array([i.label for i in instances])
    whole, none, some = (minimum_norm(toy, x, labels, seconds=s) for s in (None, 0.0, 0.02))
    assert none.evaluations <= len(x) < whole.evaluations  # which take 0.3 CPU seconds
    assert some.evaluations < whole.evaluations
    for found in (none, some):
        check(toy, x, labels, "linf", found)
    again = minimum_norm(toy, x, labels, seconds=1000.0)
    assert again.distances.tolist() == whole.distances.tolist()


def test_more_effort_is_not_worse() -> None:
    network = relu_toy(7, widths=(8, 24, 24, 5))
    instances = [random_instance(network, k, reach=0.3) for k in range(12)]
    x, labels = np.stack([i.x for i in instances]), [i.label for i in instances]
    fast, standard, thorough = (
        np.mean(minimum_norm(network, x, labels, effort=e).distances) for e in ("fast", "standard", "thorough")
    )
    assert thorough <= standard * 1.001 <= fast * 1.01


@pytest.mark.parametrize("norm", NORMS)
def test_refine_improves_candidates(norm: str) -> None:
    network = relu_toy(9, widths=(6, 16, 16, 4))
    instances = [random_instance(network, k) for k in range(6)]
    x = np.stack([i.x for i in instances])
    labels = np.array([i.label for i in instances])
    rough = minimum_norm(network, x, labels, norm, effort="fast")
    starts = np.where(np.isnan(rough.points), x, np.clip(x + 1.5 * (rough.points - x), 0, 1)).astype(np.float32)
    points, distances = refine(network, x, labels, starts, norm, steps=20)
    before = np.array([Norm.of(norm).distance(a, b) for a, b in zip(starts, x)])
    broken = np.isfinite(distances)
    assert broken.any()
    assert (distances[broken] <= before[broken]).all()
    for i in np.flatnonzero(broken):
        assert network.domain.contains(points[i])
        outputs = network.reference(points[i][None])[0].copy()
        own = outputs[labels[i]]
        outputs[labels[i]] = -np.inf
        assert outputs.max() >= own
        assert distances[i] == Norm.of(norm).distance(points[i], x[i])
    _, capped = refine(network, x, labels, starts, norm, within=np.full(6, 1e-6))
    assert np.isinf(capped).all()


def test_misuse() -> None:
    network = linear_toy(0).classifier
    x = np.full((1, network.size), 0.5, np.float32)
    for arguments, message in (
        ({"labels": [7]}, "classes from 0"),
        ({"labels": [0], "targets": 9}, "target: expected a class"),
        ({"labels": [0], "targets": 0}, "another class than the label"),
        ({"labels": [0], "targets": "all"}, "'each'"),
        ({"labels": [0], "effort": "lazy"}, "effort: expected one of"),
        ({"labels": [0], "norm": "l3"}, "norm"),
        ({"labels": [0, 1]}, "inputs: expected 2"),
    ):
        with pytest.raises(InputError, match=message):
            minimum_norm(network, x, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected values in"):
        minimum_norm(network, x + 4, [0])


def _mnist(count: int) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(DATA / "mnist/train-images-idx3-ubyte.gz") as file:
        x = np.frombuffer(file.read(16 + 784 * count), np.uint8)[16:].reshape(-1, 784)
    with gzip.open(DATA / "mnist/train-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(8 + count), np.uint8)[8:]
    return (x / 255).astype(np.float32), y.astype(np.int64)


@needs_data
@pytest.mark.parametrize("name", ["mnist-net_256x2", "mnist_relu_3_50"])
def test_published_radii_are_met(name: str) -> None:
    with open(DATA / "jair/results.csv") as file:
        rows = [r for r in csv.DictReader(file) if r["network"] == name and r["status"] == "ok"][:50]
    indices = [int(r["dataset_index"]) for r in rows]
    x, y = _mnist(max(indices) + 1)
    network = load_classifier(DATA / f"jair/networks/{name}.onnx")
    found = minimum_norm(network, x[indices], y[indices])
    upper = np.array([float(r["upper"]) for r in rows])
    lower = np.array([float(r["lower"]) for r in rows])
    assert np.mean(found.distances <= upper + 0.002) >= 0.95
    assert (found.distances >= lower).all()
