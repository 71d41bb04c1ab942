"""Commands that do real work, small: the demo, and radii of a few images."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.cli.command import radii, refused_here

from radii.cli.main import run

COLUMNS = """
    classifier dataset split index label prediction property target norm lower upper status search verifier queries
    timeouts memory_errors cancelled cpu_seconds wall_seconds seed
"""
CONTRACT = COLUMNS.split()


def test_demo_writes_results_and_pictures(tmp_path: Path) -> None:
    done = radii("demo", "--output", tmp_path / "new" / "folder", "--inputs", 3, "--seconds", 0.3)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "new" / "folder"
    assert {path.name for path in out.iterdir()} >= {"report.html", "radii.csv", "demo.db", "robust-accuracy.png"}
    assert (out / "robust-accuracy.png").read_bytes().startswith(b"\x89PNG")
    with (out / "radii.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[: len(CONTRACT)] == CONTRACT
    assert len(rows) == 9
    assert {row["classifier"] for row in rows} == {"mnist5k-standard", "mnist5k-adversarial", "mnist5k-conv"}
    for row in rows:
        assert row["lower"] != "nan"
        assert row["upper"] != "nan"
        if row["lower"] and row["upper"] and row["status"] != "misclassified":
            assert float(row["lower"]) < float(row["upper"])
    assert "Try next:" in done.stdout
    assert done.stderr.count(": 3 images in ") == 3  # no long silence
    assert "mnist5k-conv" in done.stdout


WORDS = ["radius", "zoo:mnist5k-standard", "--data", "mnist5k", "--index", "1,4", "--seconds", "2"]


def test_radius_as_json_has_the_contract_columns(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["index"] for row in rows] == [1, 4]
    assert list(rows[0])[: len(CONTRACT)] == CONTRACT
    assert all(row["verifier"] == "native" for row in rows)


def test_radius_as_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--norm", "l2", "--target", "7"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "mnist5k-standard on mnist5k test, classification:target=7, l2"
    assert lines[1].split()[:3] == ["index", "label", "prediction"]
    assert [line.split()[0] for line in lines[2:]] == ["1", "4"]


REACH = ["reach", "zoo:mnist5k-standard", "--data", "mnist5k", "--eps", "0.01", "--seconds", "1"]


def test_reach_as_a_table_and_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*REACH, "--index", "0,2"]) == 0
    lines = capfd.readouterr().out.splitlines()
    where = "mnist5k-standard on mnist5k test, linf, ε = 0.01"
    assert lines[0] == f"{where}: standard, the largest value in the ball (unit: output)"
    assert lines[1].split() == ["index", "label", "prediction", "witnessed", "proven", "gap", "status", "cpu_seconds"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "2"]
    assert run([*REACH, "--index", "2", "--property", "strong:on=probability", "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["property"], row["epsilon"], row["index"], row["least"]) == ("strong:on=probability", 0.01, 2, True)
    assert 0 < row["proven"] <= row["witnessed"] < row["start"] <= 1
    assert row["gap"] == pytest.approx(row["witnessed"] - row["proven"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--eps", "0"], "--eps: expected a number above 0"),
        (["--property", "standrd"], "did you mean 'standard'?"),
        (["--property", "probability:gamma=2"], "gamma"),
        (["--tolerance", "-1"], "--tolerance: expected a number above 0"),
        (["--index", "5000"], "--index: expected positions"),
        (["--norm", "l3"], "norm: expected one of linf, l2, l1"),
    ],
)
def test_reach_refuses_bad_input(words: list[str], line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert line in refused_here(capfd, *REACH, *words)


def test_properties_explains_and_measures(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["properties"]) == 0
    said = capfd.readouterr().out
    assert all(word in said for word in ("classification", "standard:delta=10", "lipschitz:constant=10", "Use "))
    words = ["properties", "zoo:mnist5k-adversarial", "--data", "mnist5k", "--index", "0,2", "--eps", "0.01"]
    words += ["--property", "standard:10", "--property", "strong:eta=0.4,on=probability", "--seconds", "1"]
    assert run([*words, "--samples", "20", "--json"]) == 0
    out, err = capfd.readouterr()
    first, second = json.loads(out)
    assert (first["property"], first["inputs"], first["proven"], first["accuracy"]) == ("standard:delta=10", 2, 1, 1)
    assert second["proven"] <= second["not_refuted"] <= second["security"]
    assert "only above 1/2 does it imply classification" in err
    assert "--eps: expected it beside networks" in refused_here(capfd, *words[:4])
    assert "expected networks" in refused_here(capfd, "properties", "--eps", "0.1")


def test_properties_over_several_sizes_with_a_picture(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "curves.svg"
    words = ["properties", "zoo:mnist5k-adversarial", "--data", "mnist5k", "--index", "0", "--property", "standard:0.4"]
    words += ["--seconds", "1", "--samples", "5", "--eps", "0.01,0.002"]
    assert run([*words, "--picture", str(picture)]) == 0
    out = capfd.readouterr().out
    assert "ε = 0.002, 0.01" in out
    table = [line.split() for line in out.splitlines() if line.startswith("mnist5k-adversarial")]
    assert [(row[2], row[4]) for row in table] == [("0.002", "1"), ("0.01", "0")]
    assert "standard:delta=0.4" in picture.read_text(encoding="utf-8")
    assert "--picture: expected a file that ends in" in refused_here(capfd, *words, "--picture", "x.txt")
    assert "--picture: expected a folder" in refused_here(capfd, *words, "--picture", str(tmp_path / "no" / "x.png"))


def test_radius_on_a_grid_by_another_verifier(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--json", "--verifier", "attack", "--grid", "0.01:0.1:0.01"]) == 0
    for row in json.loads(capfd.readouterr().out):
        assert row["search"] == "kbinary"
        assert row["lower"] is None  # an attack proves nothing
        assert row["upper"] is not None


def test_a_store_keeps_what_was_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--json", "--store", str(tmp_path / "radii.db")]
    assert run(words) == 0
    first = json.loads(capfd.readouterr().out)
    assert run(words) == 0
    assert json.loads(capfd.readouterr().out) == first  # costs included: nothing was done again
