"""Combined predictors: the mean of logits and of probabilities, and votes whose radii are proven."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.ensembles.toys import linear

import radii
from radii.cli.main import run
from radii.ensembles.softmax_cells import Cell
from radii.ensembles.vote import Vote, Voted, pairs
from radii.errors import InputError
from radii.models import Classifier
from radii.problem import Clause, Norm
from radii.testing import relu_toy


def trio(classes: int = 3, count: int = 3) -> list[Classifier]:
    """Tiny ReLU networks of two inputs."""
    return [relu_toy(40 + k, (2, 5, classes)) for k in range(count)]


def grid(around: np.ndarray, size: float) -> np.ndarray:
    """Inputs around a point, in the domain."""
    line = np.linspace(-size, size, 161)
    moved = around + np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    return moved[((moved >= 0) & (moved <= 1)).all(1)].astype(np.float32)


def test_mean_is_a_network_like_any_other(tmp_path: Path) -> None:
    nets = trio()
    mean = radii.combine(nets, weights=[2, 1, 1])
    x = np.random.default_rng(0).uniform(size=(20, 2)).astype(np.float32)
    by_hand = 0.5 * nets[0](x) + 0.25 * nets[1](x) + 0.25 * nets[2](x)
    assert np.allclose(mean(x), by_hand, atol=1e-5)
    again = radii.load_classifier(mean.save(tmp_path / "mean.onnx"))
    assert np.array_equal(again.reference(x), mean.reference(x))
    assert radii.combine(nets, weights=[2, 1, 1]).fingerprint == mean.fingerprint
    assert radii.radius(mean, x[0], int(mean.predict(x[0])), seconds=5).status == "closed"


def test_mean_of_probabilities_of_two_classes() -> None:
    nets = trio(classes=2, count=2)
    mean = radii.combine(nets, how="probability")
    x = np.random.default_rng(1).uniform(size=(20, 2)).astype(np.float32)
    assert np.allclose(mean(x), (nets[0].probabilities(x) + nets[1].probabilities(x)) / 2, atol=1e-5)
    label = int(mean.predict(x[0]))
    found = radii.radius(mean, x[0], label, seconds=3)
    near = grid(x[0], 0.5)
    broken = near[mean.predict(near) != label]
    if len(broken) and found.lower is not None:
        assert found.lower <= np.abs(broken - x[0]).max(1).min() + 1e-6


def test_conditions_on_logits_are_met_wherever_a_mean_of_probabilities_is_broken() -> None:
    """Random boxes of logit differences and random logits in them; cells that are cut cover what they were."""
    rng, members, classes, label = np.random.default_rng(5), 2, 4, 1
    met = 0
    for _ in range(40):
        center = rng.normal(size=(members, classes)) * 3
        reach = rng.uniform(0.1, 3, size=(members, classes))
        apart = center[:, None, :] - center[:, :, None] - reach[:, None, :] - reach[:, :, None]
        low = np.where(np.eye(classes, dtype=bool), 0.0, apart)
        shares = rng.dirichlet(np.ones(members))
        logits = center + rng.uniform(-1, 1, size=(400, members, classes)) * reach
        powers = np.exp(logits)
        mean = np.einsum("m,bmk->bk", shares, powers / powers.sum(-1, keepdims=True))
        for target in {0, 1, 2, 3} - {label}:
            broken = logits[mean[:, target] >= mean[:, label]]
            cells = [Cell(target, low, logits[0])]
            for _ in range(3):
                clauses = [c.clause(shares, label, 30.0) for c in cells if c.possible(shares, label)]
                assert all(any(_meets(clause, one) for clause in clauses) for one in broken)
                cells = [half for c in cells for half in c.halves(shares, label, logits[rng.integers(400)])]
            met += len(broken)
    assert met > 1000


def _meets(clause: Clause, logits: np.ndarray) -> bool:
    return bool((clause.coefficients @ logits.ravel() <= clause.bounds).all())


@pytest.mark.parametrize(("norm", "classes"), [("linf", 3), ("l2", 4), ("l1", 3)])
def test_radii_of_mean_probabilities_hold_on_a_grid(norm: str, classes: int) -> None:
    nets = trio(classes)
    mean = radii.combine(nets, how="probability", weights=[2, 1, 1])
    x = np.random.default_rng(6).uniform(size=(3, 2)).astype(np.float32)
    by_hand = 0.5 * nets[0].probabilities(x) + 0.25 * nets[1].probabilities(x) + 0.25 * nets[2].probabilities(x)
    assert np.allclose(mean(x), by_hand, atol=1e-6)
    assert np.allclose(mean.reference(x), by_hand, atol=1e-6)
    gaps = []
    for point in x:
        label = int(mean.predict(point))
        found = radii.radius(mean, point, label, norm=norm, seconds=4, limit=1.0)
        near = grid(point, 1.0)
        lost = mean(near)
        broken = near[np.delete(lost, label, 1).max(1) >= lost[:, label]]
        nearest = min((Norm.of(norm).distance(one, point) for one in broken), default=np.inf)
        assert (found.lower or 0.0) <= nearest + 1e-6
        assert found.upper is None or found.upper <= nearest + 0.03
        gaps.append(min(found.upper or 1.0, 1.0) - (found.lower or 0.0))
    assert np.median(gaps) < 0.05


def test_combinations_keep_double_precision_and_different_preprocessing() -> None:
    """A mean of float64 networks computes in float64, each member behind its own preprocessing."""
    layers = [torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)) for _ in range(2)]
    nets = [
        radii.load_classifier(layer.double(), input_shape=(2,), preprocessing=(k, k + 1))
        for k, layer in enumerate(layers)
    ]
    x = np.random.default_rng(2).uniform(size=(5, 2))
    mean = radii.combine(nets)
    assert mean.dtype == np.float64
    assert np.allclose(mean.reference(x), (nets[0].reference(x) + nets[1].reference(x)) / 2, rtol=0, atol=1e-13)


def test_the_smallest_ways_to_lose_a_vote() -> None:
    """Of three equal votes any two that are fooled lose it; of five, two that agree and one more."""
    assert pairs([1, 1, 1]) == [((), (0, 1)), ((), (0, 2)), ((), (1, 2))]
    five = pairs([1] * 5)
    assert {(len(tops), len(fooled)) for tops, fooled in five} == {(2, 1), (0, 4)}
    assert pairs([3, 1, 1]) == [((), (0,))]


@pytest.mark.parametrize("weights", [[1, 1, 1], [2, 1, 1], [1, 1, 1, 1, 1]])
def test_ways_are_what_votes_say(weights: list[float]) -> None:
    """At random outputs the clauses hold exactly where another class has at least as many votes."""
    rng, classes = np.random.default_rng(2), 3
    vote = Vote.of(trio(classes, len(weights)), weights, "vote")
    outputs = rng.normal(size=(300, len(weights) * classes))
    spec = Voted(vote.weights).violations(outputs.shape[1], 0)
    votes = vote.votes(outputs)
    assert [spec.violated(one) for one in outputs] == (votes[:, 1:].max(1) >= votes[:, 0]).tolist()


@pytest.mark.parametrize(("norm", "count"), [("linf", 3), ("l2", 3), ("l1", 5)])
def test_radii_of_votes_hold_on_a_grid(norm: str, count: int) -> None:
    vote = radii.combine(trio(3, count), how="vote")
    x = np.random.default_rng(3).uniform(size=(4, 2)).astype(np.float32)
    closed = 0
    for point in x:
        votes = vote(point)
        label = int(votes.argmax())
        found = radii.radius(vote, point, label, norm=norm, seconds=5, limit=1.0)
        if found.misclassified:
            assert (np.delete(votes, label) >= votes[label]).any()
            continue
        near = grid(point, 1.0)
        lost = vote(near)
        broken = near[np.delete(lost, label, 1).max(1) >= lost[:, label]]
        nearest = min((Norm.of(norm).distance(one, point) for one in broken), default=np.inf)
        assert (found.lower or 0.0) <= nearest + 1e-6
        assert found.upper is None or found.upper <= nearest + 0.03
        closed += found.status in ("closed", "robust")
    assert closed


def test_votes_in_studies_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k, net in enumerate(trio()):
        net.save(tmp_path / f"net{k}.onnx")
    x = np.random.default_rng(4).uniform(size=(3, 2)).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=x, y=radii.combine(trio(), how="vote").predict(x))
    (tmp_path / "study.yaml").write_text(
        "classifiers:\n  - {combine: vote, members: [net0.onnx, net1.onnx, net2.onnx], name: majority}\n"
        "  - {combine: mean, members: [net0.onnx, net1.onnx], weights: [1, 2], name: mean}\ndata: points.npz\n"
    )
    assert run(["run", str(tmp_path / "study.yaml"), "--runner", "serial"]) == 0
    capsys.readouterr()
    assert run(["check", str(tmp_path / "study.db"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["classifier"] for row in found["rows"]} == {"majority", "mean"}
    assert found["records"] == found["predicted"] == 6


def test_a_file_of_a_combination_is_a_model_of_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k, net in enumerate(trio()):
        net.save(tmp_path / f"net{k}.onnx")
    x = np.random.default_rng(4).uniform(size=(2, 2)).astype(np.float32)
    vote, where = radii.combine(trio(), how="vote", weights=[1, 1, 2]), str(tmp_path / "points.npz")
    np.savez(where, x=x, y=vote.predict(x))
    file = tmp_path / "majority.yaml"
    file.write_text("combine: vote\nmembers: [net0.onnx, net1.onnx, net2.onnx]\nweights: [1, 1, 2]\n")
    assert run(["radius", str(file), "--data", where, "--index", "0:2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = [radii.radius(vote, one, int(vote.predict(one)), seconds=10) for one in x]
    assert [row["classifier"] for row in rows] == ["majority"] * 2
    assert [row["lower"] for row in rows] == pytest.approx([one.lower for one in found], abs=0.01)
    for text, said in (
        ("path: net0.onnx\n", "expected combine and members, got a path"),
        ("combine: vote\n", "expected members"),
        ("combine: vote\nmembers: [net0.onnx, net0.onnx]\n", "the same one twice"),
    ):
        file.write_text(text)
        assert run(["radius", str(file), "--data", where]) == 2
        told = capsys.readouterr().err.strip()
        assert said in told
        assert "\n" not in told


def test_bad_combinations_are_refused() -> None:
    nets = trio()
    with pytest.raises(InputError, match="one of mean, probability, vote"):
        radii.combine(nets, how="median")
    with pytest.raises(InputError, match="one weight for each of 3"):
        radii.combine(nets, weights=[1, 2])
    with pytest.raises(InputError, match="weights"):
        radii.combine(nets, weights=[1, 0, 1])
    with pytest.raises(InputError, match="expected a network to write, got a mean of probabilities"):
        radii.combine(nets, how="probability").save("mean.onnx")
    with pytest.raises(InputError, match="at most 7"):
        radii.combine([linear(np.eye(2) * (k + 1), [0, 0], f"n{k}") for k in range(8)], how="vote")
    for one, other in itertools.pairwise([nets[0], relu_toy(1, (3, 4, 3))]):
        with pytest.raises(InputError, match="same inputs"):
            radii.combine([one, other])
    with pytest.raises(InputError, match="it takes classification"):
        radii.radius(radii.combine(nets, how="vote"), np.zeros(2), 0, property="standard:1")
