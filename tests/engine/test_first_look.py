"""The first look at a specification: what it settles holds, what it does not is left to the search, without torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.engine.test_specification import BUDGET, check, random_query
from tests.verifiers.nets import convnet, mlp

from radii.engine.first_look import first_look
from radii.engine.native import Native
from radii.engine.tuning import DEFAULT, FirstLook
from radii.problem import Clause, OutputSpec, SpecQuery, Verdict
from radii.verifiers.milp import Milp


def test_what_it_settles_a_referee_confirms() -> None:
    rng, seen = np.random.default_rng(5), []
    for case in range(40):
        network = mlp(rng, [4, 8, 6, 3])
        query = random_query(rng, network, flat=case % 4 == 0)
        answer = first_look(network, query, 0, FirstLook())
        if answer is not None:
            check(network, query, Milp().decide_spec(network, query, BUDGET).verdict, answer)
        seen.append(None if answer is None else answer.verdict)
    assert all(seen.count(kind) >= 3 for kind in (None, Verdict.ROBUST, Verdict.BROKEN)), seen


def test_other_networks_and_no_look_at_all_go_to_the_search() -> None:
    rng = np.random.default_rng(2)
    spec = OutputSpec((Clause(np.eye(3)[:1], np.full(1, -1e6)),))
    query = SpecQuery(np.zeros(25), np.ones(25), spec)
    assert first_look(convnet(rng), query, 0, FirstLook()) is None
    easy = SpecQuery(np.zeros(4), np.ones(4), spec)
    network = mlp(rng, [4, 8, 3])
    looked = Native().decide_spec(network, easy, BUDGET)
    searched = Native(tuning=replace(DEFAULT, first_look=FirstLook(most_weights=0))).decide_spec(network, easy, BUDGET)
    assert looked.verdict is searched.verdict is Verdict.ROBUST
    assert (looked.proof.kind, searched.proof.kind) == ("linear bounds", "branch and bound")


def test_an_easy_query_is_verified_without_torch(tmp_path: Path) -> None:
    network = mlp(np.random.default_rng(3), [4, 8, 6, 3])
    network.save(tmp_path / "net.onnx")
    names = [*(f"X_{i}" for i in range(4)), *(f"Y_{i}" for i in range(3))]
    declared = "".join(f"(declare-const {name} Real)" for name in names)
    box = "".join(f"(assert (>= X_{i} 0))(assert (<= X_{i} 0.1))" for i in range(4))
    script = (
        "import sys; from radii.cli.main import run; code = run(['verify', sys.argv[1], '--network', 'N=net.onnx']);"
        "print(code, 'torch' in sys.modules)"
    )
    for limit, verdict in ((-1e6, "unsat"), (1e6, "sat")):
        (tmp_path / "q.vnnlib").write_text(f"{declared}{box}(assert (<= Y_0 {limit:.1f}))")
        done = subprocess.run(
            [sys.executable, "-c", script, "q.vnnlib"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[0] == verdict, done.stderr
        assert done.stdout.split()[-2:] == ["0", "False"]
