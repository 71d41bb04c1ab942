"""The public functions: what they accept, what they refuse, and that a store saves the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import radii
from radii.data import Dataset
from radii.decide import Budget
from radii.engine.native import Native
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Query
from radii.store import open_store

SETTINGS: dict[str, Any] = {"seconds": 5, "tolerance": 0.01}


@pytest.fixture(scope="module")
def net() -> Classifier:
    return radii.load_classifier("zoo:mnist5k-standard")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return radii.load_dataset("mnist5k", split="test")[:4]


def test_zoo_networks_are_as_good_as_their_cards_say() -> None:
    from radii import zoo

    whole = radii.load_dataset("mnist5k", split="test")
    for name, card in zoo.cards().items():
        loaded = radii.load_classifier(zoo.PREFIX + name)
        right = int((loaded.predict(whole.x) == whole.y).sum())
        assert (right, len(whole)) == (card["test_correct"], card["test_inputs"])
        assert loaded.name == name
        assert loaded.alarms == ()


def test_radius_is_an_interval_with_a_replayed_witness(net: Classifier, data: Dataset) -> None:
    found = radii.radius(net, data.x[1].ravel(), int(data.y[1]), norm="linf", seed=0, **SETTINGS)
    assert found.lower is not None
    assert found.upper is not None
    assert found.witness is not None
    assert 0 < found.lower < found.upper
    moved = net.reference(found.witness.x[None])[0]
    assert moved[data.y[1]] <= np.delete(moved, data.y[1]).max()
    assert np.abs(found.witness.x.astype(np.float64) - data.x[1]).max() == pytest.approx(found.upper)


def test_a_target_is_at_least_as_far(net: Classifier, data: Dataset) -> None:
    free = radii.radius(net, data.x[1], 1, **SETTINGS)
    aimed = radii.radius(net, data.x[1], 1, target=5, **SETTINGS)
    assert free.lower is not None
    assert aimed.upper is not None
    assert aimed.upper > free.lower


def test_distribution_keeps_rows_and_names(net: Classifier, data: Dataset) -> None:
    told: list[tuple[int, int]] = []
    dist = radii.distribution(net, data, progress=lambda done, total, radius: told.append((done, total)), **SETTINGS)
    assert isinstance(dist, radii.Distribution)
    assert len(dist) == 4
    assert dist.name == net.name
    assert told[-1] == (4, 4)
    assert dist.to_frame()["ids"].tolist() == [f"mnist5k/test/{i}" for i in range(4)]
    assert dist.plot(confidence=0.9).get_xlabel() == "perturbation size ε"


@dataclass
class Counting:
    """The native verifier that counts what it is asked; a real one around a real one."""

    inner: Native = field(default_factory=Native)
    asked: int = 0
    identity: str = "counting"
    proves: bool = True
    refutes: bool = True

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        return self.inner.decide(classifier, queries, budget)

    def measure(self, classifier: Classifier, instances: Any, *others: Any, **options: Any) -> Any:
        self.asked += len(instances)
        return self.inner.measure(classifier, instances, *others, **options)


def test_finished_work_is_not_done_again(net: Classifier, data: Dataset, tmp_path: Path) -> None:
    counting = Counting()
    options: dict[str, Any] = {**SETTINGS, "store": tmp_path / "radii.db", "verifier": counting}
    radii.distribution(net, data[:2], **options)
    assert counting.asked == 2
    twice = radii.distribution(net, data, **options)
    assert counting.asked == 4
    again = radii.distribution(net, data, **options)
    assert counting.asked == 4
    assert np.array_equal(twice.lower, again.lower, equal_nan=True)


def test_a_store_given_open_stays_open(net: Classifier, data: Dataset) -> None:
    with open_store(":memory:") as store:
        radii.distribution(net, data[:1], store=store, **SETTINGS)
        assert store.info().rows["radii"] == 1


def test_arrays_will_do(net: Classifier, data: Dataset) -> None:
    assert len(radii.distribution(net, (data.x[:1], data.y[:1]), **SETTINGS)) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"secondss": 1}, "did you mean 'seconds'?"),
        ({"tolerance": 0}, "tolerance: expected a number above 0"),
        ({"target": 3, "property": radii.Standard(1.0)}, "target: expected no target beside"),
        ({"property": "strong"}, "property: expected eta for kind strong, got none"),
        ({"property": 3}, "property: expected a property such as"),
        ({"norm": "l7"}, "norm: expected one of"),
        ({"seconds": 0}, "budget seconds"),
        ({"verifier": "magic"}, "verifier: expected one of"),
        ({"verifier": "bounds"}, "give the ε to ask about"),
    ],
)
def test_bad_options_are_refused(net: Classifier, data: Dataset, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        radii.radius(net, data.x[0], 0, **options)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((1, 8, 8), np.float32), 0),
        (np.full((1, 28, 28), 200.0, np.float32), 0),
        (np.full((1, 28, 28), np.nan, np.float32), 0),
        (np.zeros((1, 28, 28), np.float32), 10),
    ],
)
def test_bad_inputs_are_refused(net: Classifier, x: Any, y: int) -> None:
    with pytest.raises(InputError, match="expected"):
        radii.radius(net, x, y)
