"""Bad recipes, data and networks: one line each, before anything is trained; and the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from tests.cli.command import refused_here
from tests.train.small import RECIPE, recipe

import radii
from radii.cli.main import run
from radii.errors import DataError, InputError, ModelError
from radii.train.architectures import build
from radii.train.from_torch import hindrances
from radii.train.recipe import read_recipe, shipped
from radii.train.task import split


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, "got 'epoch'; did you mean 'epochs'"),
        ({"data": {"source": "mnist5k", "frist": 3}}, "data: expected keys among .* did you mean 'first'"),
        ({"optimiser": {"lr": 3}}, "optimiser: expected keys among name, learning_rate"),
        ({"optimiser": "adamw"}, "optimiser.name: expected 'adam' or 'sgd', got 'adamw'"),
        ({"schedule": {"at": [1], "cosine": True}}, "schedule: expected one of at, every and cosine"),
        ({"schedule": {"ramp": [3, 1]}}, "schedule: expected a ramp from an epoch to a later one"),
        ({"data": "mnist6k"}, "did you mean 'mnist5k'"),
        ({"data": {"source": "mnist", "root": "/nowhere"}}, "mnist: expected its files in /nowhere"),
        ({"method": {"name": "pgd", "epsilon": 1.2}}, r"epsilon: expected at most the width of the domain \[0, 1\]"),
        ({"method": {"name": "pgd", "epsilon": "0.3", "step": 0}}, "step: expected a number above 0"),
        ({"evaluation": {"epsilon": 2}}, "evaluation epsilon: expected at most the width"),
        ({"architecture": "mnist_nm"}, "did you mean 'mnist_nn'"),
        ({"architecture": "convBig"}, "convBig: expected data of 3x32x32 in 10 classes, got 1x28x28 in 10"),
        ({"architecture": "dense:0x2"}, "expected a width up to"),
        ({"architecture": {"name": "resnet_4b", "batch_norm": True}}, "resnet_4b: expected data of 3x32x32"),
        ({"balance": {"clamp": [2, 3]}}, "balance: expected a clamp around 1"),
        ({"balance": {"name": "fixed", "weights": [1, 2]}}, "balance: expected 10 weights, one per class, got 2"),
        ({"balance": {"name": "fixed"}}, "balance: expected weights"),
        ({"epochs": 0}, "epochs: expected greater than or equal to 1, got 0"),
        ({"name": "a/b"}, "name: expected"),
        ({"data": {"source": "mnist5k", "first": 2}}, "expected at least 3 inputs"),
        (
            {"data": {"source": "mnist5k", "validation": 0.9}},
            "data validation: expected a number above 0 and at most 0.5",
        ),
    ],
)
def test_bad_recipes_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        radii.train(recipe(**changes))
    assert "\n" not in str(caught.value)


def test_a_recipe_without_its_parts_is_refused() -> None:
    with pytest.raises(InputError, match="architecture: expected a value, got nothing"):
        radii.train(data="mnist5k")
    with pytest.raises(InputError, match="recipe: expected a file, a name, a mapping or keywords, got int"):
        radii.train(3)
    with pytest.raises(InputError, match="did you mean 'mnist5k-sabr'"):
        radii.train("mnist5k-sbar")


def test_labels_out_of_range_are_refused() -> None:
    x, y = np.random.default_rng(0).random((40, 1, 28, 28)), np.arange(40) % 10
    with pytest.raises(ModelError, match="mnist_nn: expected data of 1x28x28 in 10 classes, got 1x28x28 in 13"):
        radii.train(recipe(architecture="mnist_nn"), data=(x, y + 3))
    with pytest.raises(DataError, match="expected labels from 0 to 8, got -1"):
        radii.train(RECIPE, data=(x, y - 1))
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 7))
    with pytest.raises(DataError, match="expected 10 outputs, one per class, got"):
        radii.train(RECIPE, data=(x, y), model=module)
    with pytest.raises(DataError, match="expected test inputs like the training inputs"):
        radii.train(RECIPE, data=(x, y), test=(x[:, :, :4], y))


class Opaque(torch.nn.Module):
    """A module that is no chain of layers: attacks can train it, bounds cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(784, 20), torch.nn.Linear(20, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x.flatten(1)))
        return self.second(hidden)


def test_a_network_that_a_method_cannot_bound_is_refused_before_training() -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 20), torch.nn.GELU(), torch.nn.Linear(20, 10))
    with pytest.raises(ModelError, match=r"ibp: expected layers that it can bound .* got the module \(Opaque\)"):
        radii.train(recipe(method={"name": "ibp", "epsilon": 0.1}), model=Opaque())
    with pytest.raises(ModelError, match="unsupported operators: Erf"):
        radii.train(recipe(method={"name": "fgsm", "epsilon": 0.1}), model=module)
    run = radii.train(recipe(method={"name": "fgsm", "epsilon": 0.1}, epochs=1, balance=None), model=Opaque())
    assert run.history[0].certified is None
    assert run.history[0].attacked is not None


def test_own_arrays_and_an_own_module_are_trained() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((300, 2), dtype=np.float32)
    y = (x[:, 0] > x[:, 1]).astype(int)
    torch.manual_seed(0)  # the module's first weights are the caller's
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    fast = {"learning_rate": 0.02}
    run = radii.train(
        data=(x, y), test=(x, y), model=module, method={"name": "pgd", "epsilon": 0.02}, epochs=15, optimiser=fast
    )
    assert run.classifier.accuracy(x, y) > 0.9
    assert list(run.to_frame().columns)[:2] == ["epoch", "epsilon"]


def test_held_out_inputs_are_the_same_for_every_seed() -> None:
    rest, held = split(1000, 0.1)
    assert sorted([*rest.tolist(), *held.tolist()]) == list(range(1000))
    assert len(held) == 100
    assert torch.equal(held, split(1000, 0.1)[1])


@pytest.mark.parametrize("name", ["dense:30x3", "cnn7:2", "convSmall", "mnist_relu_3_50", "fashion_clamp_30"])
def test_architectures_of_recipes(name: str) -> None:
    module = build(name, (1, 28, 28), 10, batch_norm=True, initialisation="ibp", seed=3)
    again = build(name, (1, 28, 28), 10, batch_norm=True, initialisation="ibp", seed=3)
    x = torch.rand(4, 1, 28, 28)
    assert module(x).shape == (4, 10)
    assert torch.equal(module(x), again(x))
    assert hindrances(module, backward=True) == ()
    layers = [part for part in module.modules() if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d))]
    norms = [part for part in module.modules() if isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d))]
    assert len(norms) == len(layers) - 1
    wide = layers[-2].weight
    assert float(wide.detach().std()) == pytest.approx((2 * np.pi) ** 0.5 / wide[0].numel(), rel=0.2)


def test_every_shipped_recipe_can_be_read() -> None:
    assert len(shipped()) >= 3
    for name in shipped():
        one = read_recipe(name)
        assert one.name == name
        assert one.about


def test_the_command_trains_lists_and_resumes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(recipe(epochs=2, output=str(tmp_path / "run"))))
    assert run(["train", str(file), "--certify", "2"]) == 0
    out, err = capfd.readouterr()
    assert "epoch 2 of 2: loss" in err
    assert "engine: " in out
    assert "Next: radii radius" in out
    line = refused_here(capfd, "train", file)
    assert "resume it (--resume)" in line
    assert run(["train", str(file), "--resume", "--json"]) == 0
    card = json.loads(capfd.readouterr().out)
    assert card["epochs"] == 2
    assert run(["train", "--list", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert {"mnist5k-ibp"} <= {row["name"] for row in found["recipes"]}
    assert run(["train", "--list"]) == 0
    assert "crown_ibp" in capfd.readouterr().out
    assert "expected a YAML file or a name" in refused_here(capfd, "train")
    file.write_text("architecture: dense:20x1\ndata: mnist5k\nmethdo: pgd\n")
    assert "did you mean 'method'" in refused_here(capfd, "train", file)


def test_a_network_that_never_learnt_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "still.yaml"
    slow = {"name": "sgd", "learning_rate": 1e-9}
    file.write_text(yaml.safe_dump(recipe(optimiser=slow, epochs=1, output=str(tmp_path / "run"))))
    assert run(["train", str(file)]) == 0
    assert "no better than guessing" in capfd.readouterr().err


def test_an_interrupted_command_says_how_to_go_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "radii", "train", "mnist5k-ibp", "--epochs", "200", "-o", str(tmp_path / "run")]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as process:
        assert process.stderr is not None
        assert "epoch 1 of 200" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 3, rest
    assert f"radii: partial: stopped; go on with radii train mnist5k-ibp --output {tmp_path / 'run'} --resume" in rest
