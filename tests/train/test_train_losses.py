"""Gradients of every loss against finite differences, and closed forms."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.train.nets import inputs, net

from radii.errors import InputError
from radii.problem import Domain
from radii.train.balance import clamped, kl_weights, radius_weights, similarity_weights
from radii.train.from_torch import read
from radii.train.methods.base import Lost, State, box, described, make, methods
from radii.train.network import Network

LOSSES: dict[str, dict[str, Any]] = {
    "standard": {"name": "standard"},
    "augment uniform": {"name": "augment", "epsilon": 0.1},
    "augment fgsm": {"name": "augment", "epsilon": 0.1, "sampling": "fgsm"},
    "fgsm": {"name": "fgsm", "epsilon": 0.1},
    "pgd": {"name": "pgd", "epsilon": 0.1, "clean": 0.3},
    "trades": {"name": "trades", "epsilon": 0.1},
    "ibp": {"name": "ibp", "epsilon": 0.1, "kappa": [0.2, 0.4]},
    "crown_ibp": {"name": "crown_ibp", "epsilon": 0.1, "beta": [1, 0.5]},
    "diffai": {"name": "diffai", "epsilon": 0.1},
    "sabr": {"name": "sabr", "epsilon": 0.1},
    "mtl_ibp": {"name": "mtl_ibp", "epsilon": 0.1, "wider": 1.5},
    "classification": {"name": "constraint", "epsilon": 0.1, "property": "classification"},
    "strong": {"name": "constraint", "epsilon": 0.1, "property": "strong:eta=0.52,on=probability"},
    "standard robustness": {"name": "constraint", "epsilon": 0.1, "property": "standard:delta=0.01"},
    "standard l2": {"name": "constraint", "epsilon": 0.1, "property": "standard:delta=0.01,norm=l2"},
    "lipschitz": {"name": "constraint", "epsilon": 0.1, "property": "lipschitz:constant=0.1"},
    "probability": {"name": "constraint", "epsilon": 0.1, "property": "probability:gamma=0.001"},
    "rows": {"name": "constraint", "epsilon": 0.1, "property": "rows:[[1,-1,0]]"},
}
SIZES = torch.tensor([0.1, 0.05, 0.1, 0.02, 0.1, 0.1], dtype=torch.float64)  # as class balance may give


def lost(values: dict[str, Any], module: torch.nn.Module, share: float = 0.6) -> tuple[Lost, Network]:
    x, y = inputs((2, 5, 5))
    state = State(torch.Generator().manual_seed(3), Domain(), share)
    network = read(module, x)
    return make(values).loss(network, x, y, SIZES.reshape(-1, 1, 1, 1), state), network


def total(values: dict[str, Any], module: torch.nn.Module) -> torch.Tensor:
    found, _ = lost(values, module)
    return found.losses.sum() + found.penalty


def test_every_method_is_checked() -> None:
    ours = {name for name in methods() if not name.startswith("test-")}  # other tests of this process may add theirs
    assert {values["name"] for values in LOSSES.values()} == ours


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_finite_differences(name: str, training: bool) -> None:
    module, _ = net("batch_norm", seed=4)
    module.train(training)
    weights = list(module.parameters())
    total(LOSSES[name], module).backward()
    slopes = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in weights]
    assert sum(float(slope.abs().sum()) for slope in slopes) > 0
    generator = torch.Generator().manual_seed(5)
    step = 1e-6
    for _ in range(3):
        way = [torch.randn(w.shape, generator=generator, dtype=w.dtype) for w in weights]
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                for w, d in zip(weights, way):
                    w += sign * step * d
            ends.append(float(total(LOSSES[name], module).detach()))
            with torch.no_grad():
                for w, d in zip(weights, way):
                    w -= sign * step * d
        predicted = sum(float((slope * d).sum()) for slope, d in zip(slopes, way))
        assert predicted == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_attacked_points_and_losses_are_finite_without_a_ball(name: str) -> None:
    """Before the ramp ε is 0: every loss is then its clean one, and no step of size 0 is taken."""
    module, _ = net("conv")
    x, y = inputs((2, 5, 5))
    state = State(torch.Generator().manual_seed(0), Domain(), 0.0)
    found = make(LOSSES[name]).loss(read(module, x), x, y, torch.zeros(len(y), 1, 1, 1, dtype=x.dtype), state)
    assert bool(torch.isfinite(found.losses).all())
    assert torch.equal(found.outputs.argmax(1), module(x).argmax(1))


def test_pgd_and_sabr_are_between_clean_and_interval_losses() -> None:
    module, _ = net("conv")
    order = [
        lost({"name": name, "epsilon": 0.1, **more}, module, share=1.0)[0].losses.mean()
        for name, more in (
            ("pgd", {"steps": 1, "step": 1e-9, "clean": 1.0}),
            ("pgd", {}),
            ("sabr", {"share": 0.3}),
            ("sabr", {"share": 1.0}),
        )
    ]
    assert [float(value.detach()) for value in order] == sorted(float(value.detach()) for value in order)
    whole = lost({"name": "ibp", "epsilon": 0.1}, module, share=1.0)[0]
    assert torch.allclose(order[-1], whole.losses.mean())


def test_mixes_are_what_they_say() -> None:
    module, _ = net("dense")
    x, y = inputs((4,))
    network, state = read(module, x), State(torch.Generator().manual_seed(0), Domain(), 0.25)
    size = torch.full((1, 1), 0.1, dtype=x.dtype)
    worst = F.cross_entropy(network.worst(*box(x, size, state.domain), y), y, reduction="none")
    clean = F.cross_entropy(network.clean, y, reduction="none")
    ibp = make({"name": "ibp", "epsilon": 0.1, "kappa": [1, 0.2]}).loss(network, x, y, size, state)
    assert torch.allclose(ibp.losses, 0.8 * clean + 0.2 * worst)  # κ is a quarter of its way from 1 to 0.2
    mix = make({"name": "diffai", "epsilon": 0.1, "point": 2, "ball": 0.5}).loss(network, x, y, size, state)
    assert torch.allclose(mix.losses, 2 * clean + 0.5 * worst)


def test_constraints_compare_with_the_current_output() -> None:
    """A network that is constant in the ball loses nothing, however wrong it is (Casadio et al. 2022)."""
    module, _ = net("dense")
    with torch.no_grad():
        for part in module.parameters():
            part.zero_()
        module[-1].bias.copy_(torch.tensor([3.0, 0.0, 0.0], dtype=torch.float64))
    x, _ = inputs((4,))
    y = torch.ones(len(x), dtype=torch.int64)
    state = State(torch.Generator().manual_seed(0))
    size = torch.full((1, 1), 0.1, dtype=x.dtype)
    for text, added in (("standard:0.1", 0.0), ("lipschitz:0.1", 0.0), ("classification", 3.0), ("strong:1", 1.0)):
        values = {"name": "constraint", "epsilon": 0.1, "property": text, "beta": 1.0}
        found = make(values).loss(read(module, x), x, y, size, state)
        assert torch.allclose(found.losses, F.cross_entropy(module(x), y, reduction="none") + added)


def test_a_lipschitz_constraint_of_a_linear_network_has_a_closed_form() -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3, 2)).double()
    x = torch.full((1, 3), 0.5, dtype=torch.float64)
    slope = float(module[1].weight.detach().abs().sum(1).max())
    values = {"name": "constraint", "epsilon": 0.1, "property": "lipschitz:constant=0.01", "alpha": 0, "beta": 1}
    size, y = torch.full((1, 1), 0.1, dtype=x.dtype), torch.zeros(1, dtype=torch.int64)
    found = make(values).loss(read(module, x), x, y, size, State(torch.Generator().manual_seed(0)))
    assert float(found.losses.detach()) == pytest.approx(0.1 * (slope - 0.01), rel=1e-9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "pdg", "epsilon": 0.1}, "did you mean 'pgd'"),
        ({"epsilon": 0.1}, "method: expected a name among"),
        ({"name": "pgd"}, "expected epsilon for pgd, got none"),
        ({"name": "pgd", "epsilon": 0.1, "step_size": 1}, "got 'step_size'; did you mean 'step"),
        ({"name": "pgd", "epsilon": "x"}, "method epsilon: expected a number"),
        ({"name": "pgd", "epsilon": -1}, "method epsilon: expected a number of at least 0"),
        ({"name": "pgd", "epsilon": 0.1, "steps": 0}, "whole number of at least 1"),
        ({"name": "sabr", "epsilon": 0.1, "share": 1.2}, "share: expected a number above 0 and at most 1"),
        ({"name": "ibp", "epsilon": 0.1, "kappa": [1, 0.5, 0]}, "expected one number or two"),
        ({"name": "augment", "epsilon": 0.1, "sampling": "pgd"}, "sampling: expected one of uniform, fgsm"),
        ({"name": "constraint", "epsilon": 0.1, "property": "standart:1"}, "did you mean 'standard'"),
    ],
)
def test_bad_values_are_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(values)


def test_constraints_of_one_target_are_refused() -> None:
    with pytest.raises(InputError, match="expected a property of every class"):
        make({"name": "constraint", "epsilon": 0.1, "property": "classification:target=1"}).check(3)


def test_methods_describe_themselves_as_recipes_say_them() -> None:
    for values in LOSSES.values():
        method = make(values)
        assert make(described(method)) == method


def test_kl_weights_maximise_what_they_should() -> None:
    losses, tau = torch.tensor([0.2, 1.0, 0.5], dtype=torch.float64), 0.7

    def value(weights: torch.Tensor) -> float:
        return float((weights * losses).mean() - tau * (weights * weights.clamp_min(1e-12).log()).mean())

    best = kl_weights(losses, tau)
    assert float(best.mean()) == pytest.approx(1.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        other = (best + 0.3 * torch.rand(3, generator=generator, dtype=best.dtype)).clamp_min(1e-3)
        assert value(3 * other / other.sum()) <= value(best) + 1e-12


def test_similarity_moves_weight_from_easy_to_hard_classes_that_are_mistaken() -> None:
    shares = torch.tensor([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    found = similarity_weights(shares, 1.0)
    assert found.tolist() == pytest.approx([1 - 0.4 * 0.9, 1 + 0.4 * 0.9, 1.0])
    kept = clamped(similarity_weights(shares, 10.0), (0.5, 2.0))
    assert float(kept.mean()) == pytest.approx(1.0)
    assert bool((kept > 0).all())


def test_weights_from_radii() -> None:
    found = radius_weights([0.1, 0.1, 0.3, math.nan], [0, 0, 1, 2], 3)
    assert found == pytest.approx((2.0, 2 / 3, 1.0))
    with pytest.raises(InputError, match="expected radii above 0"):
        radius_weights([math.nan], [0], 2)
