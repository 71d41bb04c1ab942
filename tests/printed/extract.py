"""What the project prints for people to copy: fenced blocks of its pages, and the examples of every --help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from radii.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("sh", "bash")
OTHER = ("text", "toml", "yaml")  # what is read, not run; study files are run by the commands that follow them
_FENCE = re.compile(r"^ {0,3}```([^\n`]*)\n(.*?)^ {0,3}```\s*$", re.M | re.S)
_SPAN = re.compile(r"(?<!`)`(radii [^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """One fenced block; `page` is its path in the repository, `language` the first word behind the fence."""

    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines of a shell block, without comments; a backslash joins two lines."""
        joined = self.text.replace("\\\n", " ")
        found = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
        return [line for line in found if line]


def name_of(page: Path) -> str:
    """The path of a page in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(name_of(page), text.count("\n", 0, match.start()) + 1, (match[1].split() or [""])[0], match[2])
        for match in _FENCE.finditer(text)
    ]


def spans(page: Path) -> list[str]:
    """Command lines in running text, whole ones only: those with an ellipsis or an alternative are patterns."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [words for words in _SPAN.findall(text) if not re.search(r"…|\.\.\.|[|<>\[\]]", words)]


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and sub-command by the words that call it."""
    yield from _below("radii", typer.main.get_command(app))


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    if hasattr(command, "list_commands"):
        context = type(command).context_class(command)
        for name in command.list_commands(context):
            yield from _below(f"{words} {name}", command.get_command(context, name))


def examples(command: Any) -> list[str]:
    """The command lines that a --help prints under Example or Examples."""
    found: list[str] = []
    inside = False
    for line in (command.help or "").splitlines():
        if re.match(r"\s*Examples?:\s*$", line):
            inside = True
        elif inside and line.strip():
            found.append(line.strip())
        elif found:
            inside = False
    return found
