"""`radii verify` as a VNN-LIB solver: verdicts that hold, witnesses that replay, and one line for bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from radii.cli.main import run
from radii.cli.supports import capability
from radii.formats import Layout, parse_vnnlib, read_witness, spec_text
from radii.problem import Clause, OutputSpec, SpecQuery
from radii.testing.toys import relu_toy

VNNCOMP = Path(__file__).parents[2] / "vnncomp"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of two inputs, so that its box can be looked at point by point."""
    return relu_toy(1, (2, 6, 5, 3), domain=None).save(tmp_path_factory.mktemp("net") / "toy.onnx")


def outputs(model: Path, x: Any) -> Any:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: row[None]})[0] for row in np.asarray(x, np.float32)])


def solve(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[str, list[str], str]:
    code = run(["verify", *map(str, arguments), "--verifier", "milp"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    first, *rest = captured.out.splitlines()
    return first, rest, captured.err


@pytest.mark.parametrize("layout", [Layout(), Layout("2.0", network="f", input_shape=(1, 2), output_shape=(1, 3))])
def test_verdicts_hold(tmp_path: Path, model: Path, layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    axis = np.linspace(0, 1, 31)
    unit = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    seen = []
    for case in range(8):
        low = rng.uniform(-1, 0, 2)
        high = low + rng.uniform(0, 1, 2)
        inside = (low + unit * (high - low)).astype(np.float32)
        values = outputs(model, inside)
        # A threshold just beyond, or just within, what the box reaches: both verdicts come up.
        row = np.zeros((1, 3))
        row[0, case % 3] = 1.0
        reach = values[:, case % 3].min()
        threshold = reach + (0.02 if case < 4 else -0.05) * (np.ptp(values[:, case % 3]) + 0.1)
        query = SpecQuery(low, high, OutputSpec((Clause(row, np.array([threshold])),)))
        path = tmp_path / f"{case}.vnnlib"
        path.write_text(spec_text(query, layout=layout))
        verdict, rest, log = solve(capsys, path, "--network", f"f={model}", "--timeout", 60)
        seen.append(verdict)
        if verdict == "sat":
            witness = read_witness("\n".join(rest))
            x = witness["X"].astype(np.float32)
            assert np.array_equal(x.astype(np.float64), witness["X"])
            assert np.all((x >= low) & (x <= high))
            y = outputs(model, [x])[0]
            np.testing.assert_array_equal(y, witness["Y"].astype(np.float32))
            assert query.spec.violated(y)
            assert "broken" in log
        else:
            assert verdict == "unsat"
            assert not any(query.spec.violated(y) for y in values)
            assert rest == []
            assert "robust" in log
    assert set(seen) == {"sat", "unsat"}


def test_several_boxes_and_the_form_of_the_answer(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "(declare-const X_0 Real)(declare-const X_1 Real)" + "".join(f"(declare-const Y_{i} Real)" for i in range(3))
    box = "(and (>= X_0 {0}) (<= X_0 {1}) (>= X_1 {0}) (<= X_1 {1}) (<= Y_0 {2}))"
    low = outputs(model, [[1.0, 1.0]])[0, 0]
    path = tmp_path / "two.vnnlib"
    path.write_text(head + f"(assert (or {box.format('0.0', '0.1', '-999.0')} {box.format('1.0', '1.0', low + 0.5)}))")
    verdict, rest, _ = solve(capsys, path, "--network", model)
    assert verdict == "sat"
    assert rest[0] == "X Real [2]"
    assert rest[3] == "Y Real [3]"
    np.testing.assert_array_equal(read_witness("\n".join(rest))["X"], [1.0, 1.0])
    _, rest, _ = solve(capsys, path, "--network", model, "--form", "vnncomp")
    assert rest[:2] == ["((X_0 1.0)", " (X_1 1.0)"]
    verdict, rest, _ = solve(capsys, path, "--network", model, "--serialise-assignments", tmp_path / "out")
    assert (verdict, rest) == ("sat", [])
    back = numpy_helper.to_array(onnx.load_tensor(tmp_path / "out" / "X.pb"))
    np.testing.assert_array_equal(back, np.array([1, 1], np.float32))


def test_answers_that_need_no_search(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "(declare-const X_0 Real)(declare-const X_1 Real)" + "".join(f"(declare-const Y_{i} Real)" for i in range(3))
    path = tmp_path / "q.vnnlib"
    path.write_text(head + "(assert (<= X_0 0.0))(assert (>= X_0 1.0))(assert (<= Y_0 0.0))")
    assert solve(capsys, path, "--network", model)[0] == "unsat"
    path.write_text(head + "(assert (<= X_0 0.0))(assert (>= X_0 0.0))(assert (<= X_1 0.0))(assert (<= Y_0 0.0))")
    verdict, _, log = solve(capsys, path, "--network", model)
    assert verdict == "unknown"
    assert "X_1 has no lower" in log


def test_a_witness_that_only_meets_a_strict_condition_with_equality_is_no_answer(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = outputs(model, [[0.5, 0.5]])[0, 0]
    text = spec_text(
        SpecQuery(
            np.array([0.5, 0.5]),
            np.array([0.5, 0.5]),
            OutputSpec((Clause(np.array([[-1.0, 0.0, 0.0]]), np.array([-float(reached)])),)),
        )
    )
    path = tmp_path / "q.vnnlib"
    path.write_text(text)
    assert solve(capsys, path, "--network", model)[0] == "sat"
    path.write_text(text.replace("(>= Y_0", "(> Y_0"))
    assert any(parse_vnnlib(path.read_text()).strictness)
    verdict, _, log = solve(capsys, path, "--network", model)
    assert verdict in ("unsat", "unknown")
    assert "equality" in log or verdict == "unsat"


@pytest.mark.parametrize(
    ("text", "network", "says"),
    [
        ("(assert (<= X_0 1))", "N={model}", "X_0, X_1, ... to be declared"),
        (
            "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= Y_0 1))",
            "N={model}",
            "1 inputs [1], got one with 2",
        ),
        ("{two}(assert (<= X_0 X_1))", "N={model}", "not a box"),
        ("{two}(assert (<= X_0 1))", "nonsense", "NAME=MODEL"),
        ("{two}(assert (<= X_0 1))", "N=absent.onnx", "absent.onnx"),
        ("{v2}(assert (<= X[0] 1.0))", "g={model}", "expected the network f"),
        ("{v2}(assert (<= X[0] 1.0))".replace("v2", "v2double"), "f={model}", "float32 or real, got float64"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str], text: str, network: str, says: str
) -> None:
    v2 = "(vnnlib-version <2.0>)(declare-network f (declare-input X float32 [2])(declare-output Y float32 [3]))"
    heads = {
        "{two}": "(declare-const X_0 Real)(declare-const X_1 Real)" + "(declare-const Y_0 Real)",
        "{v2}": v2,
        "{v2double}": v2.replace("float32", "float64"),
    }
    for key, value in heads.items():
        text = text.replace(key, value)
    path = tmp_path / "q.vnnlib"
    path.write_text(text)
    assert run(["verify", str(path), "--network", network.format(model=model), "--verifier", "milp"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert says in captured.err


def test_the_clock_stops_a_solver_that_does_not_look_at_it() -> None:
    script = (
        "import time\nfrom radii.cli.deadline import Deadline\nlimit = Deadline(0.1)\n"
        "with limit.guard():\n    time.sleep(60)\nlimit.say('sat')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, "timed-out\n")


def test_a_module_that_is_still_being_loaded_does_not_keep_it_from_ending() -> None:
    code = (
        "import sys, time, types\nfrom radii.cli.deadline import Deadline\n"
        "sys.modules['radii.verifiers.process'] = types.ModuleType('radii.verifiers.process')\n"
        "with Deadline(0.1).guard():\n    time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (done.returncode, done.stdout) == (0, "timed-out\n")


def test_only_what_a_query_needs_is_loaded(tmp_path: Path, model: Path) -> None:
    """The seconds of a solver count from its start, and statistics, stores and pictures take one or two of them."""
    query = SpecQuery(np.zeros(2), np.zeros(2), OutputSpec((Clause(np.zeros((1, 3)), np.zeros(1)),)))
    path = tmp_path / "q.vnnlib"
    path.write_text(spec_text(query))
    script = (
        "import sys\nfrom radii.cli.main import run\n"
        f"assert run(['verify', {str(path)!r}, '--network', {str(model)!r}]) == 0\n"
        "heavy = ('radii.store', 'radii.stats', 'radii.report', 'scipy.stats', 'sqlalchemy', 'pandas', 'matplotlib')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "sat", done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_questions_of_the_solver_database() -> None:
    """Thirteen commands; the version is the first line, alone, and every answer is one of the permitted words."""
    from radii import __version__

    def lines(*words: str) -> list[str]:
        done = subprocess.run([sys.executable, "-m", "radii.cli.main", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert lines("--name") == ["radii"]
    assert lines("--version") == [__version__]
    low, high = map(int, lines("supports", "--onnx-opset-versions"))
    assert low < high
    assert len(lines("supports", "--vnnlib-versions")) == 2
    assert lines("supports", "--optimised-disjunctive-reasoning")[0] in ("true", "false")
    assert lines("supports", "--serialise-assignments") == ["true"]
    assert lines("supports", "--arithmetic-complexity-theories") == ["BND", "OUTC"]


def test_what_radii_supports() -> None:
    first, last = map(int, capability("onnx_opset_versions"))
    assert first <= 8 < 17 <= last
    assert {"Gemm", "Conv", "Relu"} <= set(capability("onnx_operators"))
    assert capability("vnnlib_versions") == ["1.0", "2.0"]
    assert {line.split()[0] for line in capability("onnx_element_types")} == {"real", "float32"}
    for question in ("hidden_nodes", "multiple_io", "multiple_networks", "node_comparisons", "arithmetic"):
        assert set(capability(question)) <= {"NH", "SIO", "SNET", "SNC", "BND", "OUTC"}


@pytest.mark.parametrize("name", ["install_tool.sh", "prepare_instance.sh", "run_instance.sh"])
def test_the_scripts_refuse_another_version(name: str) -> None:
    done = subprocess.run([VNNCOMP / name, "v9"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "expected" in done.stderr


@pytest.mark.slow
def test_run_instance(tmp_path: Path, model: Path) -> None:
    corner = SpecQuery(np.zeros(2), np.zeros(2), OutputSpec((Clause(np.zeros((1, 3)), np.zeros(1)),)))
    query, out = tmp_path / "q.vnnlib", tmp_path / "out.txt"
    query.write_text(spec_text(corner))
    environment = {
        "RADII_VENV": str(Path(sys.executable).parents[1]),
        "RADII_VERIFIER": "milp",
        "PATH": "/usr/bin:/bin",
    }
    for script, extra in (("prepare_instance.sh", []), ("run_instance.sh", [out, "60"])):
        command = [VNNCOMP / script, "v1", "toy", model, query, *extra]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
    lines = out.read_text().splitlines()
    assert lines[:3] == ["sat", "((X_0 0.0)", " (X_1 0.0)"]
    broken = tmp_path / "broken.vnnlib"
    broken.write_text("(assert")
    command = [VNNCOMP / "run_instance.sh", "v1", "toy", model, broken, out, "60"]
    subprocess.run(command, capture_output=True, check=False, env=environment)
    assert out.read_text() == "error\n"
