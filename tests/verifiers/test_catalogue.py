"""Verifiers by name: built in, commands, and those of another package that is really installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from radii import load_classifier
from radii.decide import Decider
from radii.errors import InputError, ToolMissing
from radii.verifiers.catalogue import available, make
from radii.verifiers.command import Command
from radii.verifiers.milp import Milp
from radii.verifiers.portfolio import Portfolio

PLUGIN = '''
from dataclasses import dataclass
from radii.problem import Answer, Reason

@dataclass(frozen=True)
class Shrug:
    """Never knows."""
    mood: str = "calm"
    identity: str = "shrug 1"
    proves: bool = True
    refutes: bool = False

    def decide(self, classifier, queries, budget):
        return [Answer.unknown(Reason.INCOMPLETE, self.mood) for _ in queries]
'''


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A distribution with an entry point, laid out as an installer leaves it."""
    (tmp_path / "shrugger.py").write_text(PLUGIN)
    info = tmp_path / "radii_shrug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: radii-shrug\nVersion: 1.0\n")
    points = "[radii.verifiers]\nshrug = shrugger:Shrug\nbroken = shrugger:Absent\nmilp = shrugger:Shrug\n"
    (info / "entry_points.txt").write_text(points)
    (info / "RECORD").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("shrugger", None)


def test_built_in_names_make_deciders():
    for name in ("native", "milp", "smt", "marabou", "attack", "attack-only", "bounds", "bounds-only", "portfolio"):
        decider = make(name)
        assert isinstance(decider, Decider)
        assert decider.identity
    assert make({"name": "milp", "solver": "scip"}) == Milp("scip")
    assert isinstance(make({"portfolio": ["attack", {"name": "milp"}]}), Portfolio)
    assert make(Milp()) == Milp()


def test_commands_by_line_template_and_mapping():
    text = "tool {network} {query}"
    assert make(text) == make({"command": text}) == Command(text)
    assert make("vibecheck").command.startswith("vibecheck verify")
    assert make({"command": "nnenum", "cwd": "/opt"}).cwd == "/opt"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nativ", "did you mean 'native'"),
        ({"name": "milp", "sovler": "scip"}, "did you mean 'solver'"),
        ({"name": "milp", "solver": "cplex"}, "highs"),
        ({"command": "x {network} {query}", "cdw": "."}, "did you mean 'cwd'"),
        ({"portfolio": "milp"}, "list"),
        ({"portfolio": []}, "at least one"),
        ({"solver": "scip"}, "expected a key"),
        (7, "expected a name"),
    ],
)
def test_bad_names_and_options_are_refused(what, words):
    with pytest.raises(InputError, match=words):
        make(what)


def test_the_list_says_what_is_here_and_how_to_get_the_rest():
    entries = {entry.name: entry for entry in available()}
    assert {"native", "milp", "smt", "marabou", "attack", "bounds", "portfolio", "command", "vibecheck"} <= set(entries)
    assert entries["marabou"].proves == "robust (its claim) and broken"
    for entry in entries.values():
        assert entry.here or entry.install, entry.name


def test_another_package_adds_a_verifier(plugin):
    entries = {entry.name: entry for entry in available()}
    assert entries["shrug"].summary == "Never knows."
    assert entries["shrug"].needs == "radii-shrug"
    assert make({"name": "shrug", "mood": "cross"}).mood == "cross"
    assert isinstance(make("milp"), Milp)  # a built-in name cannot be taken
    assert not entries["broken"].here
    with pytest.raises(ToolMissing, match="does not load"):
        make("broken")
    with pytest.raises(InputError, match="did you mean 'mood'"):
        make({"name": "shrug", "moood": 1})


AUTHOR = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "radii-thorough"
version = "2.1"

[tool.setuptools]
py-modules = ["thorough"]

[project.entry-points."radii.verifiers"]
thorough = "thorough:Thorough"
""",
    "thorough.py": PLUGIN.replace("Shrug", "Thorough")
    .replace('identity: str = "shrug 1"', 'identity: str = "thorough 2.1"')
    .replace("refutes: bool = False", "refutes: bool = True")
    .replace(
        "return [Answer.unknown(Reason.INCOMPLETE, self.mood) for _ in queries]",
        "return Portfolio((MinimumNorm(), BoundsOnly())).decide(classifier, queries, budget)",
    )
    .replace(
        "from radii.problem import Answer, Reason",
        "from radii.attacks.min_norm import MinimumNorm\nfrom radii.verifiers.bounds_only import BoundsOnly\n"
        "from radii.verifiers.portfolio import Portfolio",
    ),
    "test_thorough.py": """
from radii.testing.verifier_exam import VerifierExam
from thorough import Thorough

class TestThorough(VerifierExam):
    norms = ("linf", "l2", "l1")
    exact = False

    def make(self):
        return Thorough()
""",
}


def test_a_package_from_pip_is_listed_used_and_examined(tmp_path):
    """As its author would: pip installs it, `radii verifiers` lists it, the shipped exam passes on it."""
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name, text in AUTHOR.items():
        (source / name).write_text(text)
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    done = called("pip", "install", *offline, "--target", site, source)
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = called("radii.cli.main", "verifiers", "--json", env=environment)
    assert done.returncode == 0, done.stderr
    (entry,) = [entry for entry in json.loads(done.stdout) if entry["name"] == "thorough"]
    assert (entry["here"], entry["needs"], entry["summary"]) == (True, "radii-thorough", "Never knows.")
    np.savez(tmp_path / "data.npz", x=np.zeros((1, 1, 28, 28), np.float32), y=[blank_label()])
    words = ("--data", tmp_path / "data.npz", "--verifier", "thorough", "--grid", "0.0001:0.5001:0.25", "--json")
    done = called("radii.cli.main", "radius", "zoo:mnist5k-conv", *words, env=environment)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["verifier"], row["lower"], row["upper"]) == ("thorough", 0.0001, 0.2501)
    done = called("pytest", "-q", "-p", "no:cacheprovider", source / "test_thorough.py", env=environment, cwd=source)
    assert done.returncode == 0, done.stdout[-2000:]


def blank_label():
    return int(load_classifier("zoo:mnist5k-conv").predict(np.zeros((1, 28, 28), np.float32)))


def called(module, *words, env=None, cwd=None):
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, check=False)


def test_importing_the_catalogue_loads_no_solver():
    code = (
        "import sys, radii.verifiers.catalogue as c; "
        "print([m for m in ('highspy', 'pyscipopt', 'z3', 'maraboupy', 'gurobipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_extra_names_the_line_that_installs_it(tmp_path):
    """In an interpreter that cannot see the optional packages."""
    blocker = tmp_path / "sitecustomize.py"
    blocker.write_text(
        "import importlib.machinery as m\n"
        "real = m.PathFinder.find_spec\n"
        "def find(cls, name, *rest): return None if name == 'maraboupy' else real(name, *rest)\n"
        "m.PathFinder.find_spec = classmethod(find)\n"
    )
    code = (
        "import radii.verifiers.catalogue as c\n"
        "from radii.errors import ToolMissing\n"
        "try: c.make('marabou')\nexcept ToolMissing as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path), "PATH": ""}
    )
    assert "pip install 'radii[marabou]'" in done.stdout, done.stderr


def test_the_set_up_script_is_there():
    script = Path(__file__).resolve().parents[2] / "scripts" / "setup_vibecheck.sh"
    assert "vibecheck-nn" in script.read_text()
