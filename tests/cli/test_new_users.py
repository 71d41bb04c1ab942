"""What new users tried in their first hour and tripped over."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import refused_here

from radii.cli.main import run
from radii.errors import InputError
from radii.search import Grid

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
