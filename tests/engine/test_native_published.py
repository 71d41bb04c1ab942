"""Native against the published radii of the JAIR networks: overlap where they hold, witnesses where they do not."""

from __future__ import annotations

import csv
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.shared import DATA, needs_data

from radii.data import load_dataset
from radii.decide import Budget, replay
from radii.engine.native import Native
from radii.models import Classifier, load_classifier
from radii.problem import LINF, Classification, Instance, Query, Status

pytestmark = needs_data

OK = [("mnist-net_256x2", 3), ("mnist-net", 2), ("mnist_relu_3_50", 2), ("mnist_nn", 2)]
BUDGET = Budget(seconds=6)


@lru_cache
def rows(network: str, status: str) -> list[dict[str, str]]:
    with open(DATA / "jair" / "results.csv") as file:
        return [r for r in csv.DictReader(file) if r["network"] == network and r["status"] == status]


@lru_cache
def network(name: str) -> Classifier:
    return load_classifier(DATA / "jair" / "networks" / f"{name}.onnx")


@lru_cache
def training() -> Any:
    return load_dataset("mnist", split="train", root=DATA / "mnist")


def instance(name: str, row: dict[str, str]) -> Instance:
    found = training()[int(row["dataset_index"])]
    assert found.label == int(row["label"])
    return Instance(found.x.reshape(network(name).input_shape), found.label, found.index)


@pytest.mark.parametrize(("name", "count"), OK)
def test_intervals_overlap_the_published_ones(name, count):
    cheap = sorted(rows(name, "ok"), key=lambda r: float(r["seconds"]))[:count]
    radii = Native(effort="fast").measure(
        network(name), [instance(name, r) for r in cheap], Classification(), LINF, BUDGET, tolerance=0.002
    )
    for row, radius in zip(cheap, radii, strict=True):
        low, high = float(row["lower"]), float(row["upper"])
        about = f"{name} image {row['dataset_index']}: published [{low}, {high}], got [{radius.lower}, {radius.upper}]"
        assert radius.status is not Status.MISCLASSIFIED, about
        assert radius.lower is None or radius.lower < high, about
        assert radius.upper is not None, about
        assert radius.upper >= low - 1e-6, about


@pytest.mark.parametrize("name", ["mnist-net_256x4", "mnist_relu_9_100", "mnist_relu_6_200"])
def test_refuted_rows_get_a_witness_below_the_published_lower_end(name):
    wrong = rows(name, "lower_refuted")
    assert wrong, f"no refuted rows for {name}"
    # The plainest ones: where the modest attack of the table went farthest below.
    plain = sorted(wrong, key=lambda r: float(r["attack_eps"]) - float(r["lower"]))[:2]
    instances = [instance(name, r) for r in plain]
    radii = Native().measure(network(name), instances, Classification(), LINF, Budget(seconds=1), tolerance=0.002)
    for row, one, radius in zip(plain, instances, radii, strict=True):
        assert radius.upper is not None
        assert radius.upper < float(row["lower"]), row
        assert replay(network(name), Query(one, radius.upper), radius.witness.x) is not None
        outputs = network(name).reference(radius.witness.x[None])[0]
        assert np.delete(outputs, one.label).max() >= outputs[one.label]
