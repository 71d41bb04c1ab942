"""Radii and reaches of every property hold what a fine grid of a tiny network shows, and come close to it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import radii
from radii.decide import Budget, values_of
from radii.engine.native import Native
from radii.errors import ModelError
from radii.models.classifier import Classifier
from radii.problem import (
    Instance,
    Lipschitz,
    Norm,
    Probability,
    Property,
    Query,
    Rows,
    Standard,
    StrongClassification,
    Verdict,
)

NORMS = ("linf", "l2", "l1")
GRID = 241  # points per side


@lru_cache
def network(seed: int, inputs: int, outputs: int) -> Classifier:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(inputs, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4), torch.nn.LeakyReLU(0.1)]
    ends = [torch.nn.Hardtanh(-1.5, 1.5)] if seed % 3 == 2 else []  # clamped outputs, as in "… as a property"
    module = torch.nn.Sequential(*layers, torch.nn.Linear(4, outputs), *ends)
    for weight in module.parameters():
        weight.data = torch.randn(weight.shape) * (1.0 if weight.dim() > 1 else 0.5)
    return radii.load_classifier(module, input_shape=(inputs,))


def case(seed: int) -> tuple[Classifier, Instance]:
    inputs = 1 + seed % 2
    net = network(seed, inputs, 1 + seed % 3)
    x = np.random.default_rng(seed).uniform(0.1, 0.9, inputs).astype(np.float32)
    return net, Instance(x, int(np.argmax(net(x))))


def properties(net: Classifier, instance: Instance) -> list[Property]:
    outputs = net(instance.x)
    found: list[Property] = [
        Standard(0.5),
        Standard(0.5, norm="l2"),
        StrongClassification(float(outputs[instance.label]) - 0.4),
        Lipschitz(4.0),
        Rows(((-1.0,) * net.classes,), (float(-outputs.sum()) - 0.6,)),
    ]
    if net.classes > 1:
        found += [Probability(0.1), StrongClassification(0.3, on="probability")]
    return found


def seen(net: Classifier, instance: Instance, asked: Property, norm: Norm) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """The quantity, its values on a grid over the domain, and the distances of the grid's points."""
    side = np.linspace(0, 1, GRID if instance.x.size > 1 else GRID * 20)
    points = np.stack(np.meshgrid(*[side] * instance.x.size, indexing="ij"), -1).reshape(-1, instance.x.size)
    points = points.astype(np.float32)
    of = "probabilities" if asked.speaks_of == "probabilities" else "outputs"
    center = values_of(net, of, net.reference(instance.x[None])[0])
    quantity = asked.quantity(net.classes, instance.label, center)
    far = np.linalg.norm(points.astype(np.float64) - instance.x, ord=norm.order, axis=1)
    return quantity, quantity.of_values(values_of(net, of, net.reference(points)), far), far


def threshold(asked: Property, quantity: Any) -> float:
    name = type(asked).threshold
    return 0.0 if name is None else float(quantity.reported(getattr(asked, name)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_radii_hold_what_a_grid_shows(seed: int, norm: str) -> None:
    net, instance = case(seed)
    size = Norm.of(norm)
    for asked in properties(net, instance):
        quantity, values, far = seen(net, instance, asked, size)
        broken = far[(values >= threshold(asked, quantity)) & (far > 0)]
        nearest = broken.min() if len(broken) else np.inf
        found = Native().measure(net, [instance], asked, size, Budget(20), tolerance=2e-3, limit=0.5)[0]
        assert found.lower is None or found.lower <= nearest, asked
        enclosed = getattr(asked, "norm", "linf") != "linf"  # its proofs only enclose what breaks it
        steep = found.lower is None and asked.speaks_of == "distance"  # too steep at the centre itself
        if not enclosed and not steep:
            assert found.status in ("closed", "robust", "misclassified") or found.lower == 0.5, (asked, found)
        if found.upper is not None and not enclosed:
            assert found.upper <= nearest + 2e-3 or found.upper > 0.5, (asked, found)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_reaches_hold_what_a_grid_shows(seed: int, norm: str) -> None:
    net, instance = case(seed)
    size, epsilon = Norm.of(norm), 0.15
    for asked in properties(net, instance):
        quantity, values, far = seen(net, instance, asked, size)
        inside = (far <= epsilon) & ((far > 5e-3) | (not quantity.per_distance))
        found = Native().reach(net, [instance], asked, size, epsilon, Budget(20), tolerance=0.03)[0]
        top = float(values[inside].max())
        proven = None if found.proven is None else quantity.reported(found.proven)
        assert proven is None or proven >= top - 1e-5 * (1 + abs(top)), (asked, found, top)
        if getattr(asked, "norm", "linf") == "linf":
            assert found.status == "closed", (asked, found)


def test_a_regression_network_needs_no_label() -> None:
    net, instance = case(0)
    assert net.classes == 1
    found = radii.reach(net, instance.x, property="standard", epsilon=0.1, seconds=20)
    assert found.lower is not None
    assert found.upper is not None
    with pytest.raises(radii.InputError, match="expected a class y"):
        radii.reach(net, instance.x, property="strong", epsilon=0.1)


def test_laws() -> None:
    """LR(ε, L) ⇒ SR(ε, εL); what holds in a ball holds in a smaller one."""
    for seed in range(4):
        net, instance = case(seed)
        slope = Native().reach(net, [instance], Lipschitz(1.0), Norm.of("linf"), 0.1, Budget(20), tolerance=0.03)[0]
        moved = Native().reach(net, [instance], Standard(1.0), Norm.of("linf"), 0.1, Budget(20), tolerance=0.03)[0]
        half = Native().reach(net, [instance], Standard(1.0), Norm.of("linf"), 0.05, Budget(20), tolerance=0.03)[0]
        assert slope.upper is not None
        assert moved.upper is not None
        assert moved.lower is not None
        assert half.lower is not None
        assert moved.lower <= 0.1 * slope.upper * (1 + 1e-9)
        assert half.lower <= moved.upper * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("standard:0", "delta"),
        ("lipschitz:-1", "constant"),
        ("probability:0", "gamma"),
        ("strong:eta=1.5,on=probability", "probability between 0 and 1"),
        ("rows:[[1,2],[3]]", "one length"),
    ],
)
def test_bad_parameters_are_refused(text: str, match: str) -> None:
    from radii.problem.property import parse

    with pytest.raises(radii.InputError, match=match):
        parse(text)


def affine(weights: list[list[float]], bias: list[float], check: bool = True) -> Classifier:
    layer = torch.nn.Linear(len(weights[0]), len(bias))
    layer.weight.data, layer.bias.data = torch.tensor(weights), torch.tensor(bias)
    return radii.load_classifier(torch.nn.Sequential(layer), input_shape=(len(weights[0]),), check=check)


HALF = np.array([0.5, 0.5], dtype=np.float32)


def test_a_regression_network_has_a_radius_without_a_label_and_none_with_one() -> None:
    net = affine([[1.0, 1.0]], [0.1])
    found = radii.radius(net, HALF, property="standard:0.5", seconds=5, tolerance=1e-3)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 0.25 <= found.upper
    for words in ({"y": 3, "property": "standard:0.5"}, {"y": 1, "property": "strong:0.1"}):
        with pytest.raises(radii.RadiiError, match="expected classes from 0 to 0"):
            radii.radius(net, HALF, **words)
    with pytest.raises(radii.InputError, match="regression networks have no classes"):
        radii.radius(net, HALF, 0, property="classification")
    with pytest.raises(radii.InputError, match="expected a class y"):
        radii.radius(net, HALF, property="strong:0.1")


@pytest.mark.parametrize("text", ["standard", "lipschitz", "strong", "probability", "strong:on=probability"])
def test_a_constant_network_moves_nothing(text: str) -> None:
    net = affine([[0.0, 0.0], [0.0, 0.0]], [1.0, 0.2])
    found = radii.reach(net, HALF, 0, property=text, epsilon=0.1, seconds=5)
    assert found.status == "closed"
    assert found.lower is not None
    assert found.upper is not None
    assert found.upper - found.lower < 1e-9
    with pytest.raises(radii.InputError, match="epsilon: expected a number above 0"):
        radii.reach(net, HALF, 0, property=text, epsilon=0)


@pytest.mark.parametrize("text", ["standard:1", "lipschitz:1", "strong:0.5", "probability:0.1"])
def test_outputs_that_are_not_finite_are_refused(text: str) -> None:
    net = affine([[3e38, 3e38], [0.0, 0.0]], [3e38, 0.2], check=False)
    with pytest.raises(radii.InputError, match="expected finite outputs"):
        radii.radius(net, HALF, 0, property=text)
    with pytest.raises(ModelError, match="expected finite outputs"):
        affine([[float("nan"), 0.0], [0.0, 0.0]], [1.0, 0.2])


def test_what_is_proven_implies_what_the_laws_say() -> None:
    """Verdicts at one ε: a smaller ε or η and a larger δ, L or γ never break what is proven, and sure means right."""
    net, size = network(4, 2, 3), Norm.of("linf")
    x = np.array([0.3, 0.6], dtype=np.float32)
    instance = Instance(x, int(np.argmax(net(x))))

    def holds(asked: Property, epsilon: float = 0.05) -> bool | None:
        verdict = Native().decide(net, [Query(instance, epsilon, asked, size)], Budget(nodes=400))[0].verdict
        return {Verdict.ROBUST: True, Verdict.BROKEN: False}.get(verdict)

    ladders: list[list[Property]] = [
        [Standard(d) for d in (0.05, 0.8)],
        [Lipschitz(c) for c in (4.0, 16.0)],
        [Probability(g) for g in (0.02, 0.4)],
        [StrongClassification(e, on="probability") for e in (0.9, 0.51)],
    ]
    for ladder in ladders:
        verdicts = [holds(asked) for asked in ladder]
        assert verdicts == sorted(verdicts, key=bool), (ladder, verdicts)
        for asked, verdict in zip(ladder, verdicts):
            assert not (verdict and holds(asked, 0.025) is False)
    if holds(ladders[3][-1]):
        assert holds(radii.Classification()) is True
    for constant in (4.0, 16.0):
        if holds(Lipschitz(constant)):
            assert holds(Standard(0.05 * constant)) is True
