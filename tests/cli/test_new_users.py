"""What new users tried in their first hour and tripped over."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.command import refused_here

from radii.cli.main import run
from radii.errors import InputError
from radii.search import Grid
from radii.study.question import Question

NET = "zoo:mnist5k-standard"


@pytest.fixture(scope="module")
def pixels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table as spreadsheets write it: pixels from 0 to 255, and the label in a column of its own name."""
    from radii.data import load_dataset

    data = load_dataset("mnist5k")[:4]
    values = np.round(data.x.reshape(4, -1) * 255).astype(int)
    lines = ["digit," + ",".join(f"p{k}" for k in range(784))]
    lines += [f"{label}," + ",".join(map(str, row)) for label, row in zip(data.y, values, strict=True)]
    path = tmp_path_factory.mktemp("table") / "pixels.csv"
    path.write_text("\n".join(lines))
    return path


SHAPE = ("--option", "shape=1,28,28")


def test_the_advice_about_a_label_column_can_be_followed(pixels: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = refused_here(capfd, "radius", NET, "--data", pixels)
    assert "--option label=NAME" in said
    said = refused_here(capfd, "radius", NET, "--data", pixels, "--option", "label=digit", *SHAPE)
    assert "--option scale=255" in said


def test_data_options_reach_radius_and_report(pixels: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--option", "label=digit", "--option", "scale=255", *SHAPE)
    store = str(tmp_path / "r.db")
    asked = ("--verifier", "envelope", "--json", "--store", store)
    assert run(["radius", NET, "--data", str(pixels), *options, *asked]) == 0
    row = json.loads(capfd.readouterr().out)[0]
    assert 0 < row["lower"] <= row["upper"]
    page = tmp_path / "report.html"
    said = refused_here(capfd, "report", store, "-o", page, "--data", pixels)
    assert "--option label=NAME" in said
    assert run(["report", store, "-o", str(page), "--data", str(pixels), *options]) == 0
    assert "original" in page.read_text()


@pytest.mark.parametrize("text", ["scale", "=3", "a b=3"])
def test_a_data_option_without_a_value_is_refused(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "expected NAME=VALUE such as scale=255" in refused_here(
        capfd, "radius", NET, "--data", "x", "--option", text
    )


def test_radius_without_a_store_says_the_same_and_prints_what_is_done_after_ctrl_c(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["radius", NET, "--data", "mnist5k", "--index", "0:3", "--seconds", "5"]
    assert run(words) == 0
    plain = [line.split()[:-1] for line in capfd.readouterr().out.splitlines()]  # without the CPU seconds
    assert run([*words, "--store", str(tmp_path / "r.db")]) == 0
    assert [line.split()[:-1] for line in capfd.readouterr().out.splitlines()] == plain
    whole = Question.radii

    def stopped(self: Question, instances: Any, ended: Any, heard: Any = None) -> Any:
        def one(place: int, radius: Any) -> None:
            ended(place, radius)
            raise KeyboardInterrupt

        return whole(self, instances, one, heard)

    monkeypatch.setattr(Question, "radii", stopped)
    assert run(words) == 3
    said = capfd.readouterr()
    assert [line.split()[:-1] for line in said.out.splitlines()] == plain[:3]
    assert "stopped, 1 of 3 inputs done; --store FILE would keep them" in said.err


def test_semicolons_between_columns_are_suspected(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("label;a;b\n0;0.1;0.2\n1;0.3;0.4\n")
    said = refused_here(capfd, "radius", NET, "--data", table)
    assert "semicolons in 'label;a;b'" in said
    from radii.data import load_dataset

    assert load_dataset(table, separator=";").x.shape == (2, 2)


def test_a_verifier_that_only_answers_is_refused_with_what_to_give(capfd: pytest.CaptureFixture[str]) -> None:
    said = refused_here(capfd, "radius", NET, "--data", "mnist5k", "--verifier", "attack")
    assert "--grid START:STOP:STEP" in said


@pytest.mark.parametrize(("given", "absent"), [("--mean", "--std"), ("--std", "--mean")])
def test_half_a_preprocessing_is_refused(given: str, absent: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = refused_here(capfd, "radius", NET, "--data", "mnist5k", given, "0.5")
    assert f"{given}: expected {absent} beside it" in said


def test_a_tuple_is_start_stop_step_as_on_the_command_line() -> None:
    assert Grid.of((0.1, 0.5, 0.2)).epsilons == (0.1, 0.3, 0.5)
    assert Grid.of([0.1, 0.2, 0.5]).epsilons == (0.1, 0.2, 0.5)
    with pytest.raises(InputError, match="expected \\(start, stop, step\\) or a list of values"):
        Grid.of((0.1, 0.2))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study's store, its radii exported beside it."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(
        "name: small\nclassifiers: ['zoo:*']\nverifier: envelope\n"
        "data: {source: mnist5k, split: test, indices: '0:10'}\n"
    )
    assert run(["run", str(folder / "study.yaml"), "--runner", "serial"]) == 0
    assert run(["export", str(folder / "study.db"), "-o", str(folder / "radii.csv")]) == 0
    return folder


def test_stats_of_the_exported_table_are_those_of_the_store(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = []
    for name in ("study.db", "radii.csv"):
        capfd.readouterr()
        for view in ("summary", "compare", "classes"):
            assert run(["stats", view, str(study / name), "--eps", "0.02", "--json"]) == 0
        said.append(capfd.readouterr().out)
    assert said[0] == said[1]


def test_a_report_of_the_exported_table(study: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(["report", str(study / "radii.csv"), "-o", str(page)]) == 0
    assert "Read from a table, not from a store" in page.read_text()
    assert run(["report", str(study / "radii.csv"), str(study / "study.db"), "-o", str(page)]) == 0


def test_a_table_of_other_columns_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a;b\n1;2\n")
    said = refused_here(capfd, "stats", other)
    assert "expected the columns of radii export" in said
    assert "semicolons" in said


def test_the_report_of_a_distribution_is_that_of_its_store(tmp_path: Path) -> None:
    import radii

    net, data = radii.load_classifier(NET), radii.load_dataset("mnist5k")[:4]
    for store in (tmp_path / "r.db", None):
        dist = radii.distribution(net, data, verifier="envelope", store=store)
        page = dist.report(tmp_path / "page.html", data=data).read_text()
        assert "not known here" not in page
        assert net.fingerprint[:16] in page
        assert "proof by" in page
        assert "data:image/png" in page  # witnesses
        part = dist.select([0, 1]).report(tmp_path / "part.md").read_text()
        assert "Made from arrays" not in part
    bare = radii.Distribution.from_arrays(lower=[0.01], upper=[0.02], name="bare")
    both = dist.report(tmp_path / "both.md", bare).read_text()
    assert "Made from arrays" in both
    assert net.name in both


def test_a_distribution_from_memory_can_be_pickled() -> None:
    import pickle

    import radii

    dist = radii.distribution(NET, radii.load_dataset("mnist5k")[:2], verifier="envelope")
    again = pickle.loads(pickle.dumps(dist))
    assert again.lower.tolist() == dist.lower.tolist()
    assert again.source is None


def planned(folder: Path, verifier: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    study = folder / "study.yaml"
    study.write_text(
        f"classifiers: [{NET}]\ndata: {{source: mnist5k, indices: '0'}}\n"
        f"search: {{method: kbinary, grid: {{start: 0.01, stop: 0.02, step: 0.01}}}}\nverifier: {verifier}\n"
    )
    capfd.readouterr()
    code = run(["run", str(study), "--dry-run"])
    return code, capfd.readouterr().err


@pytest.mark.parametrize(
    ("verifier", "said"),
    [
        ("{command: 'no-such-tool {network} {query}'}", "expected no-such-tool on the PATH or in "),
        ("{command: './tool.sh {network} {query}'}", "expected the file ./tool.sh in "),
        ("{command: 'bash other.sh {network} {query}'}", "expected the file other.sh in "),
        ("{command: 'bash -c {network} {query}', cwd: nowhere}", "expected cwd to be a folder"),
        ("{portfolio: [attack, {command: 'no-such-tool {network} {query}'}]}", "expected no-such-tool"),
        ("{scripts: nowhere}", "expected VNN-COMP's scripts there"),
    ],
)
def test_an_absent_command_is_refused_when_the_study_is_planned(
    verifier: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, err = planned(tmp_path, verifier, capfd)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_command_beside_the_study_file_is_found_from_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tool.sh"
    tool.write_text("#!/bin/sh\necho unsat\n")
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path.parent)
    assert planned(tmp_path, "{command: './tool.sh {network} {query}'}", capfd)[0] == 0
    assert run(["run", str(tmp_path / "study.yaml"), "--runner", "serial"]) == 0
    assert run(["export", str(tmp_path / "study.db"), "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)[0]["lower"] == 0.02


def test_tab_completion_names_commands_and_options() -> None:
    import subprocess
    import sys

    for line, expected in (("radii st", {"status", "stats", "store"}), ("radii radius --ver", {"--verifier"})):
        env = {"_RADII_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        code = "from radii.cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True)
        assert set(done.stdout.split()) == expected


def test_verifiers_fit_eighty_columns(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["verifiers"]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 80


def test_help_shows_whole_summaries(capfd: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["store"], ["datasets"]):
        assert run([*words, "--help"]) == 0
        assert "..." not in capfd.readouterr().out.partition("Commands:")[2]


def test_an_unknown_ending_of_a_report_is_refused(
    study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = refused_here(capfd, "report", study / "study.db", "-o", tmp_path / "report.htm")
    assert "expected one of .html, .md, .pdf, .tex, got '.htm'; did you mean '.html'?" in said


def test_one_unit_is_one_unit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = f"classifiers: ['{NET}']\ndata: {{source: mnist5k, indices: '0'}}\nbudget: {{seconds: 0.5}}\n"
    (tmp_path / "s.yaml").write_text(study)
    assert run(["run", str(tmp_path / "s.yaml"), "--dry-run"]) == 0
    said = capfd.readouterr().out
    assert "s: 1 unit, 1 to do" in said
    assert "at most about 1 s by the budget" in said
    (tmp_path / "s.yaml").write_text(study + "property: {name: standard, delta: 10}\n")
    assert run(["run", str(tmp_path / "s.yaml"), "--dry-run"]) == 2
    assert "property: expected a kind, such as {kind: standard, delta: 10}, got 'name'" in capfd.readouterr().err


def test_a_store_is_named_after_the_study_file_as_the_help_says(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--help"]) == 0
    assert "STUDY.db beside STUDY.yaml unless given" in " ".join(capfd.readouterr().out.split())
    assert (study / "study.db").is_file()  # though its name: is small


def test_a_summary_prints_as_a_table() -> None:
    import radii

    dist = radii.Distribution.from_arrays(lower=[0.01], upper=[0.02])
    lines = str(dist.summary()).splitlines()
    assert len(lines) == len(dist.summary().as_dict())
    assert len({line.index(value) for line, (_, value) in zip(lines, dist.summary().table(), strict=True)}) == 1


def test_only_public_names_are_listed() -> None:
    import radii

    assert dir(radii) == sorted(radii.__all__)


def test_a_grid_radius_without_a_lower_end_is_not_closed() -> None:
    import radii

    net, data = radii.load_classifier(NET), radii.load_dataset("mnist5k")[:1]
    found = radii.radius(net, data[0].x, data[0].label, verifier="attack", grid=[0.2, 0.9])
    assert (found.lower, found.upper) == (None, 0.2)
    assert found.status == "open"


def test_a_report_does_not_deny_time_outs() -> None:
    from radii.report.arrays import content_of
    from radii.report.distribution import Distribution
    from radii.report.tables import outcomes

    done = Distribution.from_arrays(lower=[0.01], upper=[0.011], name="done")
    still = Distribution.from_arrays(lower=[0.01], upper=[0.5], name="still")
    assert "is not recorded" in outcomes(content_of([done, still])).note
