"""The command line's frame: help, version, usage errors and exit codes."""

from __future__ import annotations

import json
import re

import pytest
from tests.cli.command import radii, refused

from radii.cli.main import COMMANDS


def test_help_lists_every_command() -> None:
    done = radii("--help")
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = radii(name, "--help")
    assert done.returncode == 0
    assert f"radii {name}" in re.split("Examples?:", done.stdout)[1]


def test_version() -> None:
    done = radii("--version")
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")
    assert radii("--name").stdout == "radii\n"


def test_without_a_command_help_is_shown_and_the_code_is_2() -> None:
    done = radii()
    assert done.returncode == 2
    assert "Usage: radii" in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["radiuss"], "did you mean 'radius'?"),
        (["radius", "net.onnx"], "--data"),
        (["radius", "net.onnx", "--data", "digits", "--normm", "l2"], "--norm"),
        (["demo", "--inputs", "0"], "--inputs"),
        (["demo", "--inputs", "many"], "--inputs"),
    ],
)
def test_usage_errors_are_one_line(words: list[str], hint: str) -> None:
    assert hint in refused(*words)


def test_datasets_lists_what_is_here() -> None:
    listed = {row["name"]: row for row in json.loads(radii("datasets", "--json").stdout)}
    assert listed["digits"]["here"] is True
    assert listed["mnist"]["get"] == "radii datasets fetch mnist" or listed["mnist"]["here"]
    assert "digits" in radii("datasets").stdout


def test_a_closed_pipe_is_not_an_error() -> None:
    import subprocess
    import sys

    command = f"{sys.executable} -m radii.cli.main datasets | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    assert done.stdout.startswith("data set")
