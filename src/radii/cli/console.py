"""What commands share: tables and JSON on stdout, notes on stderr, and a look at the output folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from radii._html import cell
from radii.errors import InputError


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


def is_number(text: str) -> bool:
    """Whether a cell holds a number, a percentage, or nothing."""
    return text.rstrip("%").lstrip("-").replace(".", "", 1).replace("e-", "", 1).isdigit() or text == "-"


def emit_json(value: Any) -> None:
    """Print a value as JSON; an absent end is null."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


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
