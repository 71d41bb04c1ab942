"""Iterative magnitude pruning: how many weights are left, which, what they are rewound to, and resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import radii
from radii.errors import InputError
from radii.train.loop import Epoch
from radii.train.prune import kept, matrices

RECIPE: dict[str, Any] = {
    "name": "pruned",
    "architecture": "dense:16x1",
    "optimiser": {"learning_rate": 0.01},
    "epochs": 3,
    "batch": 20,
    "seed": 3,
}


def data(seed: int = 0) -> tuple[Any, Any]:
    """Two clouds of points."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 120)
    return (0.3 + 0.4 * y[:, None] + 0.1 * rng.standard_normal((120, 6))).clip(0, 1).astype(np.float32), y


def weights(run: Any) -> dict[str, Any]:
    import onnx

    model = onnx.load_from_string(run.classifier.onnx_bytes)
    return {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}


@pytest.mark.parametrize("scope", ["global", "layer"])
@pytest.mark.parametrize("iterations", [1, 3])
def test_share_of_zeros(scope: str, iterations: int) -> None:
    part = {"share": 0.75, "iterations": iterations, "scope": scope}
    run = radii.train(RECIPE, data=data(), prune=part)
    found = run.card["weights"]
    assert found == {"all": 6 * 16 + 16 * 2, "zero": 0.75 * (6 * 16 + 16 * 2)}
    assert [row.epoch for row in run.history] == list(range(1, 3 * (iterations + 1) + 1))


def test_the_largest_stay_and_pruned_ones_stay_pruned() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.arange(8.0).reshape(2, 4))
        model[2].weight.copy_(10 * torch.ones(2, 2))
    first = kept(model, 0.5, "global", {})
    assert first["0.weight"].flatten().tolist() == [False] * 6 + [True] * 2
    assert first["2.weight"].all()
    with torch.no_grad():
        model[0].weight.fill_(99.0)  # larger now, but pruned before
    again = kept(model, 4 / 12, "global", first)
    assert not (again["0.weight"] & ~first["0.weight"]).any()
    by_layer = kept(model, 0.25, "layer", {})
    assert by_layer["2.weight"].sum() >= 1
    assert set(matrices(model)) == {"0.weight", "2.weight"}


def test_the_others_go_back_to_their_first_values() -> None:
    """With a learning rate of nearly nothing, what is left is what it was before training."""
    still = {**RECIPE, "optimiser": {"name": "sgd", "learning_rate": 1e-12}}
    plain = weights(radii.train(still, data=data()))
    pruned = weights(radii.train(still, data=data(), prune={"share": 0.5}))
    for name, value in pruned.items():
        if value.ndim > 1:
            assert np.allclose(value[value != 0], plain[name][value != 0], atol=1e-6)
            assert (np.abs(plain[name][value == 0]) <= np.abs(plain[name]).max()).all()


def test_a_stopped_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    part = {"share": 0.9, "iterations": 2, "rewind": 1}
    whole = radii.train(RECIPE, data=data(), prune=part, output=tmp_path / "whole")

    class Stopped(Exception):
        pass

    for at in (2, 5):

        def stop(row: Epoch, count: int, at: int = at) -> None:
            assert count == 9
            if row.epoch == at:
                raise Stopped

        with pytest.raises(Stopped):
            radii.train(RECIPE, data=data(), prune=part, output=tmp_path / "cut", resume=at > 2, progress=stop)
    resumed = radii.train(RECIPE, data=data(), prune=part, output=tmp_path / "cut", resume=True)
    mine, theirs = weights(resumed), weights(whole)  # the card beside them says how long each took
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    with pytest.raises(InputError, match="without a run"):
        radii.train(RECIPE, data=data(), prune=part, output=tmp_path / "cut")


@pytest.mark.parametrize(
    ("part", "words"),
    [({"share": 1.5}, "prune share"), ({"share": 0.5, "rewind": 3}, "rewind"), ({"shares": 0.5}, "share")],
)
def test_bad_input(part: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        radii.train(RECIPE, data=data(), prune=part)
