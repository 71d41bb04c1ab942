"""Reaches on the command line: statistics, guarantees, gates and reports of one small store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.command import refused_here

from radii.cli.main import run
from radii.problem import Proof, Reach, Witness
from radii.store import ReachRecord, open_store
from radii.testing.store_exam import unit
from radii.testing.toys import linear_toy

COUNT = 60


def reached(index: int, property: str, **more: Any) -> ReachRecord:
    """A reach of input `index`: (index + 1)/100 is witnessed, a little more (less, for a least value) proven."""
    value, least = (index + 1) / 100, bool(more.get("least"))
    ends = (value - 0.005, value) if least else (value, value + 0.005)
    x = np.linspace(0, value, 16, dtype=np.float32).reshape(1, 4, 4)
    witness = Witness(x=x, distance=0.05, prediction=1, outputs=np.array([0.5, value], dtype=np.float32))
    reach = Reach(0.05, *ends, witness=witness, proof=Proof("branch and bound"), prediction=index % 10, **more)
    return ReachRecord(unit=unit(index, property=property, epsilon=0.05), reach=reach)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("reaches") / "reaches.db")
    with open_store(path) as store:
        store.put_many([reached(i, "probability", unit="probability") for i in range(COUNT)])
        store.put_many([reached(i, "strong", least=True) for i in range(COUNT)])
    return path


def told(capfd: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capfd.readouterr()
    assert run([str(word) for word in words]) == code
    return capfd.readouterr().out


def test_stats(where: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = told(capfd, "stats", where)
    assert "Reach: largest probability change at ε = 0.05 (linf), toy test" in text
    facts = json.loads(told(capfd, "stats", where, "--json"))["reaches"]
    assert [(one["quantity"], one["n"], one["open"]) for one in facts] == [
        ("probability change", COUNT, COUNT),
        ("output of the label", COUNT, COUNT),
    ]
    assert facts[0]["mean_lower"] == pytest.approx(0.305), "witnessed"
    assert facts[0]["mean_upper"] == pytest.approx(0.31), "proven"
    assert "got only reaches" in refused_here(capfd, "stats", "fit", where)


def test_two_networks_are_compared(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.db"
    with open_store(path) as store:
        for name, shift in (("near", 0.0), ("far", 1.0)):
            for i in range(12):
                one = reached(i, "standard")
                work = replace(one.unit, classifier=unit(i, name).classifier)
                ends = {"lower": (one.reach.lower or 0.0) + shift, "upper": (one.reach.upper or 0.0) + shift}
                store.put(ReachRecord(unit=work, reach=replace(one.reach, **ends)))
    text = told(capfd, "stats", path, "--compare", "near,far")
    assert "near against far, largest output change at ε = 0.05 (linf)" in text
    assert "the reaches differ" in text
    (found,) = json.loads(told(capfd, "stats", path, "--compare", "near,far", "--json"))
    assert found["cliffs_delta"]["low"] == 1.0
    assert "expected two names A,B of far, near" in refused_here(capfd, "stats", path, "--compare", "near,nearer")


def test_guarantees(where: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = told(capfd, "guarantee", "read", where, "--gamma", "0.3", "--json")
    first, second = json.loads(text)["guarantees"]
    width = np.sqrt(np.log(2 / 0.05) / (2 * COUNT))
    assert first["low"] == pytest.approx(29 / COUNT - width)
    assert first["high"] == pytest.approx(30 / COUNT + width)
    assert second["low"] == pytest.approx(30 / COUNT - width), "at least γ: proven from below"
    assert second["high"] == pytest.approx(31 / COUNT + width)
    assert "of at most 0.3" in first["sentence"]
    assert "of at least 0.3" in second["sentence"]
    one = told(capfd, "guarantee", where, "--gamma", "0.3", "--eps", "0.05", "--one", "--method", "hoeffding")
    assert "at this γ alone" in one
    assert "got reaches at ε = 0.05" in refused_here(capfd, "guarantee", where, "--gamma", "1", "--eps", "0.1")
    assert "use --gamma or --mean" in refused_here(capfd, "guarantee", where, "--eps", "0.1")
    assert "without limits" in refused_here(capfd, "guarantee", where, "--mean")
    text = told(capfd, "guarantee", where, "--mean", "--bounds", "0,1", "--json")
    mean = json.loads(text)["guarantees"][0]
    assert mean["high"] == pytest.approx(0.31 + np.sqrt(np.log(2 / 0.05) / (2 * COUNT)))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--reach", "0.4@0.4", "--property", "probability"), 0, "pass"),
        (("--reach", "0.9@0.4", "--property", "probability"), 1, "are proven to stay ≤ 0.4"),
        (("--reach", "0.4@0.2", "--property", "strong"), 0, "are proven to stay ≥ 0.2"),
        (("--mean-reach", "0.5", "--property", "probability"), 0, "the mean is proven to be at most 0.31"),
        (("--mean-reach", "0.4", "--property", "probability"), 1, "at most 0.4 was asked"),
    ],
)
def test_gates(where: str, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str) -> None:
    assert said in told(capfd, "gate", where, *words, code=code)


def test_gates_that_mean_nothing_are_refused(where: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "expected --robust-accuracy, --reach or --mean-reach" in refused_here(capfd, "gate", where)
    assert "expected SHARE@GAMMA" in refused_here(capfd, "gate", where, "--reach", "0.9")
    assert "expected finished radii to judge" in refused_here(capfd, "gate", where, "--robust-accuracy", "0.9@0.1")
    assert "expected finished reaches" in refused_here(capfd, "gate", where, "--reach", "0.9@1", "--property", "rows")


def test_unfinished_reaches_count_against_the_gate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half.db"
    with open_store(path) as store:
        store.plan("study", [unit(i, property="probability", epsilon=0.05) for i in range(40)])
        store.put_many([reached(i, "probability", unit="probability") for i in range(20)])
    text = told(capfd, "gate", path, "--reach", "0.6@0.5", code=1)
    assert "50.0% of 40 inputs" in text
    assert "20 planned inputs are not finished" in text


def test_reports(where: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    told(capfd, "report", where, "-o", page)
    html = page.read_text()
    for said in ("Largest probability change at ε = 0.05", "Least output of the label", "The most-moved inputs"):
        assert said in html
    assert html.count("data:image/png") >= 4
    assert "input 59, class 9: probability change 0.6" in html
    assert "input 0, class 0: output of the label 0.01" in html
    assert "nothing to show" not in html
    told(capfd, "report", where, "-o", tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
    told(capfd, "report", where, "-o", text)
    assert "### Reach: largest probability change" in text.read_text()
    assert "### Reach by class: least output of the label" in text.read_text()


def test_a_sample_of_reaches_is_drawn_and_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`radii guarantee run --property` says what a store of the same reaches says, and keeps them in it."""
    toy = linear_toy(3)
    toy.classifier.save(tmp_path / "line.onnx")
    x = np.random.default_rng(0).uniform(0.3, 0.7, (30, toy.weight.shape[1])).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=x, y=toy.classifier.predict(x))
    words = ["guarantee", "run", str(tmp_path / "line.onnx"), "--data", str(tmp_path / "points.npz"), "--eps", "0.05"]
    words += ["--property", "probability", "--inputs", "20", "--seconds", "5"]
    kept = ["--store", str(tmp_path / "drawn.db")]
    found = json.loads(told(capfd, *words, "--gamma", "0.2", "--mean", "--json", *kept))
    assert (found["n"], len(found["indices"]), found["reach"]) == (
        20,
        20,
        "largest probability change at ε = 0.05 (linf)",
    )
    read = [
        json.loads(told(capfd, "guarantee", "read", tmp_path / "drawn.db", *more, "--json"))["guarantees"][0]
        for more in (("--gamma", "0.2"), ("--mean",))
    ]
    assert (found["low"], found["high"]) == (read[0]["low"], read[0]["high"])
    assert (found["mean_low"], found["mean_high"]) == (read[1]["low"], read[1]["high"])
    assert "the mean over unseen inputs" in found["sentence"]
    for more, line in (
        ((), "expected --gamma or --mean beside it"),
        (("--mean", "--sequential"), "without --sequential"),
        (("--mean", "--verifier", "bounds"), "expected one that measures reaches"),
    ):
        assert line in refused_here(capfd, *words, *more)
    assert "expected --property beside them" in refused_here(capfd, *words[:7], "--mean")
