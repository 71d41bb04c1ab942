"""A tolerance in per cent of the upper end, from the study file through run, store, check, export and report."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.study.build import toy_study

import radii
from radii.cli.main import run
from radii.errors import InputError
from radii.problem import Percent, Status
from radii.report.sheets import sheet_series
from radii.store import open_store
from radii.study.ensemble_file import read_ensemble
from radii.study.plan import load_plan
from radii.study.settings import RadiusSettings
from radii.testing.toys import relu_toy

PERCENT = 30.0


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("relative")
    search = {"method": "direct", "tolerance": f"{PERCENT:g}%"}
    study, store = toy_study(folder / "s", inputs=4, nets=1, search=search), folder / "s.db"
    assert run(["run", str(study), "--store", str(store), "--workers", "1"]) == 0
    return study, store


def told(capfd: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capfd.readouterr()
    assert run([str(word) for word in words]) == code
    return capfd.readouterr().out


def test_radii_are_closed_by_their_share(where: tuple[Path, Path]) -> None:
    with open_store(where[1], create=False) as store:
        found = [one.radius for one in store.records()]
        assert {one.unit.setting.search_parameters["tolerance"] for one in store.records()} == {"30%"}
    searched = [one for one in found if not one.misclassified]
    assert {one.tolerance for one in searched} == {Percent(PERCENT)}
    closed = [one for one in searched if one.status is Status.CLOSED]
    assert closed
    assert all(one.gap is not None and one.gap <= 0.3 * (one.upper or 0) * (1 + 1e-9) for one in closed)


def test_a_second_run_has_nothing_to_do(where: tuple[Path, Path]) -> None:
    with open_store(where[1]) as store:
        assert store.pending(load_plan(where[0]).records) == []


def test_check_reads_the_status_from_the_ends(
    where: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told(capfd, "check", where[1])
    for change, line in (
        ("tolerance_percent = 90", "tolerance '90%', but the study asked for '30%'"),
        ("tolerance_percent = 1e-9", "but its ends say 'open'"),
        ("tolerance_percent = NULL, tolerance = 0.01", "tolerance 0.01, but the study asked for '30%'"),
        ("tolerance = 10", "expected 0 beside a relative one, got 10.0"),
        ("tolerance_percent = 150", "below 100%"),
    ):
        copy = tmp_path / "copy.db"
        with sqlite3.connect(where[1]) as source, sqlite3.connect(copy) as made:
            source.backup(made)
            made.execute(f"UPDATE radii SET {change} WHERE status = 'closed'")
        source.close()
        made.close()
        assert line in told(capfd, "check", copy, code=1)


def test_exports_and_reports_know_it(
    where: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, Any]] = json.loads(told(capfd, "export", where[1], "--format", "json"))
    assert {(one["tolerance"], one["tolerance_percent"]) for one in rows if one["status"] == "closed"} == {(0.0, 30.0)}
    told(capfd, "export", where[1], "-o", tmp_path / "s.csv")
    (series,) = sheet_series(tmp_path / "s.csv")
    assert series.dist.status.tolist() == [one["status"] for one in rows]


def test_targets_are_joined_with_the_share_of_the_nearest(tmp_path: Path) -> None:
    search = {"method": "direct", "tolerance": "30%"}
    study = toy_study(tmp_path / "s", inputs=3, nets=1, search=search, property={"target": "all"})
    store = tmp_path / "s.db"
    assert run(["run", str(study), "--store", str(store), "--workers", "1"]) == 0
    from radii.report.content import gather

    (series,) = gather([str(store)]).series
    for low, high, status in zip(series.dist.lower, series.dist.upper, series.dist.status, strict=True):
        assert (status == "closed") == (high - low <= 0.3 * high * (1 + 1e-9)) or status == "misclassified"


def test_python_and_the_engine_stop_at_the_share() -> None:
    net = relu_toy(0)
    x = [0.4, 0.5, 0.6, 0.3]
    label = int(net.predict([x])[0])
    wide = radii.radius(net, x, label, tolerance="40%", nodes=10_000, seconds=None)
    fine = radii.radius(net, x, label, tolerance="0.01%", nodes=10_000, seconds=None)
    for found, share in ((wide, 0.4), (fine, 0.0001)):
        assert found.status is Status.CLOSED
        assert found.gap is not None
        assert found.gap <= share * (found.upper or 0) * (1 + 1e-9)
    assert (fine.lower or 0) > (wide.lower or 0), "a wider tolerance is met sooner"
    with pytest.raises(InputError, match=r"such as 5%, got '5 percent'"):
        radii.radius(net, x, label, tolerance="5 percent")


def test_absolute_tolerances_keep_their_keys(tmp_path: Path) -> None:
    """The key of a setting from before there were relative ones: what stores hold is not searched again."""
    (unit,) = load_plan(toy_study(tmp_path / "a", inputs=1, nets=1)).records
    assert unit.setting.search_parameters == {"tolerance": 0.01, "limit": None}
    assert replace(unit.setting, identity="native 1").key == "b12f8c1ee0b40ddaf14b986b7f501f90"
    reach = [RadiusSettings.of({"property": "standard", "tolerance": said}, 0.1) for said in (0.02, "2%")]
    assert reach[0] == reach[1], "a reach's tolerance is a share already"


def test_games_take_absolute_ones_only(tmp_path: Path) -> None:
    data = radii.load_dataset("mnist5k", split="test")[:1]
    nets = ["zoo:mnist5k-standard", "zoo:mnist5k-adversarial"]
    with pytest.raises(InputError, match=r"^ensemble tolerance: expected a number above 0, got '5%'$"):
        radii.ensemble(nets, data, epsilons=0.03, seconds=1, tolerance="5%")
    path = tmp_path / "game.yaml"
    path.write_text(f"classifiers: {nets}\ndata: {{source: mnist5k, first: 1}}\nsearch: {{tolerance: 5%}}\n")
    with pytest.raises(InputError, match=r"ensemble tolerance: expected a number above 0, got '5%'$"):
        read_ensemble(path)
