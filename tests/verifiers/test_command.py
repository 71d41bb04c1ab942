"""Programs behind VNN-LIB: a real one (vibecheck), and small ones that hang, crash, talk rubbish and lie."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.verifiers.nets import Net, f32, mlp

from radii.decide import Budget
from radii.errors import InputError, ToolMissing
from radii.problem import (
    L2,
    Clause,
    Domain,
    Instance,
    Lipschitz,
    OutputSpec,
    Query,
    Reason,
    SpecQuery,
    StrongClassification,
    Verdict,
)
from radii.verifiers.catalogue import make
from radii.verifiers.command import TEMPLATES, Command
from radii.verifiers.milp import Milp

BUDGET = Budget(seconds=20)
VIBECHECK = Path(__file__).resolve().parents[2] / ".venv-vibecheck" / "bin" / "vibecheck"
needs_vibecheck = pytest.mark.skipif(
    not VIBECHECK.exists(),
    reason="VIBECHECK ABSENT: run scripts/setup_vibecheck.sh to test the command verifier for real",
)


def line():
    """y0 = x, y1 = −x: the input 0.5 with label 0 has radius 0.5."""
    net = Net((1,))
    net.add("Gemm", f32([[1.0], [-1.0]]), f32([0.0, 0.0]), transB=1)
    return net.build(2, Domain(-1, 1))


HALF = Instance(f32([0.5]), 0)


def script(tmp_path, body: str, arguments: str = "{network} {query} {timeout} {out}") -> Command:
    """A program that runs `body`; sys.argv holds the network, the query, the time limit and the result file."""
    file = tmp_path / "tool.py"
    file.write_text("import os, sys, time\n" + body)
    return Command(f"{sys.executable} {file} {arguments}", name="tool")


def ask(command: Command, epsilon: float, budget: Budget = BUDGET):
    return command.decide(line(), [Query(HALF, epsilon)], budget)[0]


def test_a_claim_of_unsat_is_recorded_as_a_claim(tmp_path):
    answer = ask(script(tmp_path, "print('unsat')"), 0.4)
    assert answer.verdict is Verdict.ROBUST
    assert (answer.proof.kind, answer.proof.arithmetic, answer.proof.tool) == ("external", "claim", "tool")


@pytest.mark.parametrize(
    "body",
    [
        "print('sat'); print('((X_0 -0.25)'); print('(Y_0 -0.25) (Y_1 0.25))')",
        "print('sat'); print('X float32 [1]'); print('-2.5e-1')",
        "print('loading...'); print('Result: sat'); print('((X_0 -0.25))')",
        "open(sys.argv[4], 'w').write('violated\\n((X_0 -0.25))')",
    ],
)
def test_a_true_witness_breaks_in_every_form(tmp_path, body):
    answer = ask(script(tmp_path, body), 0.8)
    assert answer.verdict is Verdict.BROKEN
    assert answer.witness.distance == 0.75


def test_a_witness_a_hair_outside_the_ball_is_moved_in(tmp_path):
    assert ask(script(tmp_path, "print('sat'); print('((X_0 -0.3000001))')"), 0.8).verdict is Verdict.BROKEN


LIES = {
    "not adversarial": "print('sat'); print('((X_0 0.4))')",
    "no witness": "print('sat')",
    "wrong length": "print('sat'); print('((X_0 0.1) (X_1 0.2))')",
    "not a number": "print('sat'); print('((X_0 nan))')",
    "rubbish witness": "print('sat'); print('(((((')",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_false_witness_is_never_broken(tmp_path, lie):
    answer = ask(script(tmp_path, LIES[lie]), 0.3)
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.ERROR)
    assert "said sat" in answer.detail


MISBEHAVIOUR = {
    "hang": ("time.sleep(600)", Reason.TIME),
    "spin": ("while True: pass", Reason.TIME),
    "crash": ("os.kill(os.getpid(), 11)", Reason.ERROR),
    "exception": ("raise RuntimeError('no licence')", Reason.ERROR),
    "rubbish": ("print('\\x00\\xff' * 5000)", Reason.ERROR),
    "silence": ("", Reason.ERROR),
    "unsat, then a crash": ("print('unsat', flush=True); os.abort()", Reason.ERROR),
    "unknown": ("print('unknown')", Reason.INCOMPLETE),
    "its own time-out": ("print('timed-out')", Reason.TIME),
    "eats memory": ("a = []\nwhile True: a.append(bytearray(2**22))", Reason.MEMORY),
    "forks": ("[os.fork() for _ in range(3)]\ntime.sleep(600)", Reason.TIME),
}


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
def test_misbehaviour_is_an_answer_with_its_reason(tmp_path, kind):
    body, reason = MISBEHAVIOUR[kind]
    answer = ask(script(tmp_path, body), 0.3, Budget(seconds=0.3, memory=300 * 2**20))
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, reason)
    if kind == "exception":
        assert "no licence" in answer.detail


def test_the_program_gets_what_it_needs(tmp_path):
    body = (
        "import onnx; onnx.checker.check_model(sys.argv[1])\n"
        "text = open(sys.argv[2]).read()\n"
        "assert '(declare-const X_0 Real)' in text and sys.argv[3] == '7', (text, sys.argv)\n"
        "open('dropped', 'w').write('x'); print('unsat')"
    )
    assert ask(script(tmp_path, body), 0.25, Budget(seconds=6.5)).verdict is Verdict.ROBUST
    assert not Path("dropped").exists()


def test_three_scripts_of_the_competition(tmp_path):
    (tmp_path / "prepare_instance.sh").write_text('#!/bin/bash\n[ "$1" = v1 ] && cp "$3" "$3.prepared"\n')
    (tmp_path / "run_instance.sh").write_text(
        '#!/bin/bash\n[ -f "$3.prepared" ] && [ "$2" = cat ] && echo unsat > "$5"\necho noise\n'
    )
    assert ask(Command.scripts(tmp_path, "cat"), 0.3).verdict is Verdict.ROBUST
    (tmp_path / "run_instance.sh").unlink()
    with pytest.raises(InputError, match=r"no run_instance\.sh"):
        Command.scripts(tmp_path)


def test_what_a_file_cannot_say_is_unsupported(tmp_path):
    command = script(tmp_path, "print('unsat')")
    for query in (Query(HALF, 0.1, norm=L2), Query(HALF, 0.1, Lipschitz(2.0))):
        (answer,) = command.decide(line(), [query], BUDGET)
        assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.UNSUPPORTED)


def test_bad_command_lines_are_refused():
    with pytest.raises(InputError, match=r"\{network\} and \{query\}"):
        Command("tool {query}")
    with pytest.raises(InputError, match="did you mean 'network'"):
        Command("tool {netwrk} {query}")
    with pytest.raises(InputError, match="command line"):
        Command("tool '{network} {query}")
    with pytest.raises(ToolMissing, match="no-such-tool"):
        ask(Command("no-such-tool {network} {query}"), 0.1)
    for name in TEMPLATES:
        assert "{network}" in make({"command": name, "cwd": "."}).command


@pytest.fixture(scope="module")
def vibecheck():
    return make({"command": TEMPLATES["vibecheck"].replace("vibecheck", str(VIBECHECK), 1), "name": "vibecheck"})


@needs_vibecheck
def test_vibecheck_agrees_with_milp(vibecheck):
    rng = np.random.default_rng(4)
    network = mlp(rng, [4, 10, 8, 3])
    x = f32(rng.uniform(0.2, 0.8, 4))
    instance = Instance(x, int(network.predict(x)))
    queries = [Query(instance, e) for e in (0.01, 0.4)]
    expected = [a.verdict for a in Milp().decide(network, queries, BUDGET)]
    assert set(expected) == {Verdict.ROBUST, Verdict.BROKEN}
    answers = vibecheck.decide(network, queries, Budget(seconds=300))
    assert [a.verdict for a in answers] == expected, [a.detail for a in answers]


@needs_vibecheck
def test_vibecheck_takes_version_two_and_other_properties(vibecheck):
    two = make({"command": vibecheck.command, "version": "2.0", "name": "vibecheck"})
    network = mlp(np.random.default_rng(4), [3, 6, 2])
    x = f32([0.4, 0.5, 0.6])
    value = float(network(x)[0])
    query = Query(Instance(x, 0), 0.05, StrongClassification(value + 0.001))
    (answer,) = two.decide(network, [query], Budget(seconds=300))
    assert answer.verdict is Verdict.BROKEN, answer.detail
    spec = OutputSpec((Clause(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([value - 5.0, 9.0])),))
    box = SpecQuery(x - 0.01, x + 0.01, spec)
    assert vibecheck.decide_spec(network, box, Budget(seconds=300)).verdict is Verdict.ROBUST
