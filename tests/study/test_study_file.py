"""Study files: what they may say, what they mean, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.study.build import toy_study, written

from radii.errors import InputError
from radii.study.file import parse_study, read_study
from radii.study.plan import load_plan

BASE: dict[str, Any] = {"classifiers": "a.onnx", "data": {"source": "mnist"}}


def test_defaults_and_single_values() -> None:
    study = parse_study({**BASE, "norm": "l2", "property": "classification", "search": "direct"}, name="mine")
    assert (study.name, study.norm, study.seed) == ("mine", ["l2"], 0)
    assert study.budget.values() == {"seconds": 60.0, "memory": None, "nodes": None}


def test_a_budget_of_nodes_has_no_clock() -> None:
    assert parse_study({**BASE, "budget": {"nodes": 9}}).budget.values()["seconds"] is None
    both = parse_study({**BASE, "budget": {"nodes": 9, "seconds": 5, "memory": "4GiB"}}).budget.values()
    assert both == {"seconds": 5.0, "memory": 4 * 2**30, "nodes": 9}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clasifiers": []}, "did you mean 'classifiers'?"),
        ({"data": {"sorce": "mnist"}}, "did you mean 'source'?"),
        ({"data": {"source": "mnist", "only": "wrong"}}, "'correct' or 'all'"),
        ({"search": {"method": "direct", "tolerence": 1}}, "did you mean 'tolerance'?"),
        ({"search": {"method": "direct", "tolerance": "150%"}}, "search tolerance: expected a number above 0, or per"),
        ({"search": {"method": "direct", "grid": {"start": 0}}}, "expected no grid"),
        ({"search": {"method": "kbinary"}}, "expected a grid"),
        ({"property": {"kind": "strong"}}, "expected eta"),
        ({"property": {"kind": "strong", "eta": 0.5, "target": 3}}, "expected eta, on for kind strong, got 'target'"),
        ({"property": {"kind": "lipschits"}}, "did you mean 'lipschitz'?"),
        ({"property": {"kind": "standard", "detla": 1}}, "did you mean 'delta'?"),
        ({"property": {"kind": "standard", "delta": 0}}, "delta: expected a number above 0"),
        ({"property": {"target": []}}, "empty list"),
        ({"budget": {"secnds": 1}}, "did you mean 'seconds'?"),
        ({"budget": {"seconds": 0}}, "above 0"),
        ({"budget": {"memory": "4 apples"}}, "4GiB"),
        ({"seed": -1}, "seed"),
        ({"classifiers": []}, "classifiers"),
    ],
)
def test_what_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=r"study\.yaml") as caught:
        parse_study({**BASE, **change}, "study.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nname: b\n", "twice"),
        ("name: [a\n", "YAML"),
        ("- 1\n", "got list"),
        ("", "got NoneType"),
    ],
)
def test_damaged_files(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_study(path)
    with pytest.raises(InputError, match="expected a study file"):
        read_study(tmp_path / "absent.yaml")


def test_ranges_are_not_minutes(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    path.write_text("classifiers: a.onnx\ndata: {source: mnist, indices: 10:20}\n")
    assert read_study(path).data[0].indices == "10:20"


def test_product_of_lists(tmp_path: Path) -> None:
    half = [{"source": "points.npz", "indices": part} for part in ("0:3", "2:6")]
    search = [{"tolerance": "1/100"}, {"method": "kbinary", "k": 2, "grid": {"values": ["8/255", 0.1]}}]
    path = toy_study(tmp_path / "a", data=half, norm=["linf", "l2"], search=search)
    plan = load_plan(path)
    # 2 networks x 6 different inputs (one is in both halves) x 2 norms x 2 searches
    assert plan.counts() == {"toy0": 24, "toy1": 24}
    assert len({unit.key for unit in plan.records}) == 48
    parameters = [unit.setting.search_parameters for unit in plan.records if unit.setting.search == "kbinary"]
    assert parameters[0] == {"grid": [8 / 255, 0.1], "k": 2}
    assert {
        unit.setting.search_parameters["tolerance"] for unit in plan.records if unit.setting.search == "direct"
    } == {0.01}


def test_targets(tmp_path: Path) -> None:
    every = load_plan(toy_study(tmp_path / "a", nets=1, property={"target": "all"}))
    labels = np.array([unit.instance.label for unit in every.units])
    assert len(every.units) == 6 * 2
    assert all(unit.record.setting.target != label for unit, label in zip(every.units, labels, strict=True))
    one = load_plan(toy_study(tmp_path / "b", nets=1, property={"target": 0}))
    zeros = sum(1 for unit in every.units if unit.instance.label == 0) // 2
    assert (len(one.units), one.skipped) == (6 - zeros, zeros)
    with pytest.raises(InputError, match="expected a target from 0 to 2, got 9"):
        load_plan(toy_study(tmp_path / "c", property={"target": 9}))


def test_keys_follow_content_not_place(tmp_path: Path) -> None:
    here, there = (load_plan(toy_study(tmp_path / name)) for name in ("a", "b"))
    assert [unit.key for unit in here.records] == [unit.key for unit in there.records]
    other = load_plan(toy_study(tmp_path / "c", seed=1))
    assert not {unit.key for unit in here.records} & {unit.key for unit in other.records}
    richer = load_plan(toy_study(tmp_path / "d", budget={"nodes": 51}))
    assert [unit.key for unit in here.records] == [unit.key for unit in richer.records]


def test_networks_that_cannot_be_told_apart(tmp_path: Path) -> None:
    path = toy_study(tmp_path / "a", classifiers=["nets/toy0.onnx", {"path": "nets/toy1.onnx", "name": "toy0"}])
    with pytest.raises(InputError, match="different names"):
        load_plan(path)
    with pytest.raises(InputError, match="match 'nope/"):
        load_plan(written(tmp_path / "a", {**yaml.safe_load(path.read_text()), "classifiers": "nope/*.onnx"}))


def test_direct_needs_a_verifier_that_measures(tmp_path: Path) -> None:
    command = {"command": "solver {query} --network N={network} --timeout {timeout}"}
    with pytest.raises(InputError, match="kbinary"):
        load_plan(toy_study(tmp_path / "a", verifier=command))
