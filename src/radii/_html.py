"""How objects show themselves in notebooks: a small table in which every text stays text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any


def table(caption: str, rows: Iterable[tuple[str, object]]) -> str:
    """An HTML table of names and values; an absent value is a dash, a number has six digits at most."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_text(value))}</td></tr>" for name, value in rows)
    return f"<table><caption>{escape(caption)}</caption>{cells}</table>"


def _text(value: object) -> str:
    if value is None or value == "":
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cell(value: Any) -> str:
    """A value as text: absent is a dash, floats have four significant digits."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
