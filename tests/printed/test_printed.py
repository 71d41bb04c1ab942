"""Every command line and every piece of Python that the project prints runs as printed."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests.printed import extract, given
from tests.printed.extract import PAGES, SHELL, Block, name_of
from tests.printed.folder import prepare

from radii.cli.main import run
from radii.problem import property as table
from radii.study.ensemble_file import EnsembleFile
from radii.study.file import parse_study, parsed
from radii.train.recipe import parse_recipe

HELPS = {words: extract.examples(command) for words, command in extract.commands()}
SHELL_SIGNS = set("|>;&$`")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed")
    here = Path.cwd()
    os.chdir(folder)
    try:
        prepare(folder)
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder as the working folder, with `radii` and `python` on the path."""
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    (tmp_path / "data").symlink_to(folder / "data")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, call in (("radii", "-m radii "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {call}"$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    return folder


def command(line: str) -> None:
    """Run one printed line; plain calls of radii run in this process, which knows the same code by heart."""
    if line in given.ELSEWHERE:
        return
    if line.startswith(given.SERVES):
        return served(line)
    expected = next((codes for start, codes in given.CODES.items() if start in line), (0,))
    if line.startswith("radii ") and not SHELL_SIGNS & set(line):
        code = run(shlex.split(line)[1:])
    else:
        code = subprocess.run(["bash", "-ec", line], timeout=600, check=False).returncode
    assert code in expected, f"exit code {code}: {line}"
    return None


def served(line: str) -> None:
    """A line that serves: it says where, answers, and ends with Ctrl-C."""
    from urllib.request import urlopen

    with subprocess.Popen(shlex.split(line + " --port 0"), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        try:
            with urlopen(first.split()[0], timeout=120) as answer:
                assert answer.status == 200
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def perform(blocks: list[Block], page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order; its Python shares one set of names, as a module that dataclasses can find."""
    names: dict[str, Any] | None = None
    module = ModuleType("printed")
    monkeypatch.setitem(sys.modules, "printed", module)
    monkeypatch.setattr(table, "_registered", dict(table._registered))  # a page's own property ends with the page
    for block in blocks:
        first = block.text.strip().splitlines()[0]
        if (page, first) in given.FOREIGN:
            continue
        if block.language in SHELL:
            for line in block.commands:
                command(line)
        elif block.language == "python":
            if names is None:
                names = module.__dict__
                names.update(given.names(page))
            exec(compile("\n" * block.line + block.text, page, "exec", dont_inherit=True), names)
        elif block.language == "yaml":
            body = yaml.safe_load(block.text) if "verifier: {command" not in block.text else None
            if isinstance(body, dict) and "architecture" in body:
                parse_recipe(body, page)
            elif isinstance(body, dict) and {"epsilon", "alpha", "method"} & set(body):
                parsed(EnsembleFile, body, page, "game")
            elif isinstance(body, dict) and "classifiers" in body:
                parse_study(body)
                Path("study.yaml").write_text(block.text)
        else:
            assert block.language in extract.OTHER, f"{page}:{block.line}: a fence without a language"


RUN = [page for page in PAGES if extract.blocks(page) and name_of(page) not in given.PAGES]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of packages that pages use, such as foolbox
@pytest.mark.parametrize("page", RUN, ids=map(name_of, RUN))
def test_a_page(page: Path, here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    perform(extract.blocks(page), name_of(page), monkeypatch)


@pytest.mark.parametrize("words", [words for words, lines in HELPS.items() if lines])
def test_the_examples_of_a_help(words: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line in HELPS[words]:
        command(line)


def test_every_command_has_an_example() -> None:
    assert [words for words, lines in HELPS.items() if not lines and words != "radii"] == []


@pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
def test_commands_in_running_text_are_understood(page: Path) -> None:
    """Names of commands and options exist; nothing is run."""
    known = dict(extract.commands())
    for span in extract.spans(page):
        words = shlex.split(span, comments=True)
        name = " ".join(words[:2])
        if (name_of(page), name) in given.OWN:
            continue
        longer = " ".join(words[:3])
        found = known.get(longer) or known.get(name) or (known["radii"] if words[1].startswith("-") else None)
        assert found is not None, f"{page.name}: {span}"
        options = {text for one in found.params for text in (*one.opts, *one.secondary_opts)} | {"--help"}
        asked = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
        assert asked <= options, f"{page.name}: {span}: {asked - options}"


def test_nothing_is_excused_that_is_not_printed() -> None:
    lines = {
        line for page in PAGES for block in extract.blocks(page) if block.language in SHELL for line in block.commands
    }
    lines |= {line for some in HELPS.values() for line in some}
    assert set(given.ELSEWHERE) <= lines
    firsts = {(name_of(p), b.text.strip().splitlines()[0]) for p in PAGES for b in extract.blocks(p) if b.text.strip()}
    assert set(given.FOREIGN) <= firsts
    assert set(given.PAGES) <= set(map(name_of, PAGES))
