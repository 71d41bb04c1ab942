"""Every attack sits the same exam as any decider, and the simplest one is exact where it should be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from radii.attacks.cascade import Cascade
from radii.attacks.fgsm import Step
from radii.attacks.foolbox import FoolboxAttack
from radii.attacks.nearest import MinimalAttack
from radii.attacks.pgd import Descent
from radii.decide import Budget, Decider
from radii.errors import InputError
from radii.problem import Classification, Instance, Lipschitz, Query, Reason, Standard, StrongClassification, Verdict
from radii.testing.decider_exam import DECIDER_EXAM
from radii.testing.toys import linear_toy, random_instance, relu_toy

DECIDERS: dict[str, Callable[[], Decider]] = {
    "step": Step,
    "descent": lambda: Descent(steps=15, restarts=2),
    "minimal": lambda: MinimalAttack("fast"),
    "cascade": lambda: Cascade((Step(), Descent(steps=10, restarts=1))),
    "foolbox": lambda: _foolbox("LinfFastGradientAttack"),
    "foolbox-minimal": lambda: _foolbox("L2DeepFoolAttack", steps=10),
}
BUDGET = Budget(seconds=30.0)


def _foolbox(name: str, **options: int) -> Decider:
    foolbox = pytest.importorskip("foolbox", reason="FOOLBOX ABSENT: pip install 'radii[foolbox]'")
    return FoolboxAttack(getattr(foolbox.attacks, name)(**options) if options else name)


@pytest.mark.parametrize("name", DECIDERS)
@pytest.mark.parametrize("rule", DECIDER_EXAM, ids=lambda rule: rule.__name__)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_exam(name: str, rule: Callable[[Decider], None]) -> None:
    rule(DECIDERS[name]())


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
        below, above = Step().decide(toy.classifier, queries, BUDGET)
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
    verdicts = [a.verdict for a in Descent().decide(network, [strong, hopeless, standard], BUDGET)]
    assert verdicts == [Verdict.BROKEN, Verdict.UNKNOWN, Verdict.BROKEN]


@pytest.mark.parametrize("decider", [Step(), Descent(restarts=1), MinimalAttack("fast")], ids=repr)
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
        for answer in Descent().decide(network, queries, BUDGET):
            descent += answer.verdict is Verdict.BROKEN
            if answer.witness is not None:
                assert answer.witness.outputs[target] >= answer.witness.outputs[instance.label]
        step += sum(a.verdict is Verdict.BROKEN for a in Step().decide(network, queries, BUDGET))
    assert descent >= step > 0


def test_out_of_time_is_said() -> None:
    network = relu_toy(0)
    instance = random_instance(network, 0)
    (answer,) = Descent(restarts=50).decide(network, [Query(instance, 1e-6)], Budget(seconds=1e-6))
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.TIME)


def test_misuse() -> None:
    network = linear_toy(0).classifier
    with pytest.raises(InputError, match="expected values in"):
        Step().decide(network, [Query(Instance(np.full(network.size, 3.0, np.float32), 0), 0.1)], BUDGET)
    with pytest.raises(InputError, match="effort: expected one of"):
        MinimalAttack("lazy")
    with pytest.raises(InputError, match="restarts"):
        Descent(restarts=0)
    with pytest.raises(InputError, match="at least one decider"):
        Cascade(())


def test_foolbox_misuse() -> None:
    pytest.importorskip("foolbox", reason="FOOLBOX ABSENT: pip install 'radii[foolbox]'")
    with pytest.raises(InputError, match=r"class of foolbox\.attacks"):
        FoolboxAttack("NoSuchAttack")
    free = linear_toy(0, domain=None).classifier
    with pytest.raises(InputError, match="bounded domain"):
        FoolboxAttack("LinfPGD").decide(free, [Query(random_instance(free, 0), 0.1)], BUDGET)


def test_every_public_name_loads() -> None:
    """Names are loaded from their modules on first use, so a moved module shows only then."""
    import radii.attacks

    assert all(callable(getattr(radii.attacks, name)) for name in radii.attacks.__all__)
