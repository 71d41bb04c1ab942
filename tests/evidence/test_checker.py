"""The checker confirms what was proven, and nothing that is not so, whatever a file says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.engine.tuned import SETTLING
from tests.evidence.proofs import proven, rewritten, shaken

from radii.decide import Budget
from radii.engine.native import Native
from radii.errors import FormatError, InputError
from radii.evidence import check, read_claim
from radii.evidence.file import unpack
from radii.models import load_classifier
from radii.problem import L1, L2, LINF, Classification, Instance
from radii.testing import KINDS, exact_radius, linear_toy, random_instance, random_network, relu_toy
from radii.testing._build import Builder

NORMS = (LINF, L2, L1)


@pytest.fixture(scope="module")
def sample():
    """A network, an instance with a tree that branches, its exact radius and its evidence."""
    for seed in range(40):
        network = relu_toy(seed, (5, 12, 10, 3))
        instance = random_instance(network, seed, reach=0.4)
        radius = proven(network, instance, tolerance=1e-4)
        if radius.evidence is not None and len(unpack(radius.evidence)[1]["margin/split"]) >= 3:
            return network, instance, exact_radius(network, instance.x, instance.label), radius.evidence
    pytest.fail("no tree branches")


@pytest.mark.parametrize("seed", range(30))
def test_every_kind_of_network_in_every_norm(seed):
    kind, norm = KINDS[seed % len(KINDS)], NORMS[seed // 10 % 3]
    network = random_network(seed, kind, (0.0, 1.0) if seed // 5 % 2 else None)
    instance = random_instance(network, seed)
    target = (instance.label + 1) % network.classes if seed % 4 == 0 else None
    radius = proven(network, instance, norm, target, 1e-3 if seed % 2 else 1e-5)
    exact = exact_radius(network, instance.x, instance.label, norm, target)
    assert radius.evidence is not None, radius.note
    claim = check(radius.evidence, network)
    assert claim.radius == radius.lower <= exact * (1 + 1e-9) + 1e-9
    assert (claim.norm, claim.target, claim.label) == (norm.name, target, instance.label)
    beyond = rewritten(radius.evidence, {"radius": exact * 1.001 + 1e-6, "ball": exact * 1.001 + 1e-6})
    if np.isfinite(exact):
        with pytest.raises(InputError, match="evidence"):
            check(beyond, network)


def test_hidden_lemmas_are_part_of_it():
    """With plain trees switched off, signs of hidden neurons are proven first, and the checker proves them again."""
    lemmas = 0
    for seed in range(12):
        network = relu_toy(seed, (6, 10, 10, 10, 3))
        instance = random_instance(network, seed, reach=0.4)
        radius = proven(network, instance, tolerance=1e-3, tuning=SETTLING)
        if radius.misclassified:
            continue
        assert radius.evidence is not None, radius.note
        assert check(radius.evidence, network).radius <= exact_radius(network, instance.x, instance.label) + 1e-9
        arrays = unpack(radius.evidence)[1]
        lemmas += sum(array.size for name, array in arrays.items() if name.endswith("/neuron"))
    assert lemmas > 10


@pytest.mark.parametrize("end", ["Relu", "Clip", "Sigmoid"])
def test_what_ends_the_outputs(end):
    """A tie at the ends of a cut is broken too; a sigmoid on the outputs changes nothing."""
    builder = Builder(2, (4,)).dense(6).apply("Relu").dense(3).balance()
    model = (builder.clip(-0.5, 0.5) if end == "Clip" else builder.apply(end)).model()
    network = load_classifier(model, name=end)
    instance = random_instance(network, 2, reach=0.2)
    radius = proven(network, instance)
    assert radius.evidence is not None, radius.note
    assert check(radius.evidence, network).radius == radius.lower
    if end != "Sigmoid":
        exact = exact_radius(network, instance.x, instance.label)
        assert radius.lower <= exact + 1e-9
        with pytest.raises(InputError, match="evidence"):
            check(rewritten(radius.evidence, {"radius": 1.01 * exact, "ball": 1.01 * exact}), network)


def test_deployed_arithmetic():
    network = relu_toy(3, (4, 8, 8, 3))
    instance = random_instance(network, 3, reach=0.3)
    native = Native(effort="fast", arithmetic="float32", evidence=True)
    radius = native.measure(network, [instance], Classification(), LINF, Budget(seconds=20), tolerance=1e-3)[0]
    assert radius.evidence is not None
    assert check(radius.evidence, network).arithmetic == "float32"


def test_no_tampering_proves_more_than_is_so(sample):
    """Whatever numbers stand in a file: a claim that is wrong is refused, and one that is confirmed is right."""
    network, _, exact, data = sample
    rng = np.random.default_rng(0)
    wrong = rewritten(data, {"radius": exact * (1 + 1e-6) + 1e-6, "ball": exact * (1 + 1e-6) + 1e-6})
    confirmed = 0
    for _ in range(150):
        with pytest.raises(InputError, match="evidence"):
            check(shaken(wrong, rng), network)
        try:
            confirmed += check(shaken(data, rng), network).radius <= exact
        except InputError:
            continue
    assert confirmed  # some numbers do not matter, so the loop saw both


def test_random_damage_is_refused(sample):
    network, _, _, data = sample
    rng = np.random.default_rng(1)
    for round_ in range(200):
        broken = bytearray(data)
        if round_ % 3 == 0:
            broken = broken[: rng.integers(0, len(broken))]
        elif round_ % 3 == 1:
            broken[rng.integers(0, len(broken))] ^= 1 << rng.integers(0, 8)
        else:
            at = rng.integers(0, len(broken))
            broken[at:at] = rng.bytes(int(rng.integers(1, 9)))
        with pytest.raises(FormatError, match="evidence: expected"):
            check(bytes(broken), network)


def test_a_missing_branch_is_refused(sample):
    network, _, _, data = sample
    arrays = unpack(data)[1]
    with pytest.raises(FormatError, match=r"branches missing|belong to no node"):
        check(rewritten(data, arrays={"margin/kind": arrays["margin/kind"][:-1]}), network)
    inner = arrays["margin/kind"].copy()
    inner[inner >= 3] = 0  # the children of what was split belong to nobody now
    with pytest.raises(InputError, match="evidence"):
        check(rewritten(data, arrays={"margin/kind": inner}), network)


def test_it_speaks_of_one_network_and_one_input(sample):
    network, instance, _, data = sample
    with pytest.raises(InputError, match="fingerprint"):
        check(data, relu_toy(99, (5, 12, 10, 3)))
    other = Instance(np.roll(instance.x, 1), instance.label)
    with pytest.raises(InputError, match="input and label"):
        check(rewritten(data, arrays={"x": other.x}), network)
    with pytest.raises(InputError, match="evidence: expected"):  # another input, of which nothing is proven
        check(rewritten(data, {"instance": other.fingerprint, "radius": 1.0, "ball": 1.0}, {"x": other.x}), network)
    with pytest.raises(InputError, match="input and label"):
        check(rewritten(data, {"label": (instance.label + 1) % 3}), network)
    assert read_claim(data).instance == instance.fingerprint


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 3}, "version"),
        ({"norm": "l3"}, "norm"),
        ({"radius": 0.0}, "radius"),
        ({"radius": "0.1"}, "radius"),
        ({"target": "all"}, "target"),
        ({"ball": 1e-12}, "ball"),
        ({"domain": [0.0, "one"]}, "domain"),
        ({"extra": 1}, "fields"),
    ],
)
def test_claims_are_read_strictly(sample, changes, said):
    with pytest.raises(InputError, match=said):
        check(rewritten(sample[3], changes), sample[0])


def test_arrays_are_read_strictly(sample):
    network, _, _, data = sample
    arrays = unpack(data)[1]
    bad = {
        "margin/alpha": arrays["margin/alpha"].astype(np.float32),
        "margin/split": arrays["margin/split"] - 1000,
        "margin/beta/count": arrays["margin/beta/count"] + 1,
        "margin/cut/value": arrays["margin/cut/value"] * np.float32(np.nan),
        "0/undecided": arrays["0/undecided"][::-1],
        "margin/kind": arrays["margin/kind"][None],
    }
    for name, array in bad.items():
        with pytest.raises(FormatError, match="evidence: expected"):
            check(rewritten(data, arrays={name: array}), network)
    with pytest.raises(InputError, match="one sign"):
        check(rewritten(data, arrays={"0/undecided": arrays["0/undecided"][:0]}), network)


def test_the_last_digit_counts():
    """A linear network's radius is known exactly: the next float beyond it is refused."""
    toy = linear_toy(5, inputs=6)
    instance = random_instance(toy.classifier, 5)
    radius = proven(toy.classifier, instance, tolerance=1e-6)
    exact = toy.radius(instance.x, instance.label)
    assert radius.evidence is not None
    near = rewritten(radius.evidence, {"radius": exact * (1 - 1e-12), "ball": exact})
    assert check(near, toy.classifier).radius < exact
    with pytest.raises(InputError, match="open"):
        check(rewritten(radius.evidence, {"radius": exact * (1 + 1e-15), "ball": 2 * exact}), toy.classifier)


def test_torch_threads_and_gradients_do_not_matter(sample):
    with torch.enable_grad():
        assert check(sample[3], sample[0]).radius > 0
