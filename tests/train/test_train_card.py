"""The training card of a network: in its file, in stores and in reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.train.small import recipe

import radii
from radii.models.card import card_line, read_card, with_card
from radii.models.classifier import Classifier
from radii.report.content import gather
from radii.report.tables import provenance
from radii.store import open_store


@pytest.fixture(scope="module")
def trained() -> Classifier:
    return radii.train(recipe(epochs=1, balance=None, method={"name": "fgsm", "epsilon": 0.05})).classifier


def test_stores_and_reports_show_what_a_network_was_trained_with(trained: Classifier, tmp_path: Path) -> None:
    data = radii.load_dataset("mnist5k", split="test")[:2]
    store = tmp_path / "r.db"
    radii.distribution(trained, data, store=store, nodes=3)
    with open_store(store) as opened:
        (record,) = opened.classifiers()
        assert record.metadata["training"] == trained.card
    table = provenance(gather([store]))
    (line,) = [value for what, value in table.rows if what == "training"]
    assert line.startswith("small: fgsm at ε = 0.05; mnist5k (570 inputs, ")
    assert "1 epochs, seed 0; test at ε = 0.05: clean " in line
    assert "fgsm at ε = 0.05" in trained._repr_html_()


def test_a_card_that_says_little_or_nonsense_is_shown_as_far_as_it_goes(trained: Classifier) -> None:
    assert card_line({}) == "unknown method"
    assert card_line({"recipe": 3, "epochs": 2, "accuracies": {"test": None}}) == "unknown method; 2 epochs, seed ?"
    assert read_card(with_card(trained.onnx_bytes, {"seed": 1})) == {"seed": 1}
    assert read_card(with_card(trained.onnx_bytes, {}) + b"") == {}
