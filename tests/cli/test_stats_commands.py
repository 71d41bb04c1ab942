"""`radii stats` and `radii guarantee` as a user types them: every view, every refusal, and a sample that is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import refused_here

from radii.cli.main import run
from shared import DATA, needs_data

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from filled import Plan, fill

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks on the same inputs of three classes, untargeted and towards every class."""
    where = tmp_path_factory.mktemp("cli") / "s.db"
    fill(where, Plan(networks=("alpha", "beta"), inputs=18, classes=4, targets=(None, 0, 1, 2, 3)))
    return where


@pytest.fixture(scope="module")
def two_splits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("cli") / "splits.db"
    fill(where, Plan(networks=("alpha",), inputs=12, classes=3, splits=("train", "test")))
    return where


def told(capfd: Capture, *words: object) -> str:
    """What a command line prints."""
    capfd.readouterr()
    assert run([str(word) for word in words]) == 0
    return capfd.readouterr().out


def tables(capfd: Capture, *words: object) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(told(capfd, *words, "--json"))["tables"]
    return found


def test_compare_ranks_tests_and_correlates(store: Path, capfd: Capture) -> None:
    found = tables(capfd, "stats", "compare", store)
    ranks = found["Ranking by the area under the robust-accuracy curve"]
    assert {row["network"] for row in ranks} == {"alpha", "beta"}
    assert all(1 <= row["best rank"] <= row["worst rank"] <= 2 for row in ranks)
    (test,) = found["Tests of every pair"]
    assert test["p at least"] <= test["p"] <= test["p at most"]
    (pair,) = found["Spearman's correlation of radii"]
    assert pair["low"] <= pair["correlation"] <= pair["high"]
    assert len(found["Inputs that networks rank least alike"]) == 5
    assert "Ranking" in told(capfd, "stats", "compare", store)


def test_networks_without_shared_inputs_are_compared_as_independent(two_splits: Path, capfd: Capture) -> None:
    found = tables(capfd, "stats", "compare", two_splits)
    assert len(found["Tests of every pair"]) == 1
    assert found["Spearman's correlation of radii"] == []


def test_classes_show_recall_fairness_targets_and_risk(store: Path, tmp_path: Path, capfd: Capture) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("0,1,2,9\n1,0,1,1\n1,1,0,1\n2,2,2,0\n")
    found = tables(capfd, "stats", "classes", store, "--eps", "0.03", "--costs", costs)
    assert [row["class"] for row in found["Robust recall"]] == [0, 1, 2] * 2
    assert {"disparity index", "normalised Gini of area"} <= {row["measure"] for row in found["Fairness"]}
    assert found["alpha: one-to-one radii"][0]["target"] == 1
    assert all(row["surely nearest"] <= row["possibly nearest"] for row in found["beta: confusion of nearest targets"])
    for row in found["Cost-weighted risk"]:
        assert row["unseen from"] <= row["sample from"] <= row["to"] <= row["to (unseen)"]
    costs.write_text("0,1\n1\n")
    assert "--costs" in refused_here(capfd, "stats", "classes", store, "--costs", costs)


def test_train_and_test_give_a_ks_matrix(two_splits: Path, capfd: Capture) -> None:
    rows = tables(capfd, "stats", "classes", two_splits)["alpha: KS statistics between classes"]
    assert [row["class"] for row in rows] == ["0", "1"]


def test_fit_ranks_families_and_labels_the_papers_test(store: Path, capfd: Capture) -> None:
    found = tables(capfd, "stats", "fit", store)
    alpha = [row for row in found["Families, likelihood on the intervals"] if row["network"] == "alpha"]
    assert {row["family"] for row in alpha} == {"lognormal", "normal", "weibull", "gamma"}
    assert [row["AIC"] for row in alpha] == sorted(row["AIC"] for row in alpha)
    assert {row["verdict"] for row in found["Log-normality as in the paper"]} <= {"passed", "rejected", "invalid"}


def test_cost_gives_par_scores_and_a_plot(store: Path, tmp_path: Path, capfd: Capture) -> None:
    found = tables(capfd, "stats", "cost", store, "--timeout", "30", "--plot", tmp_path / "time.png")
    assert all(row["PAR2"] <= 60 for row in found["Cost of closed radii"])
    assert (tmp_path / "time.png").read_bytes().startswith(b"\x89PNG")


def test_a_class_or_a_target_can_be_picked(store: Path, capfd: Capture) -> None:
    one = json.loads(told(capfd, "stats", store, "--class", "1", "--json"))["networks"]
    assert {row["n"] for row in one} == {6}
    aimed = json.loads(told(capfd, "stats", store, "--target", "3", "--classifier", "beta", "--json"))["networks"]
    assert [row["n"] for row in aimed] == [18]


@pytest.mark.parametrize("command", [["stats"], ["stats", "compare"], ["guarantee", "--eps", "0.02"]])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--classifier", "alfa"], "--classifier: expected one of alpha, beta, got 'alfa'; did you mean 'alpha'?"),
        (["--class", "7"], "--class: expected one of 0, 1, 2, got '7'"),
        (["--target", "four"], "--target: expected one of 0, 1, 2, 3, got 'four'"),
        (["--study", "none"], "--study: expected one of"),
    ],
)
def test_unknown_names_are_refused(
    store: Path, command: list[str], words: list[str], expected: str, capfd: Capture
) -> None:
    place = 2 if command[1:2] == ["compare"] else 1
    assert expected in refused_here(capfd, *command[:place], store, *command[place:], *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stats", "compar", "STORE"], "did you mean 'compare'?"),
        (["stats", "compare"], "expected a store"),
        (["stats", "STORE", "--timeout", "3"], "--timeout: expected it only with radii stats cost"),
        (["stats", "compare", "STORE", "--classifier", "alpha"], "at least two networks"),
        (["stats", "STORE", "--confidence", "2"], "confidence"),
        (["guarantee", "STORE"], "--eps"),
        (["guarantee", "STORE", "--eps", "0.1", "--method", "guess", "--one"], "expected one of clopper-pearson"),
    ],
)
def test_other_bad_input_is_one_line(store: Path, words: list[str], expected: str, capfd: Capture) -> None:
    assert expected in refused_here(capfd, *(store if word == "STORE" else word for word in words))


def test_guarantees_by_class_hold_together_and_holm_shows_classes(store: Path, capfd: Capture) -> None:
    found = json.loads(told(capfd, "guarantee", store, "--eps", "0.02", "--by-class", "--json"))["guarantees"]
    assert [row["about"] for row in found] == [f"of class {k}" for k in range(3)] * 2
    assert all(row["statements"] == 3 for row in found)
    assert "for 3 such statements together" in found[0]["sentence"]
    picked = json.loads(told(capfd, "guarantee", store, "--eps", "0.02", "--class", "1", "--json"))["guarantees"]
    assert picked == [row for row in found if row["about"] == "of class 1"]  # a choice afterwards costs the same
    aimed = told(capfd, "guarantee", store, "--eps", "0.02", "--target", "3")
    assert "where only class 3 counts as a change of mind" in aimed
    claims = json.loads(told(capfd, "guarantee", store, "--eps", "0.001", "--at-least", "0.3", "--json"))
    assert len(claims) == 6
    assert all(row["shown"] == (row["p_value"] <= 0.05) for row in claims)


@needs_data
def test_a_published_table_is_read_like_a_store(capfd: Capture) -> None:
    table = DATA / "jair" / "results.csv"
    words = ["stats", table, "--classifier", "convSmallRELU__DiffAI", "--json"]
    (one,) = json.loads(told(capfd, *words))["networks"]
    assert (one["n"], one["lowest"]) == (98, pytest.approx(0.079))
    assert "did you mean" in refused_here(capfd, "stats", table, "--classifier", "convSmallRELU__DiffAi")


def test_sub_commands_say_what_the_spelling_without_them_says(store: Path, capfd: Capture) -> None:
    for old, new in (
        (["--error", "0.1", "--json"], ["plan", "--error", "0.1", "--json"]),
        (["--eps", "0.02", store, "--by-class"], ["read", store, "--eps", "0.02", "--by-class"]),
        ([f"--eps={0.02}", "--one", store], ["read", store, "--one", "--eps", "0.02"]),
    ):
        assert told(capfd, "guarantee", *old) == told(capfd, "guarantee", *new)
    assert "see radii guarantee run" in refused_here(capfd, "guarantee", "net.onnx", "--data", "mnist5k")
    assert "--seconds" in refused_here(capfd, "guarantee", store, "--eps", "0.02", "--seconds", "3")  # run's option


SAMPLE = ["guarantee", "run", "zoo:mnist5k-standard", "--data", "mnist5k", "--seconds", "0.5"]


def test_a_sample_is_drawn_measured_and_quoted(tmp_path: Path, capfd: Capture) -> None:
    words = [*SAMPLE, "--eps", "0.01", "--inputs", "6", "--store", tmp_path / "g.db", "--json"]
    found = json.loads(told(capfd, *words))
    assert found["n"] == 6
    assert len(set(found["indices"])) == 6
    assert found["evidence"] == "proof and attack"
    assert 0 <= found["low"] < found["high"] <= 1
    assert "at every ε at once" in found["sentence"]
    stored = json.loads(told(capfd, "guarantee", tmp_path / "g.db", "--eps", "0.01", "--json"))["guarantees"][0]
    assert (stored["low"], stored["high"]) == pytest.approx((found["low"], found["high"]))
    finite = json.loads(told(capfd, *words, "--finite", "--one"))
    assert finite["population"] == 1000
    assert finite["indices"] == found["indices"]  # the same seed draws the same inputs, which are in the store


def test_an_attack_only_sample_says_so(capfd: Capture) -> None:
    found = json.loads(told(capfd, *SAMPLE, "--eps", "0.05", "--inputs", "8", "--search", "attack", "--json"))
    assert found["evidence"] == "attack only"
    assert "at most" in found["sentence"]
    assert "an attack cannot show robustness" in found["sentence"]


def test_a_sequential_sample_stops_when_it_is_narrow_enough(capfd: Capture) -> None:
    words = [*SAMPLE, "--eps", "0.05", "--search", "attack", "--sequential", "--error", "0.2", "--json"]
    found = json.loads(told(capfd, *words))
    assert found["reached"]
    assert found["n"] < 200
    assert "valid at any stopping time" in found["sentence"]
    capfd.readouterr()
    assert run([*words, "--inputs", "5"]) == 3
    done = capfd.readouterr()
    assert not json.loads(done.out)["reached"]
    assert "give more inputs" in done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--eps", "0.01", "--error", "0.01"], "expected a data set of at least"),
        (["--eps", "0.01", "--inputs", "5000"], "expected at most the 1000 inputs"),
        (["--eps", "0.01", "--search", "atack"], "did you mean 'attack'?"),
        (["--eps", "0.01", "--target", "12"], "--target"),
        (["--eps", "0.01", "--sequential", "--finite"], "--sequential"),
        (["--inputs", "5"], "--eps"),
    ],
)
def test_samples_that_cannot_be_run_are_refused(words: list[str], expected: str, capfd: Capture) -> None:
    assert expected in refused_here(capfd, *SAMPLE, *words)
