"""Every attack sits the same exam as any decider, and the simplest one is exact where it should be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from radii.attacks.boundary_projection import BoundaryProjection
from radii.attacks.fgsm import Fgsm
from radii.attacks.foolbox import Foolbox
from radii.attacks.min_norm import MinimumNorm
from radii.attacks.names import available, make_attack
from radii.attacks.nearest import nearest_witnesses
from radii.attacks.pgd import Pgd
from radii.decide import Budget, Decider, Measurer
from radii.errors import InputError
from radii.problem import (
    Classification,
    Instance,
    Lipschitz,
    Norm,
    Query,
    Reason,
    Standard,
    StrongClassification,
    Verdict,
)
from radii.testing.decider_exam import DECIDER_EXAM
from radii.testing.toys import linear_toy, random_instance, relu_toy
from radii.verifiers.catalogue import make
from radii.verifiers.portfolio import Portfolio

DECIDERS: dict[str, Callable[[], Decider]] = {
    "fgsm": Fgsm,
    "pgd": lambda: Pgd(steps=15, restarts=2),
    "minimum_norm": lambda: MinimumNorm("fast"),
    "boundary_projection": BoundaryProjection,
    "portfolio": lambda: Portfolio((Fgsm(), Pgd(steps=10, restarts=1))),
    "foolbox": lambda: _foolbox("LinfFastGradientAttack"),
    "foolbox-minimal": lambda: _foolbox("L2DeepFoolAttack", steps=10),
}
BUDGET = Budget(seconds=30.0)


def _foolbox(name: str, **options: int) -> Decider:
    foolbox = pytest.importorskip("foolbox", reason="FOOLBOX ABSENT: pip install 'radii[foolbox]'")
    return Foolbox(getattr(foolbox.attacks, name)(**options) if options else name)


@cache
def made(name: str) -> Decider:
    """One decider for all rules: those that look at the same answers ask it once."""
    return DECIDERS[name]()


@pytest.mark.parametrize("name", DECIDERS)
@pytest.mark.parametrize("rule", DECIDER_EXAM, ids=lambda rule: rule.__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_exam(name: str, rule: Callable[[Decider], None]) -> None:
    rule(made(name))


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("domain", [(0.0, 1.0), None])
def test_one_step_decides_linear_networks(norm: str, domain: tuple[float, float] | None) -> None:
    for seed in range(10):
        toy = linear_toy(seed, inputs=7, classes=4, domain=domain)
        instance = random_instance(toy.classifier, seed)
        radius = toy.radius(instance.x, instance.label, norm)
        if not 0 < radius < np.inf:
            continue
        queries = [Query(instance, radius * factor, norm=norm) for factor in (0.999, 1.001)]
        below, above = Fgsm().decide(toy.classifier, queries, BUDGET)
        assert below.verdict is Verdict.UNKNOWN
        assert above.verdict is Verdict.BROKEN
        assert above.witness is not None
        assert above.witness.distance <= queries[1].epsilon


def test_other_properties_are_attacked() -> None:
    network = relu_toy(3)
    instance = random_instance(network, 3)
    outputs = network.reference(instance.x[None])[0]
    strong = Query(instance, 0.5, StrongClassification(float(outputs[instance.label]) - 0.01))
    hopeless = Query(instance, 0.5, StrongClassification(-1e6))
    standard = Query(instance, 0.5, Standard(0.01))
    verdicts = [a.verdict for a in Pgd().decide(network, [strong, hopeless, standard], BUDGET)]
    assert verdicts == [Verdict.BROKEN, Verdict.UNKNOWN, Verdict.BROKEN]


@pytest.mark.parametrize("decider", [Fgsm(), Pgd(restarts=1), MinimumNorm("fast")], ids=repr)
def test_unsupported_property_is_an_answer(decider: Decider) -> None:
    network = relu_toy(3)
    (answer,) = decider.decide(network, [Query(random_instance(network, 3), 0.1, Lipschitz(1.0))], BUDGET)
    assert answer.reason is Reason.UNSUPPORTED


def test_descent_beats_the_step_and_respects_targets() -> None:
    step = descent = 0
    for seed in range(8):
        network = relu_toy(seed, widths=(6, 16, 16, 4))
        instance = random_instance(network, seed, reach=0.2)
        target = (instance.label + 1) % 4
        queries = [Query(instance, e, Classification(target)) for e in (0.05, 0.1, 0.2, 0.4)]
        for answer in Pgd().decide(network, queries, BUDGET):
            descent += answer.verdict is Verdict.BROKEN
            if answer.witness is not None:
                assert answer.witness.outputs[target] >= answer.witness.outputs[instance.label]
        step += sum(a.verdict is Verdict.BROKEN for a in Fgsm().decide(network, queries, BUDGET))
    assert descent >= step > 0


def test_out_of_time_is_said() -> None:
    network = relu_toy(0)
    instance = random_instance(network, 0)
    (answer,) = Pgd(restarts=50).decide(network, [Query(instance, 1e-6)], Budget(seconds=1e-6))
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.TIME)


def test_misuse() -> None:
    network = linear_toy(0).classifier
    with pytest.raises(InputError, match="expected values in"):
        Fgsm().decide(network, [Query(Instance(np.full(network.size, 3.0, np.float32), 0), 0.1)], BUDGET)
    with pytest.raises(InputError, match="effort: expected one of"):
        MinimumNorm("lazy")
    with pytest.raises(InputError, match="restarts"):
        Pgd(restarts=0)


def test_foolbox_misuse() -> None:
    pytest.importorskip("foolbox", reason="FOOLBOX ABSENT: pip install 'radii[foolbox]'")
    with pytest.raises(InputError, match=r"class of foolbox\.attacks"):
        Foolbox("NoSuchAttack")
    free = linear_toy(0, domain=None).classifier
    with pytest.raises(InputError, match="bounded domain"):
        Foolbox("LinfPGD").decide(free, [Query(random_instance(free, 0), 0.1)], BUDGET)


def test_every_public_name_loads() -> None:
    """Names are loaded from their modules on first use, so a moved module shows only then."""
    import radii.attacks

    assert all(callable(getattr(radii.attacks, name)) for name in radii.attacks.__all__)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("name", ["fgsm", "boundary_projection", "minimum_norm"])
def test_the_nearest_witness_of_any_attack_on_linear_networks(name: str, norm: str) -> None:
    """Attacks on a fixed ε come as near as those that minimise: to the closed form."""
    for seed in range(4):
        toy = linear_toy(seed, inputs=7, classes=4)
        instance = random_instance(toy.classifier, seed)
        truth = toy.radius(instance.x, instance.label, norm)
        (found,) = nearest_witnesses(make_attack(name), toy.classifier, [instance], Classification(), Norm.of(norm))
        if np.isfinite(truth):
            assert found is not None
            assert truth * (1 - 1e-5) <= found.distance <= truth * 1.001
        else:
            assert found is None


def test_attacks_have_names() -> None:
    listed = {one.name: one for one in available()}
    assert list(listed)[:5] == ["minimum_norm", "pgd", "fgsm", "boundary_projection", "foolbox"]
    assert all(one.summary for one in listed.values())
    assert make_attack("pgd", steps=3) == make_attack({"name": "pgd", "steps": 3}) == Pgd(steps=3)
    assert make_attack(Fgsm()) == Fgsm()
    assert make("attack") == make("attack-only") == MinimumNorm()
    assert make("attack:pgd") == make({"name": "attack", "attack": "pgd"}) == Pgd()
    assert make({"name": "attack", "attack": "pgd", "steps": 7}) == Pgd(steps=7)
    assert make("attack").identity == "attack(effort=standard, seed=0)"  # as stores written before name it


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("pdg", "did you mean 'pgd'?"),
        ({"name": "pgd", "stpes": 3}, "did you mean 'steps'?"),
        ({"name": "pgd", "steps": 0}, "steps: expected a whole number of at least 1"),
        (3, "attack: expected a name"),
    ],
)
def test_attacks_that_are_not_there(what: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make_attack(what)
    assert said in str(caught.value)


def test_the_engine_takes_any_attack() -> None:
    """Upper ends come from the attack that was asked for, the identity says so, and intervals hold the truth."""
    toy = linear_toy(2)
    instance = random_instance(toy.classifier, 2)
    truth = toy.radius(instance.x, instance.label)
    assert make("native").identity == "native 1 (attack standard, seed 0, real)"
    for attack in ("fgsm", {"name": "pgd", "steps": 5}):
        native = make({"name": "native", "attack": attack, "seed": 3})
        assert isinstance(native, Measurer)
        assert ("fgsm(" in native.identity) or ("pgd(steps=5" in native.identity and "seed=3" in native.identity)
        (radius,) = native.measure(
            toy.classifier, [instance], Classification(), Norm.of("linf"), BUDGET, tolerance=0.002
        )
        assert radius.lower is not None
        assert radius.upper is not None
        assert radius.lower <= truth <= radius.upper * (1 + 1e-6)
    with pytest.raises(InputError, match="did you mean 'fgsm'"):
        make({"name": "native", "attack": "fgms"})
