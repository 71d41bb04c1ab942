"""A property that another package offers in one file goes everywhere that ours go: no other file knows of it."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.cli.command import refused_here

import radii
from radii.cli.main import run
from radii.store import open_store
from radii.study.recall import property_of
from radii.testing.toys import LinearToy, linear_radius, linear_toy

CODE = '''
from dataclasses import dataclass

import numpy as np

from radii.problem import Clause, OutputSpec, Property


@dataclass(frozen=True)
class Combination(Property):
    """A row that the user gives, times the outputs, stays above a bound."""

    kind = "combination"
    needs_label = False
    row: tuple[float, ...]
    bound: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "row", tuple(map(float, self.row)))

    def violations(self, classes, label, reference=None):
        return OutputSpec((Clause(np.array([self.row]), np.array([self.bound])),))
'''
ROW = (1.0, 0.5, -0.25)


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class, from a package that is installed with an entry point and nothing else."""
    site = tmp_path / "site"
    info = site / "combination-1.dist-info"
    info.mkdir(parents=True)
    (site / "combination.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: combination\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[radii.properties]\ncombination = combination:Combination\n")
    monkeypatch.syspath_prepend(str(site))
    yield import_module("combination").Combination
    sys.modules.pop("combination", None)


def closed_form(toy: LinearToy, x: np.ndarray[Any, Any], bound: float) -> float:
    """The radius of the property on a linear network."""
    row = np.array(ROW)
    return linear_radius(row @ toy.weight, float(row @ toy.bias) - bound, x, "linf")


def test_a_property_of_ones_own(tmp_path: Path, kind: Any, capfd: pytest.CaptureFixture[str]) -> None:
    toy = linear_toy(4)
    toy.classifier.save(tmp_path / "net.onnx")
    x = np.random.default_rng(0).uniform(0.3, 0.7, size=(3, 5)).astype(np.float32)
    np.savez(tmp_path / "points.npz", x=x, y=toy.classifier.predict(x))
    bound = round(float((np.array(ROW) @ toy.classifier(x).T).min()) - 0.1, 3)
    truth = [closed_form(toy, one, bound) for one in x]
    text = f"combination:row=[1,0.5,-0.25],bound={bound}"

    def holds(ends: list[tuple[Any, Any]]) -> None:
        for (lower, upper), exact in zip(ends, truth, strict=True):
            assert float(lower) <= exact * (1 + 1e-5)
            assert float(upper) >= exact * (1 - 1e-5)
            assert float(upper) - float(lower) <= 0.002 * (1 + 1e-6)

    # API: the object, its text and a mapping say the same.
    for asked in (kind(ROW, bound), text, {"kind": "combination", "row": list(ROW), "bound": bound}):
        (one, *_) = [radii.radius(toy.classifier, x[0], 0, property=asked, verifier="milp", seconds=20)]
        assert one.status.value == "closed"
        assert one.lower <= truth[0] * (1 + 1e-5)

    # Command line; what it does not know is refused with the nearest name.
    net, data, store = tmp_path / "net.onnx", tmp_path / "points.npz", tmp_path / "study.db"
    words = ("radius", net, "--data", data, "--index", "0:3", "--verifier", "milp")
    assert run([str(w) for w in (*words, "--property", text, "--store", store, "--json")]) == 0
    rows = json.loads(capfd.readouterr().out)
    holds([(row["lower"], row["upper"]) for row in rows])
    assert "did you mean 'combination'?" in refused_here(capfd, *words, "--property", "combinatoin:[1,0,0]")
    assert "did you mean 'bound'?" in refused_here(capfd, *words, "--property", "combination:[1,0,0],buond=1")
    grid = ("--grid", "0.1:0.2:0.1", "--verifier", "bounds")
    assert "use verifier native" in refused_here(capfd, *words[:-2], "--property", text, *grid)

    # YAML: the study finds what the command has stored, so both say the same to the last digit.
    body = {"name": "own", "classifiers": ["net.onnx"], "data": "points.npz", "verifier": "milp"}
    body["property"] = {"kind": "combination", "row": list(ROW), "bound": bound}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(body))
    assert run(["run", str(tmp_path / "study.yaml"), "--store", str(store), "--dry-run"]) == 0
    said = capfd.readouterr().out
    assert text in said
    assert run(["run", str(tmp_path / "study.yaml"), "--store", str(store), "--runner", "serial"]) == 0

    # Store, check, export and report.
    with open_store(store) as opened:
        records = list(opened.records())
        assert len(records) == 3
        assert {property_of(record.unit.setting) for record in records} == {kind(ROW, bound)}
    assert run(["check", str(store)]) == 0
    capfd.readouterr()
    assert run(["export", str(store), "--what", "radii", "--format", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    holds([(row["lower"], row["upper"]) for row in table])
    assert {row["property"] for row in table} == {"combination"}
    assert json.loads(table[0]["property_parameters"]) == {"bound": bound, "row": list(ROW)}
    page = tmp_path / "report.md"
    assert run(["report", str(store), "-o", str(page)]) == 0
    assert "combination:" in page.read_text()
