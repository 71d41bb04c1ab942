"""`radii ensemble` and bad input to it and to `radii.ensemble`: one line, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.ensembles.toys import linear

import radii
from radii.cli.main import run
from radii.errors import InputError
from radii.store import open_store


def test_json_has_the_game_at_every_size(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ensemble", str(study), "--runner", "serial", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in rows] == [[0.0, 0.0], [0.0, 0.0], [0.5, 0.5]]
    last = rows[-1]
    assert [one["probability"] for one in last["attacks"]] == pytest.approx([0.5, 0.5])
    assert sorted(one["fooled"] for one in last["attacks"]) == [[["left"]], [["right"]]]
    assert last["mix"] == pytest.approx([0.5, 0.5])
    assert last["robust"] == {"0.5": False}


def test_what_is_stored_is_not_searched_again(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ensemble", str(study), "--runner", "serial"]
    assert run(command) == 0
    with open_store(study.with_suffix(".db")) as store:
        before = store.state()
    first = capsys.readouterr().out
    assert run(command) == 0
    assert capsys.readouterr().out == first
    with open_store(study.with_suffix(".db")) as store:
        assert store.state() == before
    assert "alpha 0.5: robust up to 1.49" in first


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alpha: 0", "alpha: expected values above 0"),
        ("alpha: 1.5", "alpha"),
        ("epsilon: -1", "epsilon"),
        ("method: guess", "method"),
        ("norms: l1", "norms"),
        ("data: {source: points.npz, first: 0}", "first: expected"),
        ("classifiers: [{path: left.onnx, domain: null}]", "expected 2 to 16 classifiers, got 1"),
        ("classifiers: [left.onnx, {path: left.onnx, name: again}]", "the same one twice"),
        ("classifiers: [left.onnx, {path: right.onnx, domain: null}]", "same domain"),
        ("classifiers: [left.onnx, {combine: vote, members: [left.onnx, right.onnx]}]", "got a combination"),
        ("classifiers: [left.onnx, {combine: mean, members: [absent.onnx, right.onnx]}]", "got a combination"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    study: Path, line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = line.partition(":")[0]
    kept = [one for one in study.read_text().splitlines() if not one.startswith(key + ":")]
    study.write_text("\n".join([*kept, line]) + "\n")
    assert run(["ensemble", str(study), "--runner", "serial"]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert "\n" not in told
    assert not study.with_suffix(".db").exists()


def test_members_must_fit_together() -> None:
    a, b = linear([[1, 0], [0, 1]], [0, 0], "a"), linear([[1, 0], [0, 2]], [0, 0], "b")
    x = (np.zeros((1, 2), np.float32), [0])
    with pytest.raises(InputError, match="same classes"):
        radii.ensemble([a, linear([[1, 0], [0, 1], [1, 1]], [0, 0, 0], "c")], x)
    with pytest.raises(InputError, match="same inputs"):
        radii.ensemble([a, linear([[1, 0, 0], [0, 1, 0]], [0, 0], "d")], x)
    with pytest.raises(InputError, match="the same one twice"):
        radii.ensemble([a, a], x)
    with pytest.raises(InputError, match="single network"):
        radii.ensemble([a], x)
    with pytest.raises(InputError):
        radii.ensemble([a, b], (np.zeros((0, 2), np.float32), []))
    with pytest.raises(InputError, match="alpha"):
        radii.ensemble([a, b], x, epsilons=0).radius(0)


def test_a_vote_is_no_member() -> None:
    """It has no network of its own; the mean of logits is one, and may be a member."""
    a, b = linear([[1, 0], [0, 1]], [0, 0], "a"), linear([[1, 0], [0, 2]], [0, 0], "b")
    x = (np.array([[1, 0]], np.float32), [0])
    vote = radii.combine([a, b], how="vote")
    for ask in (lambda: radii.ensemble([a, vote], x), lambda: radii.combine([a, vote], how="vote")):
        with pytest.raises(InputError, match=r"expected networks as members, got a combination \(vote\(a,b\)\)"):
            ask()
    assert radii.ensemble([a, radii.combine([a, b])], x, epsilons=0).value(0) == (0.0, 0.0)


def test_preprocessing_may_differ(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ε counts inputs before it: the same file, scaled in one member, errs to the left of −1.5 and of −2.5."""
    scaled = "{path: left.onnx, domain: null, name: scaled, preprocessing: {mean: 0.5, std: 2}}"
    kept = study.read_text().replace("{path: right.onnx, domain: null}", scaled).replace("[0, 1, 2]", "[1, 2, 3]")
    study.write_text(kept)
    assert run(["ensemble", str(study), "--runner", "serial", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in rows] == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    assert rows[1]["best_single"] == {"classifier": "scaled", "loss": 0.0}
    assert rows[1]["mix"] == [0.0, 1.0]
    assert run(["check", str(study.with_suffix(".db"))]) == 0


def test_a_member_that_is_wrong_has_loss_one() -> None:
    """It is fooled by the point itself, at every size; 0 included."""
    right, wrong = linear([[1, 0], [0, 1]], [1, 0], "right"), linear([[1, 0], [0, 1]], [0, 1], "wrong")
    game = radii.ensemble([right, wrong], (np.zeros((1, 2), np.float32), [0]), norm="l2", epsilons=[0, 0.1], seconds=5)
    assert game.value(0) == (0.0, 0.0)
    assert game.attack(0).fooled.tolist() == [[[False, True]]]
    assert game.mix(0.1).weights == (1.0, 0.0)
