"""Every example of docs/extending.md is run as it is printed, in one program and as an installed package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from radii.problem import property
from radii.train.methods import base

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.M)[1:]
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
DEFINITIONS = [block for block in BLOCKS if re.search(r"^(class|def) (?!Test)", block, re.M)]


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What the examples define, after all of them have run in their order."""
    found: dict[str, Any] = {"__name__": "docs_extending"}
    sys.modules["docs_extending"] = type(sys)("docs_extending")
    known = dict(property._registered)
    property._registered.pop("below", None)  # another test may run the same page
    trainers = dict(base._registered)
    base._registered.pop("noise", None)
    for block in BLOCKS:
        exec(compile(block, "docs/extending.md", "exec"), found)
    yield found
    property._registered.clear()
    property._registered.update(known)
    base._registered.clear()
    base._registered.update(trainers)
    del sys.modules["docs_extending"]


def test_every_extension_point_has_an_example() -> None:
    rows = re.findall(r"^\| \[([^]]+)\]\(#([\w-]+)\)", PAGE, flags=re.M)
    titles = {re.sub(r"[^\w -]", "", one.splitlines()[0]).strip().lower().replace(" ", "-"): one for one in SECTIONS}
    assert len(rows) == 9
    assert all("```python" in titles[anchor] for _, anchor in rows)


def test_the_examples_run(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert names["radius"].lower > 0
    assert names["radius"].upper is None
    assert names["branched"].status == "closed"
    assert "branching=widest" in names["native"].identity
    low, high = names["weakest_tenth"](names["dist"])
    assert (low, high) == (0.0, 0.015)
    assert names["trained"].classifier.classes == 10


def test_the_runner_passes_its_exam(names: dict[str, Any], tmp_path: Path) -> None:
    exam = names["TestLastFirst"]()
    questions = [getattr(exam, name) for name in dir(exam) if name.startswith("test_")]
    assert len(questions) > 10
    for question in questions:
        question(**({"tmp_path": tmp_path} if "tmp_path" in question.__code__.co_varnames else {}))


def test_names_of_an_installed_package_work_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "my_package.py").write_text("\n\n".join(DEFINITIONS), encoding="utf-8")
    (points,) = re.findall(r"^```toml\n(.*?)^```", PAGE, flags=re.M | re.S)
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    groups = tomllib.loads(points)["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (info / "RECORD").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def radii(*words: str) -> str:
        command = [sys.executable, "-m", "radii.cli.main", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert radii("shape", "zoo:mnist5k-standard") == "1x28x28 -> 10\n"
    assert "shape" in radii("--help")
    assert "intervals" in radii("verifiers").split()
    assert "corners" in radii("attacks").split()
    assert "noise" in radii("train", "--list").split()
    words = [
        "radius",
        "zoo:mnist5k-standard",
        "--data",
        "mnist5k",
        "--index",
        "0",
        "--grid",
        "0.001:0.003:0.001",
        "--json",
    ]
    (proven,) = json.loads(radii(*words, "--verifier", "intervals"))
    assert (proven["verifier"], proven["status"], proven["lower"]) == ("intervals", "robust", 0.003)
    (tried,) = json.loads(radii(*words, "--verifier", "attack:corners", "--property", "below:3,50"))
    assert (tried["property"], json.loads(tried["property_parameters"])) == ("below", {"which": 3, "limit": 50.0})
    assert tried["lower"] is None
