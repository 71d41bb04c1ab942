"""Exact radii: against rational arithmetic, closed forms, independent linear programs, and sampling."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper
from scipy.optimize import linprog
from tests.testing.rational import float_radius, rational_radius

from radii.errors import InputError
from radii.problem import L1, L2, LINF, Classification, Norm
from radii.testing import (
    KINDS,
    exact_breach,
    exact_radius,
    linear_radius,
    linear_toy,
    random_instance,
    random_model,
    random_network,
    relu_toy,
)

NORMS = ("linf", "l2", "l1")
DOMAINS = ((0.0, 1.0), None)


def layers_of(classifier):
    """The weights and biases of a dense toy, read from its ONNX file."""
    model = onnx.load_from_string(classifier.onnx_bytes)
    arrays = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    layers = []
    for node in model.graph.node:
        if node.op_type == "Gemm":
            layers.append((arrays[node.input[1]], arrays[node.input[2]]))
        elif node.op_type == "Add":
            layers[-1] = (layers[-1][0], layers[-1][1] + arrays[node.input[1]])
    return layers


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("domain", DOMAINS, ids=["unit", "whole"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_rational_arithmetic(seed, domain, norm):
    net = relu_toy(seed, (2, 3, 2, 3), domain=domain)
    instance = random_instance(net, seed, reach=0.4)
    truth = float_radius(rational_radius(layers_of(net), instance.x, instance.label, norm, domain), norm)
    assert exact_radius(net, instance.x, instance.label, norm) == pytest.approx(truth, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("seed", range(3))
def test_equals_linear_programs_over_all_patterns(seed, norm):
    net = relu_toy(seed, (4, 3, 3, 3))
    instance = random_instance(net, seed, reach=0.5)
    truth = all_patterns(layers_of(net), instance.x.astype(np.float64), instance.label, norm)
    assert exact_radius(net, instance.x, instance.label, norm) == pytest.approx(truth, rel=1e-6)


def all_patterns(layers, x, label, norm):
    """The least value of one linear program for every activation pattern and class, without any pruning."""
    n, best = len(x), math.inf
    for signs in product((0.0, 1.0), repeat=sum(len(b) for _, b in layers[:-1])):
        slope, constant, rows, limits, at = np.eye(n), x, [], [], 0
        for index, (weight, bias) in enumerate(layers):
            slope, constant = weight @ slope, weight @ constant + bias
            if index < len(layers) - 1:
                on = np.array(signs[at : at + len(bias)])
                at += len(bias)
                rows.append(slope * (1 - 2 * on)[:, None])
                limits.append(-constant * (1 - 2 * on))
                slope, constant = slope * on[:, None], constant * on
        for other in set(range(len(constant))) - {label}:
            G = np.vstack([*rows, slope[label] - slope[other]])
            h = np.append(np.concatenate(limits), constant[other] - constant[label])
            best = min(best, least_norm(G, h, x, norm))
    return best


def least_norm(G, h, x, norm):
    n = len(x)
    extra = 1 if norm == "linf" else n
    spread = np.ones((n, 1)) if norm == "linf" else np.eye(n)
    A = np.vstack(
        [np.hstack([G, np.zeros((len(G), extra))]), np.hstack([np.eye(n), -spread]), np.hstack([-np.eye(n), -spread])]
    )
    bounds = [*zip(-x, 1 - x), *[(0, None)] * extra]
    result = linprog(np.r_[np.zeros(n), np.ones(extra)], A_ub=A, b_ub=np.r_[h, np.zeros(2 * n)], bounds=bounds)
    return result.fun if result.status == 0 else math.inf


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_breach_breaks_and_nothing_nearer_does(kind, norm):
    net = random_network(7, kind)
    instance = random_instance(net, 7)
    spec = Classification().violations(net.classes, instance.label)
    breach = exact_breach(net, instance.x, spec, norm)
    center = instance.x.astype(np.float64).ravel()
    assert breach.x is not None
    assert Norm.of(norm).distance(breach.x, center) == pytest.approx(breach.distance, rel=1e-9)
    assert net.domain.contains(np.clip(breach.x, -1e-12, 1 + 1e-12).round(12))
    outputs = float64_outputs(net, breach.x[None])[0]
    margin = outputs[instance.label] - np.delete(outputs, instance.label).max()
    assert abs(margin) < 1e-8
    inside = in_ball(center, 0.9999 * breach.distance, norm, breach.x)
    margins = float64_outputs(net, inside)
    others = np.delete(margins, instance.label, axis=1).max(axis=1)
    assert (margins[:, instance.label] > others).all()


def float64_outputs(net, x):
    import torch

    return net.logits(torch.as_tensor(x)).numpy()


def in_ball(center, radius, norm, towards):
    """Inputs of the domain on and in the ball: random directions and many near the known breach."""
    rng = np.random.default_rng(0)
    n = len(center)
    steps = np.vstack(
        [rng.normal(size=(4000, n)), np.sign(rng.normal(size=(2000, n))), rng.normal(size=(2000, n)) ** 5]
    )
    near = (towards - center) + rng.normal(size=(4000, n)) * 0.2 * np.abs(towards - center).max()
    steps = np.vstack([steps, near, (towards - center)[None]])
    size = np.linalg.norm(steps, ord=Norm.of(norm).order, axis=1, keepdims=True)
    return np.clip(center + steps / size * radius, 0, 1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("domain", DOMAINS, ids=["unit", "whole"])
def test_linear_closed_form_equals_the_search(domain, norm):
    for seed in range(5):
        toy = linear_toy(seed, domain=domain)
        instance = random_instance(toy.classifier, seed)
        for target in (None, (instance.label + 1) % 3):
            closed = toy.radius(instance.x, instance.label, norm, target)
            searched = exact_radius(toy.classifier, instance.x, instance.label, norm, target)
            assert searched == pytest.approx(closed, rel=1e-7)


@pytest.mark.parametrize(("norm", "dual"), [(LINF, L1), (L2, L2), (L1, LINF)])
def test_linear_radius_is_margin_over_dual_norm_in_the_whole_space(norm, dual):
    rng = np.random.default_rng(0)
    for _ in range(50):
        slope, x = rng.normal(size=(2, 6))
        margin = float(slope @ x + 8.0)
        assert linear_radius(slope, 8.0, x, norm, None) == pytest.approx(margin / dual.size(slope), rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from(NORMS))
def test_linear_radius_in_the_domain_is_least(seed, norm):
    """The optimum of the convex problem, checked through its own conditions: feasible there, infeasible just before."""
    rng = np.random.default_rng(seed)
    slope, x = rng.normal(size=5), rng.uniform(size=5)
    slope[rng.uniform(size=5) < 0.2] = 0.0
    constant = float(rng.uniform(0.01, 1.5)) - float(slope @ x)
    radius = linear_radius(slope, constant, x, norm)
    if math.isinf(radius):
        corner = np.where(slope > 0, 0.0, 1.0)
        assert slope @ corner + constant > 0
        return
    assert least_margin(slope, constant, x, norm, radius * (1 + 1e-9) + 1e-12) <= 1e-9
    assert least_margin(slope, constant, x, norm, radius * (1 - 1e-6)) > 0


def least_margin(slope, constant, x, norm, radius):
    """The least value of slope · x' + constant in the ball and [0, 1], by bisection on the Lagrange multiplier."""
    room = np.where(slope > 0, x, 1 - x)
    rate = np.abs(slope)
    if norm == "linf":
        return slope @ x + constant - (rate * np.minimum(radius, room)).sum()
    if norm == "l1":
        left, gain = radius, 0.0
        for i in np.argsort(-rate):
            step = min(left, room[i])
            left, gain = left - step, gain + step * rate[i]
        return slope @ x + constant - gain
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (np.minimum(middle * rate, room) ** 2).sum() <= radius**2 else (low, middle)
    return slope @ x + constant - (rate * np.minimum(low * rate, room)).sum()


def test_norms_and_targets_are_ordered():
    net = random_network(3, "dense")
    instance = random_instance(net, 3)
    linf, l2, l1 = (exact_radius(net, instance.x, instance.label, norm) for norm in NORMS)
    assert linf <= l2 <= l1
    assert l1 <= 5 * linf
    targets = set(range(3)) - {instance.label}
    assert min(exact_radius(net, instance.x, instance.label, target=t) for t in targets) == pytest.approx(
        linf, rel=1e-9
    )
    assert exact_radius(net, instance.x, instance.label, domain=None) <= linf * (1 + 1e-9)


def test_ends_zero_and_infinity():
    toy = linear_toy(0)
    instance = random_instance(toy.classifier, 0)
    wrong = (instance.label + 1) % 3
    assert exact_radius(toy.classifier, instance.x, wrong) == 0.0
    assert toy.radius(instance.x, wrong) == 0.0
    assert linear_radius([1.0, 1.0], 5.0, [0.5, 0.5]) == math.inf
    assert linear_radius([0.0, 0.0], 5.0, [0.5, 0.5], "l1", None) == math.inf


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda net, x: exact_radius(net, x[:-1], 0), "expected 5 inputs, got 4"),
        (lambda net, x: exact_radius(net, x + 5, 0), r"expected an input in the domain \[0, 1\]"),
        (lambda net, x: exact_radius(net, x, 7), "expected a class from 0 to 2, got 7"),
        (lambda net, x: exact_radius(net, x, 0, domain="mine"), "domain: expected 'own'"),
        (lambda net, x: exact_radius(net, x, 0, norm="l3"), "norm: expected one of"),
        (lambda net, x: random_network(0, "transformer"), "kind: expected one of dense"),
    ],
)
def test_misuse_is_one_line(call, says):
    net = random_network(0, "dense")
    with pytest.raises(InputError, match=says) as caught:
        call(net, random_instance(net, 0).x)
    assert "\n" not in str(caught.value)


def test_refuses_what_is_too_large_or_not_piecewise_linear():
    import torch

    from radii.models import load_classifier
    from radii.models.graph import Graph, Node
    from radii.models.operators import Dense, Sigmoid

    large = load_classifier(random_model(0, "dense")).graph
    with pytest.raises(InputError, match="at most 64 inputs"):
        exact_radius(Graph((Node(None, (), (65,)), Node(Dense(torch.ones(2, 65)), (0,), (2,)))), np.zeros(65), 0)
    smooth = Graph((*large.nodes, Node(Sigmoid(), (len(large.nodes) - 1,), (3,))))
    with pytest.raises(InputError, match="piecewise-linear"):
        exact_radius(smooth, np.full(5, 0.5), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_generators_repeat_and_use_every_class(kind):
    first, second = random_network(5, kind), random_network(5, kind)
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != random_network(6, kind).fingerprint
    assert random_instance(first, 5) == random_instance(second, 5)
    x = np.random.default_rng(0).uniform(size=(500, *first.input_shape)).astype(np.float32)
    assert len(set(first.predict(x).tolist())) >= 2
