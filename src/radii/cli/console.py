"""What commands share: tables and JSON on stdout, notes on stderr, and a look at the output folder."""

from __future__ import annotations

import json
import shutil
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from radii._html import cell
from radii.errors import InputError

PARTIAL = 3  # the exit code of work that ended before it was done


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The rows as aligned text, numbers to the right; nothing is cut off, so it can be piped."""
    texts = [[cell(value) for value in row] for row in rows]
    right = [all(is_number(row[i]) for row in texts) and bool(texts) for i in range(len(headers))]
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]
    lines = []
    for row in (list(headers), *texts):
        pieces = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(row, widths, right, strict=True))
        lines.append("  ".join(pieces).rstrip())
    return "\n".join(lines)


def fitted(text: str, indent: int = 4) -> str:
    """A text as indented lines that fit the terminal (80 columns where there is none); words are never cut."""
    width = max(40, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), " " * indent)


def is_number(text: str) -> bool:
    """Whether a cell holds a number, a percentage, or nothing."""
    return text.rstrip("%").lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit() or text == "-"


def emit_json(value: Any) -> None:
    """Print a value as JSON; an absent end is null."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 unit, 2 units."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def note(text: str) -> None:
    """One line for people, on stderr."""
    typer.echo(text, err=True)


def sometimes(seconds: float = 3.0) -> Callable[[str], None]:
    """A note that says no more than one line in so many seconds, the first after as many: for what may take long."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > seconds:
            last = time.monotonic()
            note(text)

    return tell


class Whole(TyperGroup):
    """A group of commands whose --help shows the whole first sentence of each, not what fits one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands: list[tuple[str, Any]] = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, " ".join((command.help or "").partition("\n\n")[0].split())) for name, command in commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@dataclass
class Ending:
    """How a block of work ended."""

    stopped: bool = False


@contextmanager
def stoppable() -> Iterator[Ending]:
    """Ctrl-C ends the block, not the command, which goes on to say what is done."""
    ending = Ending()
    try:
        yield ending
    except KeyboardInterrupt:
        ending.stopped = True


def partial(done: str, store: str | None) -> int:
    """The exit code of work that was stopped, after a line that says how much is done and how to go on."""
    kept = f"kept in {store}: run the same command again to go on" if store else "--store FILE would keep them"
    note(f"radii: partial: stopped, {done}; {kept}")
    return PARTIAL


def writable(folder: Path) -> Path:
    """The folder, made if need be, after a check that files can be written there: before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".radii-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"output folder: expected one that can be written, got {folder} ({error.strerror}); choose another"
        ) from None
    return folder
