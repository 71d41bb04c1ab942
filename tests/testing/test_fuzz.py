"""The fuzzer: 200 radii and 100 specifications held to its oracles, and the oracles held to what they must find."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import fuzz
from fuzzing.ask import ARITHMETICS, NORMS, radius_case, single
from fuzzing.build import fractions
from fuzzing.judge import judge_claim
from fuzzing.oracle import Runtime
from fuzzing.planted import Spike, linear_network
from fuzzing.recipes import random_network

from radii.engine.native import Native
from radii.problem import Proof, Radius

RADII = 200 // 4  # networks, of four radii each
SPECS = 100
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_no_radius_is_refuted(part):
    rows = [fuzz.run(("radius", 0, index)) for index in range(part, RADII, PARTS)]
    assert [row["violations"] for row in rows if row["violations"]] == []
    assert sum(row.get("counts", {}).get("proven", 0) for row in rows) > 0


@pytest.mark.parametrize("part", range(PARTS))
def test_no_specification_is_refuted(part):
    rows = [fuzz.run(("spec", 0, index)) for index in range(part, SPECS, PARTS)]
    assert [row["violations"] for row in rows if row["violations"]] == []
    assert {status for row in rows for status in row["status"]} & {"robust", "broken"}


def mild(seed: int):
    """A random network without weights that cost float32 its digits."""
    for attempt in range(1000):
        network, profile = random_network(np.random.default_rng([5, seed, attempt]), deployed=True)
        lossy = network.curved or network.double or {"Sub", "BatchNormalization"} & {*network.operators}
        if profile in ("plain", "ties", "sparse", "equal") and not lossy:
            return network
    raise AssertionError("no mild network among a thousand")


@pytest.mark.parametrize("seed", range(20))
def test_evaluator_equals_onnxruntime_and_fractions(seed):
    network = mild(seed)
    x = np.random.default_rng(seed).random((5, int(np.prod(network.shape)))).astype(np.float32).astype(np.float64)
    outputs = network.run(x)
    scale = np.abs(outputs).max() + 1e-3
    assert np.abs(Runtime(network)(x) - outputs).max() <= 1e-4 * scale
    assert np.abs(Runtime(network)(x, optimised=False) - outputs).max() <= 1e-4 * scale
    assert np.abs(network.run(fractions(x)).astype(np.float64) - outputs).max() <= 1e-12 * scale


def claims(recipe: str, arithmetic: str):
    """Six cases of a recipe, and how far their only input is from a point of another class."""
    base, found = single(radius_case(9, 0), 0), 0
    for index in range(1000):
        rng, norm = np.random.default_rng([6, index]), NORMS[index % 3]
        spike = Spike(rng) if recipe == "spike" else None
        network = mild(index) if recipe == "random" else linear_network(rng)[0] if spike is None else spike.network
        inputs = int(np.prod(network.shape))
        x = (rng.integers(0, 65, (1, inputs)) / 64).astype(np.float32).astype(np.float64)
        points = rng.random((4096, inputs)) if spike is None else spike.place[None]
        label = int(network.run(x)[0].argmax())
        other = points[network.run(points).argmax(1) != label]
        # With more than two inputs only planes of a ball are searched, and a random network may pass.
        if not len(other) or (recipe == "random" and inputs > 2) or (spike is not None and label):
            continue
        distance = np.linalg.norm(other - x, {"linf": np.inf, "l1": 1, "l2": 2}[norm], axis=1).min()
        asked = {"recipe": recipe, "arithmetic": arithmetic, "norm": norm, "domain": (0.0, 1.0), "target": None}
        yield replace(base, network=network, spike=spike, x=x, labels=[label], index=index, **asked), float(distance)
        found += 1
        if found == 6:
            return


@pytest.mark.parametrize("recipe", ["random", "linear", "spike"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_claims_that_are_too_large_are_refuted(recipe, arithmetic):
    """Balls that hold a point of another class: the oracles must find one, without being told where."""
    found = 0
    for case, distance in claims(recipe, arithmetic):
        claim = Radius(lower=distance * 1.001, limit=9.0, proof=Proof("nothing", arithmetic))
        assert judge_claim(case, 0, claim, seed=0), f"case {case.index} passes at {distance}"
        found += 1
    assert found == 6


def test_the_planted_radius_is_that_of_the_label_outside_the_spike():
    """An input inside the spike, labelled as the network sees it there: its radius is the way out, not 0."""
    row = fuzz.run(("radius", 0, 1346))
    assert row["status"][0] == "closed"
    assert row["violations"] == []


def test_alarms_and_crashes_are_judged(monkeypatch):
    def contradiction(_, __, instances, *___, **____):
        return [Radius.found(0.75, 0.1) for _ in instances]

    case = next(c for i in range(100) if (c := radius_case(0, i)).recipe == "linear" and c.arithmetic == "float32")
    monkeypatch.setattr(Native, "measure", contradiction)
    row = fuzz.run(("radius", 0, case.index))
    assert row["status"] == ["alarm"] * 4
    assert len(row["violations"]) == 4
    monkeypatch.setattr(Native, "measure", lambda *_, **__: 1 / 0)
    assert [v["what"] for v in fuzz.run(("radius", 0, case.index))["violations"]] == [
        "crash: ZeroDivisionError: division by zero"
    ]


def test_spikes_are_wrong_where_they_are_planted():
    for seed in range(40):
        spike = Spike(np.random.default_rng(seed))
        x = np.random.default_rng([seed, 1]).integers(0, 65, len(spike.place)) / 64
        values = spike.network.run(fractions(np.stack([spike.place, spike.nearest(x), x])))
        margins = values[:, 0] - values[:, 1:].max(axis=1)
        assert margins[0] <= 0
        assert margins[1] <= 0
        assert (margins[2] <= 0) == (np.abs(x - spike.place).sum() <= spike.size)


def test_a_run_that_was_cut_off_goes_on(tmp_path, capsys):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    assert fuzz.main(["--radii", "8", "--specs", "2", "--output", str(whole)]) == 0
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:30])
    assert fuzz.main(["--radii", "8", "--specs", "2", "--output", str(cut)]) == 0
    strip = [[{**json.loads(line), "seconds": 0} for line in p.read_text().splitlines()] for p in (whole, cut)]
    assert strip[0] == strip[1]
    assert "| all | 2 | 8 |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="expected a log of seed 1"):
        fuzz.main(["--radii", "8", "--seed", "1", "--output", str(cut)])


def test_slices_end_where_rounding_leaves_a_bend_in_every_sliver():
    """Steep weights on a domain 0.001 wide: heights of a pooling are mostly rounding."""
    row = fuzz.run(("radius", 0, 4765))
    assert row["status"] == ["robust"] * 4
    assert row["violations"] == []
