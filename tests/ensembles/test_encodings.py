"""The encodings with a fixed number of attacks against exact joint radii, the decomposed method and the replay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.ensembles.toys import between, data_of, exact_joint_radii, exact_value, linear, members_of, two_lines

import radii
from radii.cli.main import run
from radii.ensembles.attackers import alone, best_deterministic, uniform
from radii.ensembles.encoded import Form, encoded
from radii.errors import InputError, ToolMissing
from radii.problem import Instance, Norm
from radii.problem.answer import Reason
from radii.testing import relu_toy

CLOSE = 1e-4  # proofs of the MILP charge the solver's tolerance


@pytest.mark.parametrize(("seed", "norm"), [(0, "l1"), (2, "linf")])
def test_encodings_with_enough_attacks_get_the_value(seed: int, norm: str) -> None:
    members = members_of(seed)
    data = data_of(members, seed, 2)
    exact = [exact_joint_radii(members, one, Norm.of(norm)) for one in data]
    sizes = between([r for known in exact for r in known.values()])[::2]
    assert sizes
    game = radii.ensemble(members, data, norm=norm, epsilons=sizes, method="milp", attacks=len(members), seconds=60)
    for size in sizes:
        true = exact_value(exact, len(members), size)
        low, high = game.value(size)
        assert low == pytest.approx(true, abs=CLOSE)
        assert high == pytest.approx(true, abs=CLOSE)
        attack = game.attack(size)
        assert attack is not None
        assert attack.distances.max() <= size
        assert attack.value == pytest.approx(low)
        for level in (true, true + 0.01):
            if 0 < level <= 1:
                asked = radii.ensemble(
                    members, data, norm=norm, epsilons=size, method="smt", attacks=len(members), alpha=level, seconds=60
                )
                assert asked.robust(size, level) is (level > true)


@pytest.mark.parametrize("bounds", ["crown", "interval", "plain"])
def test_constants_of_the_program_change_no_verdict(bounds: str) -> None:
    """Whatever is fixed before the solver starts: with as many attacks as members the value itself decides."""
    members = members_of(2)
    data = data_of(members, 2, 1)
    exact = [exact_joint_radii(members, one, Norm.of("l1")) for one in data]
    for size in between(list(exact[0].values()))[::3]:
        true = exact_value(exact, len(members), size)
        for level in (true, true + 0.01):
            if 0 < level <= 1:
                form = Form("milp", len(members), "check", level, bounds=bounds)
                assert encoded(members, data, Norm.of("l1"), [size], form).robust(size, level) is (level > true)


def test_too_few_attacks_get_less() -> None:
    """Two lines: one attack fools one of the members, a fair coin between two fools both half of the time."""
    members, instance = two_lines()
    ask = {"norm": "l1", "epsilons": 2, "seconds": 20}
    one = radii.ensemble(members, [instance], method="milp", attacks=1, **ask)
    two = radii.ensemble(members, [instance], method="milp", attacks=2, **ask)
    assert one.value(2) == (0.0, pytest.approx(0.0, abs=CLOSE))
    assert two.value(2) == (0.5, pytest.approx(0.5, abs=CLOSE))
    assert (one.enough, two.enough) == (False, True)
    for attacks, verdict in ((1, True), (2, False)):
        for method in ("milp", "smt"):
            found = radii.ensemble(members, [instance], method=method, attacks=attacks, alpha=0.5, **ask)
            assert found.robust(2, 0.5) is verdict


def test_the_largest_sum_may_miss_the_value() -> None:
    """Footnote 6 of the paper, on an ensemble that `scripts/find_missed_value.py` finds: no attack has both."""
    rows = [([-2.0, 0.5], 1.5), ([2.0, -1.0], 2.0), ([1.0, 2.0], 0.5)]
    members = [linear([[0, 0], weight], [bias, 0], str(k)) for k, (weight, bias) in enumerate(rows)]
    data = [Instance(np.zeros(2, np.float32), 0)]
    ask = {"norm": "l1", "epsilons": 1.1, "method": "milp", "attacks": 3, "seconds": 20}
    fair = radii.ensemble(members, data, **ask)
    summed = radii.ensemble(members, data, objective="sum", **ask)
    both = radii.ensemble(members, data, objective="sum", alpha=0.5, **ask)
    assert fair.value(1.1)[0] == pytest.approx(0.5)
    assert summed.value(1.1)[0] == 0.0
    assert summed.attack(1.1).losses.sum() == pytest.approx(2.0)
    assert both.attack(1.1).losses.sum() == pytest.approx(1.5)
    assert radii.ensemble(members, data, norm="l1", epsilons=1.1, seconds=5).value(1.1) == (0.5, 0.5)


def test_three_classes_and_a_member_that_errs_at_once() -> None:
    members = [relu_toy(seed, (2, 4, 3)) for seed in (1, 2)]
    x = np.full(2, 0.5, np.float32)
    label = int(members[0].predict(x))
    data = [Instance(x, label)]
    exact = [exact_joint_radii(members, data[0], Norm.of("linf"))]
    size = between(list(exact[0].values()))[0]
    game = radii.ensemble(members, data, norm="linf", epsilons=size, method="milp", attacks=2, seconds=30)
    assert game.value(size)[0] == pytest.approx(exact_value(exact, 2, size), abs=CLOSE)


def test_time_that_runs_out_is_unknown() -> None:
    members = [relu_toy(seed, (6, 40, 40, 2)) for seed in range(3)]
    data = [Instance(np.full(6, 0.5, np.float32), 0), Instance(np.full(6, 0.4, np.float32), 1)]
    for method in ("milp", "smt"):
        game = radii.ensemble(members, data, epsilons=0.3, method=method, attacks=3, alpha=0.97, seconds=0.05)
        found = game.at(0.3)
        assert found.robust(0.97) is None
        assert found.reason is Reason.TIME
        assert found.detail
        assert game.result(0.3)["reason"] == "time"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attacks": 0}, "attacks: expected a whole number of at least 1"),
        ({}, "attacks: expected the number"),
        ({"attacks": 2, "alpha": 0}, "alpha: expected a number above 0"),
        ({"attacks": 2, "alpha": 1.5}, "alpha"),
        ({"attacks": 2, "norm": "l2"}, "expected the norm l1 or linf, got l2"),
        ({"attacks": 2, "objective": "min"}, "objective"),
        ({"attacks": 2, "objective": "check"}, "alpha: expected a value"),
        ({"attacks": 2, "solver": "abacus"}, "milp solver"),
        ({"attacks": 2, "method": "smt"}, "alpha: expected a value for method smt"),
        ({"attacks": 2, "method": "guess"}, "method"),
        ({"attacks": 2, "method": "decomposed"}, "method decomposed: expected no attacks"),
        ({"attacks": 2, "store": "game.db"}, "expected no store"),
        ({"attacks": 2, "epsilons": None}, "epsilon: expected the sizes"),
    ],
)
def test_bad_questions_are_refused_in_one_line(options: dict[str, object], said: str) -> None:
    members, instance = two_lines()
    asked = {"norm": "l1", "epsilons": 2, "method": "milp", **options}
    with pytest.raises(InputError, match=said) as caught:
        radii.ensemble(members, [instance], **asked)
    assert "\n" not in str(caught.value)


def test_smt_without_z3_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import radii.verifiers.smt as smt

    def gone(name: str) -> None:
        raise smt.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(smt.metadata, "files", gone)
    monkeypatch.setattr(smt.shutil, "which", lambda name: None)
    members, instance = two_lines()
    with pytest.raises(ToolMissing, match="pip install"):
        radii.ensemble(members, [instance], norm="l1", epsilons=2, method="smt", attacks=2, alpha=0.5)


def test_scip_agrees_with_highs() -> None:
    pytest.importorskip("pyscipopt")
    members, instance = two_lines()
    game = radii.ensemble(members, [instance], norm="l1", epsilons=2, method="milp", attacks=2, solver="scip")
    assert game.value(2) == (0.5, pytest.approx(0.5, abs=CLOSE))


@pytest.mark.parametrize("method", ["milp", "smt"])
def test_the_command_answers_at_every_size(study: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(study.read_text() + f"method: {method}\nattacks: 2\n")
    assert run(["ensemble", str(study), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["robust"]["0.5"] for row in rows] == [True, True, False]
    assert rows[-1]["value"][0] == 0.5
    assert sorted(one["fooled"] for one in rows[-1]["attacks"]) == [[["left"]], [["right"]]]
    assert not study.with_suffix(".db").exists()
    assert run(["ensemble", str(study)]) == 0
    assert "not robust" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("method: milp\n", "attacks: expected the number"),
        ("method: milp\nattacks: 0\n", "attacks: expected a whole number of at least 1"),
        ("method: milp\nattacks: 2\nobjective: least\n", "objective"),
        ("attacks: 2\n", "attacks: expected it only with method milp or smt"),
    ],
)
def test_bad_files_are_refused(study: Path, lines: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(study.read_text() + lines)
    assert run(["ensemble", str(study)]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert "\n" not in told


def test_an_open_answer_ends_with_partial(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(study.read_text() + "method: smt\nattacks: 2\nbudget: {seconds: 0.0001}\n")
    assert run(["ensemble", str(study)]) == 3
    assert "open at 2" in capsys.readouterr().err


def test_attackers_that_look_at_one_member_at_a_time() -> None:
    """Against two lines both of a member's own attacks fool nobody else: UA gets one half, BDA nothing."""
    members, instance = two_lines()
    norm = Norm.of("l1")
    assert uniform(members, [instance], norm, 2).value == pytest.approx(0.5)
    assert best_deterministic(members, [instance], norm, 2).value == 0.0
    assert alone(members, [instance], norm, 1).value == 0.0
    found = alone(members, [instance], norm, 2)
    assert found.fooled[:, 0].tolist() == [[True, False], [False, True]]
    assert found.distances.max() <= 2


def test_a_first_look_settles_tiny_and_huge_sizes() -> None:
    """Nothing is searched where bounds prove every member, or one short attack fools all; values stay exact."""
    members = members_of(2)
    data = data_of(members, 2)
    norm = Norm.of("l1")
    exact = [exact_joint_radii(members, one, norm) for one in data]
    every = [r for known in exact for r in known.values()]
    tiny, huge = 0.2 * min(r for r in every if r > 0), 0.9 * max(r for r in every if np.isfinite(r))
    for size in (tiny, huge):
        game = radii.ensemble(members, data, norm=norm, epsilons=size, seconds=5)
        true = exact_value(exact, len(members), size)
        assert game.value(size) == (pytest.approx(true), pytest.approx(true))
    assert radii.ensemble(members, data, norm=norm, epsilons=tiny, seconds=5).searches == 0
