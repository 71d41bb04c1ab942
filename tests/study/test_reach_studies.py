"""Reaches through a study: closed forms in three norms, a killed run, exports, checks and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from tests.cli.command import refused_here
from tests.study.build import events, killed, start

import radii
from radii.cli.main import run
from radii.decide import Budget
from radii.engine.native import Native
from radii.errors import InputError
from radii.problem import Instance, Standard
from radii.problem.norm import Norm
from radii.store import Setting, Store, open_store, reaches_frame
from radii.study.audit import audit
from radii.study.file import parse_study
from radii.testing.store_exam import unit
from radii.testing.toys import LinearToy, linear_toy

SIZE, NORMS = 0.05, ("linf", "l2", "l1")
KINDS = ("standard", "lipschitz", "classification", "strong", "probability")


def closed_form(toy: LinearToy, kind: str, x: Any, label: int, norm: str) -> float:
    """The reach of a linear network where the domain does not bind: its rows in the dual norm."""
    dual = {"linf": 1, "l2": 2, "l1": np.inf}[norm]
    outputs = toy.weight @ x + toy.bias
    if kind in ("standard", "lipschitz"):
        steepest = float(np.linalg.norm(toy.weight, ord=dual, axis=1).max())
        return steepest * (SIZE if kind == "standard" else 1.0)
    if kind == "strong":
        return float(outputs[label] - SIZE * np.linalg.norm(toy.weight[label], ord=dual))
    others = [c for c in range(len(outputs)) if c != label]
    rows = toy.weight[label] - toy.weight[others]
    return float((outputs[label] - outputs[others] - SIZE * np.linalg.norm(rows, ord=dual, axis=1)).min())


def written(folder: Path, **changes: Any) -> Path:
    """A study of reaches of one linear network on a few inputs away from the domain's sides."""
    folder.mkdir(exist_ok=True)
    toy = linear_toy(3)
    toy.classifier.save(folder / "line.onnx")
    x = np.random.default_rng(0).uniform(0.3, 0.7, (4, toy.weight.shape[1])).astype(np.float32)
    np.savez(folder / "points.npz", x=x, y=toy.classifier.predict(x))
    body: dict[str, Any] = {
        "name": "reaches",
        "classifiers": "line.onnx",
        "data": "points.npz",
        "measure": {"reach": SIZE},
        "property": [{"kind": kind} for kind in KINDS],
        "norm": list(NORMS),
        "budget": {"nodes": 200},
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**body, **changes}))
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was killed on its way and resumed; its store lies beside it."""
    path = written(tmp_path_factory.mktemp("reaches"))
    heard = iter(range(1000))
    said = killed(start(path, path.with_suffix(".db"), "--workers", 1), lambda: next(heard) >= 8)
    last = start(path, path.with_suffix(".db"), "--workers", 1)
    out, err = last.communicate()
    assert last.returncode == 0, err
    (end,) = events(out, "end")
    assert len(said) <= end["known"] < end["planned"] == len(KINDS) * len(NORMS) * 4
    assert end["known"] + end["done"] == end["planned"]
    return path


@pytest.fixture
def store(study: Path) -> Any:
    with open_store(study.with_suffix(".db"), create=False) as opened:
        yield opened


def test_reaches_of_linear_networks_hold_their_closed_forms(store: Store) -> None:
    toy, frame = linear_toy(3), reaches_frame(store)
    with np.load(Path(store.where).with_name("points.npz")) as points:
        x, y = points["x"].astype(np.float64), points["y"]
    assert set(frame["property"]) == set(KINDS)
    for row in frame[frame["property"] != "probability"].itertuples():
        exact = closed_form(toy, str(row.property), x[row.index], int(y[row.index]), str(row.norm))
        slack = 1e-5 * max(1.0, abs(exact))
        assert row.lower - slack <= exact <= row.upper + slack, (row.property, row.norm, row.index)
        assert row.status == "closed", (row.property, row.norm, row.index)
    probabilities = frame[frame["property"] == "probability"]
    assert ((probabilities["lower"] >= 0) & (probabilities["upper"] <= 1)).all()
    assert (frame["epsilon"] == SIZE).all()
    assert (frame["property_parameters"] == "{}").all()


def test_a_finished_study_is_not_done_again(study: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(study), "--runner", "serial"]) == 0
    assert "0 units now, 60 before" in capfd.readouterr().err


def test_python_finds_what_the_study_stored(study: Path, store: Store) -> None:
    data = radii.load_dataset(str(study.with_name("points.npz")))
    told: list[Any] = []
    dist = radii.distribution(
        str(study.with_name("line.onnx")),
        data,
        reach=SIZE,
        property="standard",
        norm="l2",
        nodes=200,
        seconds=None,
        store=store,
        progress=lambda *one: told.append(one),
    )
    assert not told, "a reach was computed again"
    assert dist.title == "largest output change at ε = 0.05 (l2)"
    top = closed_form(linear_toy(3), "standard", data.x[0].astype(float), 0, "l2")
    assert dist.share(1.05 * top) == (1.0, 1.0)
    assert dist.share(0.95 * top) == (0.0, 0.0)


def test_exports_reaches(study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = str(study.with_suffix(".db"))
    assert run(["export", where, "--what", "reaches"]) == 0
    text = capfd.readouterr().out.splitlines()
    assert text[0].startswith("classifier,dataset,split,index,label,prediction,property,target,norm,epsilon,lower,")
    assert len(text) == 61
    assert run(["export", where, "--what", "reaches", "--format", "parquet", "-o", str(tmp_path / "r.parquet")]) == 0
    assert run(["export", where, "--what", "reaches", "--format", "json"]) == 0
    capfd.readouterr()
    assert run(["export", where]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    assert "expected csv, parquet or json" in refused_here(
        capfd, "export", where, "--what", "reaches", "--format", "card"
    )


def test_checks_what_is_right(store: Store) -> None:
    found = audit(store)
    assert (found.wrong, found.unchecked, found.missing) == ([], [], [])
    assert (found.records, found.reaches, found.reach_proofs, found.witnesses) == (60, 60, 60, 60)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("lower = lower + 0.001, upper = upper + 0.001", "but its witness has"),
        ("upper = lower + 10.0", "status 'closed', but its ends say 'open'"),
        ("status = 'open'", "status 'open', but its ends say 'closed'"),
        ("resolution = 1.0", "which rounding does not explain"),
        ("start = start + 0.01", "at the input itself, but the original model says"),
        ("lower = upper + 1.0", "cross"),
        ("extremum = 'least'", "has another quantity"),
        ("proof = NULL, arithmetic = NULL, tool = NULL", "without a proof"),
    ],
)
def test_checks_what_was_changed(study: Path, tmp_path: Path, change: str, said: str) -> None:
    where = _copied(study, tmp_path)
    with open_store(where) as store:
        number = next(iter(store.reaches(_standard()))).unit.key
        with store.write() as connection:
            which = f"(SELECT id FROM units WHERE key = '{number}')"
            connection.exec_driver_sql(f"UPDATE radii SET {change} WHERE units_id = {which}")
        found = audit(store)
    assert any(said in one.message for one in found.wrong), found.wrong
    assert {one.key for one in found.wrong} == {number}


def test_checks_witnesses(study: Path, tmp_path: Path) -> None:
    from radii.store._rows import pack_array

    where = _copied(study, tmp_path)
    with open_store(where) as store:
        record = next(iter(store.reaches(_standard())))
        assert record.reach.witness is not None
        far = record.reach.witness.x + np.float32(0.04)
        with store.write() as connection:
            which = f"(SELECT id FROM units WHERE key = '{record.unit.key}')"
            text = f"UPDATE witnesses SET x = ? WHERE units_id = {which}"
            connection.exec_driver_sql(text, (pack_array(far),))
        lines = [one.message for one in audit(store).wrong]
    assert any("outside the ball" in line for line in lines), lines


def test_a_smaller_ball_cannot_reach_further(study: Path, tmp_path: Path) -> None:
    where = _copied(study, tmp_path)
    with open_store(where) as store:
        record = next(iter(store.reaches(_standard())))
        work = replace(record.unit, setting=replace(record.unit.setting, epsilon=2 * SIZE))
        low = float(record.reach.lower or 0.0) / 2
        store.put(
            replace(
                record, unit=work, reach=replace(record.reach, epsilon=2 * SIZE, lower=None, upper=low, witness=None)
            )
        )
        lines = [one.message for one in audit(store).wrong]
    assert any("goes beyond it" in line for line in lines), lines


def _copied(study: Path, folder: Path) -> Path:
    """A copy of the finished store beside what it speaks of."""
    target = folder / "copy.db"
    target.write_bytes(study.with_suffix(".db").read_bytes())
    return target


def _standard() -> Any:
    from radii.store import Selection

    return Selection(property=("standard",), norm=("linf",))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measure": {"reach": 0}}, "measure reach: expected a number above 0, got 0"),
        ({"measure": {"reach": -0.1}}, "measure reach: expected a number above 0, got -0.1"),
        ({"measure": {"reach": []}}, "measure: expected radius or {reach: ε}"),
        ({"measure": "range"}, "measure: expected radius or {reach: ε}, such as {reach: 0.1}, got 'range'"),
        ({"property": "standard:delta=10"}, "expected standard without delta where its reach is measured"),
        ({"search": {"method": "kbinary", "grid": [0.1]}}, "expected search direct for reaches, got kbinary"),
        ({"search": {"limit": 1.0}}, "expected no limit for reaches"),
        ({"evidence": True}, "evidence: expected none for reaches"),
        ({"data": {"source": "points.npz", "only": "correct"}}, "data: expected only: all for reaches"),
        ({"verifier": "milp"}, "verifier: expected one that measures reaches (native), got milp"),
        ({"property": {"kind": "rows", "rows": [[1, 1, 1]], "clauses": [[0]]}}, "only single rows have a reach"),
    ],
)
def test_refuses_what_means_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    line = refused_here(capfd, "run", written(tmp_path / "s", **changes), "--dry-run")
    assert said in line


def test_the_key_on_may_be_written_without_quotes() -> None:
    body = yaml.safe_load("{classifiers: a, data: b, property: {kind: strong, on: probability}, measure: {reach: 0.1}}")
    (asked,) = parse_study(body).property[0].properties(None, reach=True)
    assert asked.quantity_name == "probability of the label"


def test_sizes_may_be_fractions_and_several() -> None:
    body = {"classifiers": "a", "data": "b", "property": "standard", "measure": {"reach": ["8/255", 0.1, 0.1]}}
    assert parse_study(body).measure == [8 / 255, 0.1]
    assert parse_study({"classifiers": "a", "data": "b"}).measure == [None]
    with pytest.raises(InputError, match="expected delta for kind standard"):
        parse_study({"classifiers": "a", "data": "b", "property": "standard"})


def test_radii_keep_the_keys_that_they_had_before_there_were_reaches() -> None:
    assert unit(4, target=7, search_parameters={"tolerance": 0.002}).key == "580216a420f8a16e08eeaadecc293f4b"
    assert (
        Setting.of(Standard(10), Norm.of("l2"), identity="native 1", seed=0).key == "deb94011eabe83e0ed219cbdd073144d"
    )


def test_the_engine_measures_reaches_with_one_thread() -> None:
    """Loading and threads are settled before the first input's clock starts, as for radii."""
    toy = linear_toy(3)
    points = [Instance(np.full(toy.weight.shape[1], 0.5, np.float32), 0, index=i) for i in range(2)]
    seen: list[tuple[int, int]] = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        tell = lambda place, _: seen.append((place, torch.get_num_threads()))  # noqa: E731
        Native().reach(toy.classifier, points, Standard(1), Norm.of("linf"), SIZE, Budget(nodes=9), progress=tell)
        assert seen == [(0, 1), (1, 1)]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_regression_head_needs_no_label() -> None:
    toy = linear_toy(3)
    data = (np.full((2, toy.weight.shape[1]), 0.5, np.float32), np.array([7, 9]))
    dist = radii.distribution(toy.classifier, data, reach=SIZE, property="standard", nodes=50, seconds=None)
    assert (dist.status == "closed").all()
    with pytest.raises(InputError, match="label"):
        radii.distribution(toy.classifier, data, reach=SIZE, property="strong")
