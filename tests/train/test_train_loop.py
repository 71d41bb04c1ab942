"""The loop: schedules, statistics, checkpoints that survive a kill and a full disk, runs that diverge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.nets import net
from tests.train.small import RECIPE, recipe

import radii
from radii.errors import FormatError, InputError, TrainingError
from radii.models import load_classifier
from radii.train import checkpoint
from radii.train.evaluate import accuracies, estimate_statistics
from radii.train.export import folded
from radii.train.loop import CHECKPOINT, learning_rate, ramp
from radii.train.recipe import parse_recipe


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found = checkpoint.load(folder / CHECKPOINT)
    return {**found["model"], **{f"best {key}": value for key, value in found["best"].items()}}


def same(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def child(body: str, *arguments: Any) -> subprocess.Popen[str]:
    """A Python program that trains; it has RECIPE and its arguments."""
    text = "import sys, radii\nfrom tests.train.small import RECIPE\n" + textwrap.dedent(body)
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    run = radii.train(RECIPE, output=folder)
    assert [row.epoch for row in run.history] == [1, 2, 3, 4, 5, 6]
    return folder


def test_a_killed_run_resumes_to_the_same_weights(whole: Path, tmp_path: Path) -> None:
    body = """
    radii.train(RECIPE, output=sys.argv[1], progress=lambda row, _: print("epoch", row.epoch, flush=True))
    """
    process = child(body, tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        assert line.startswith("epoch"), line
        if line.split()[1] == "3":
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    done = len(checkpoint.load(tmp_path / CHECKPOINT)["history"])
    assert 3 <= done < 6
    with pytest.raises(InputError, match=r"got one with checkpoint.pt; resume it"):
        radii.train(RECIPE, output=tmp_path)
    told: list[int] = []
    run = radii.train(RECIPE, output=tmp_path, resume=True, progress=lambda row, _: told.append(row.epoch))
    assert told == list(range(done + 1, 7))
    assert len(run.history) == 6
    assert same(whole, tmp_path)
    x = np.zeros((1, 1, 28, 28), dtype=np.float32)
    assert np.array_equal(run.classifier(x), load_classifier(whole / "small.onnx")(x))


def test_a_full_disk_leaves_the_last_checkpoint(whole: Path, tmp_path: Path) -> None:
    """The limit on file sizes makes writes fail as a full disk does: in the middle of a file."""
    body = """
    import resource

    def fill(row, epochs):
        if row.epoch == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))

    try:
        radii.train(RECIPE, output=sys.argv[1], progress=fill)
    except radii.RadiiError as error:
        print(type(error).__name__, error)
    """
    process = child(body, tmp_path)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "TrainingError" in output
    assert "the last checkpoint is untouched, make room and resume" in output
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT]
    assert len(checkpoint.load(tmp_path / CHECKPOINT)["history"]) == 2
    radii.train(RECIPE, output=tmp_path, resume=True)
    assert same(whole, tmp_path)


def test_the_files_of_a_run(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} == {
        CHECKPOINT,
        "small.onnx",
        "card.json",
        "history.csv",
        "curve.png",
    }
    assert (whole / "curve.png").read_bytes().startswith(b"\x89PNG")
    lines = (whole / "history.csv").read_text().splitlines()
    assert lines[0].startswith("epoch,epsilon,learning_rate,loss")
    assert len(lines) == 7
    card = load_classifier(whole / "small.onnx").card
    assert card["seed"] == 0
    assert card["recipe"]["method"]["share"] == 0.4  # a default, said nevertheless
    assert card["data"]["source"] == "mnist5k"
    assert len(card["data"]["fingerprint"]) == 32
    assert card["versions"]["torch"] == torch.__version__
    test = card["accuracies"]["test"]
    assert 0 <= test["certified"] <= test["attacked"] <= test["clean"] <= 1
    data = radii.load_dataset("mnist5k", split="test")
    assert load_classifier(whole / "small.onnx").accuracy(data.x, data.y) == pytest.approx(test["clean"], abs=2e-3)


def test_a_network_without_a_card_has_an_empty_one() -> None:
    assert load_classifier("zoo:mnist5k-standard").card == {}


def test_a_seed_repeats_and_another_differs(tmp_path: Path) -> None:
    quick = recipe(epochs=1, method={"name": "pgd", "epsilon": 0.1, "steps": 2}, balance=None)
    x = radii.load_dataset("mnist5k", split="test").x[:5]
    first, again, other = (radii.train(quick, seed=seed).classifier(x) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_training_leaves_the_generators_and_threads_of_the_caller() -> None:
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    radii.train(recipe(epochs=1, threads=2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "expected a checkpoint of this recipe"),
        ({"epochs": 7}, "expected a checkpoint of this recipe"),
    ],
)
def test_a_checkpoint_of_another_recipe_is_refused(whole: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        radii.train(recipe(**changes), output=whole, resume=True)


def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(FormatError, match="expected a checkpoint, got a file that is none or is damaged"):
        radii.train(RECIPE, output=tmp_path, resume=True)
    with pytest.raises(InputError, match="resume: expected an output folder"):
        radii.train(RECIPE, resume=True)


def test_an_infinite_loss_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    method = {"name": "test-explodes", "epsilon": 0.0, "after": 25, "factor": 1e38}
    with pytest.raises(TrainingError, match=r"diverged: a loss of (inf|nan) in epoch 3.*checkpoint of epoch 2 is kept"):
        radii.train(recipe(method=method, balance=None, optimiser={"clip": None}), output=tmp_path)
    found = checkpoint.load(tmp_path / CHECKPOINT)
    assert len(found["history"]) == 2
    assert all(bool(torch.isfinite(value).all()) for value in found["model"].values())


def test_a_first_epoch_that_diverges_says_so() -> None:
    fast = {"name": "sgd", "learning_rate": 1e30}
    with pytest.raises(TrainingError, match="there is no checkpoint yet; lower the learning rate"):
        radii.train(recipe(optimiser=fast, balance=None))


def test_a_network_that_guesses_again_stops_the_run() -> None:
    method = {"name": "test-explodes", "epsilon": 0.0, "after": 36, "factor": 1000.0}
    fast = {"name": "sgd", "learning_rate": 0.05}
    changes = recipe(method=method, optimiser=fast, balance=None, epochs=12, architecture="dense:20x1")
    with pytest.raises(TrainingError, match=r"no better than guessing, after \d\d"):
        radii.train(changes)


def test_learning_rates_and_ramps() -> None:
    base = {"name": "n", "architecture": "dense:2x1", "data": "mnist5k", "epochs": 10}

    def rates(**schedule: Any) -> list[float]:
        one = parse_recipe({**base, "optimiser": {"learning_rate": 1.0}, "schedule": schedule})
        return [learning_rate(one, epoch) for epoch in range(10)]

    assert rates(at=[3, 5], factor=0.5) == [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25]
    assert rates(every=4, factor=0.1) == pytest.approx([1] * 4 + [0.1] * 4 + [0.01] * 2)
    assert rates(cosine=True)[::5] == pytest.approx([1.0, 0.5])
    assert rates() == [1.0] * 10
    assert [ramp((2, 6), epoch) for epoch in (0, 2, 3, 4, 6, 9)] == [0, 0, 0.25, 0.5, 1, 1]
    assert ramp((0, 0), 0.0) == 1.0


def test_batch_norm_is_estimated_on_all_inputs() -> None:
    module, shape = net("batch_norm")
    x = torch.rand((1000, *shape), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    estimate_statistics(module, x)
    with torch.no_grad():
        before = module[0](x)
    assert torch.allclose(module[1].running_mean, before.mean((0, 2, 3)))
    assert module[1].running_var == pytest.approx(before.var((0, 2, 3)), rel=1e-2)
    assert not module.training


@pytest.mark.parametrize("kind", ["batch_norm", "conv", "residual"])
def test_folding_batch_norm_keeps_the_function(kind: str) -> None:
    module, shape = net(kind)
    x = torch.rand((5, *shape), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain = folded(module)
    assert torch.allclose(plain(x), module(x), atol=1e-12)
    assert not any(isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)) for part in plain.modules())


def test_certified_inputs_are_attacked_in_vain() -> None:
    data = radii.load_dataset("mnist5k", split="test")
    run = radii.train("mnist5k-ibp", epochs=8)
    found = run.card["accuracies"]["test"]
    assert 0.3 < found["certified"] < found["attacked"] < found["clean"]
    dist = radii.measures(run.classifier, data[:10], epsilon=0.1, properties=["classification"], seconds=2, samples=1)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    x, y = torch.from_numpy(data.x[:10].copy()), torch.from_numpy(data.y[:10].copy())
    assert accuracies(module, x, y, 0.0, data.domain).certified is None
    assert 0 <= dist.rows[0].proven <= dist.rows[0].not_refuted <= 1
