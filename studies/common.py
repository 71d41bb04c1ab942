"""What the studies of the papers share: where data lie, rows as CSV files, claims, and pages written from them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RADII_DATA") or ROOT.parent / "shared" / "data")  # CONTRIBUTING.md says what is in it
BUILD = ROOT / "build" / "studies"  # stores and networks; what the pages quote is kept beside the scripts
VERDICTS = ("agrees", "refined", "differs", "new", "not measured yet")


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; none if there is no such file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with the keys of the first, as a CSV file that is complete or not there; no rows leave it as it was."""
    if not rows:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


@dataclass(frozen=True)
class Claim:
    """What a paper says and what was measured here; `holds` is False where a statement of the page is untrue.

    `holds` is None where the rows at hand cannot tell, as a small part of a study often cannot.
    """

    paper: str
    ours: str
    verdict: str
    holds: bool | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict: expected one of {', '.join(VERDICTS)}, got {self.verdict}")


@dataclass
class Page:
    """A page in the making: its sections in order, its claims, and the folder that its pictures go to."""

    title: str
    about: str
    pictures: Path
    prefix: str
    claims: list[Claim] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def section(self, title: str, *parts: str) -> None:
        """A section of paragraphs, tables and pictures; empty ones are left out."""
        shown = [part for part in parts if part]
        if shown:
            self.parts.append("\n\n".join([f"## {title}", *shown]))

    def picture(self, name: str, drawn: Any, caption: str) -> str:
        """Saves axes or a figure and gives the line that shows it."""
        from radii.report import figures

        self.pictures.mkdir(parents=True, exist_ok=True)
        file = self.pictures / f"{self.prefix}-{name}.png"
        figures.save(getattr(drawn, "figure", drawn), file)
        return f"![{caption}](pictures/{file.name})\n\n*{caption}*"

    def claim(self, paper: str, ours: str, verdict: str, holds: bool | None = None) -> None:
        """Adds what the paper says and what was measured here."""
        self.claims.append(Claim(paper, ours, verdict, holds))

    def text(self, runs: Sequence[Mapping[str, str]]) -> str:
        """The page in Markdown; on top how much of the study is done, at the end what it rests on."""
        top = [f"# {self.title}", self.about, done_line(runs)]
        if self.claims:
            rows = [(one.paper, one.ours, one.verdict) for one in self.claims]
            top.append("## What agrees, what differs\n\n" + markdown(("the paper", "radii", "verdict"), rows))
        columns = ("part", "units done", "of", "CPU s", "budget", "code", "command")
        rested = [
            (
                r["step"],
                r["done"],
                r["planned"],
                r["cpu_seconds"],
                r["budget"],
                r["version"] or "–",
                f"`{r['command']}`",
            )
            for r in runs
        ]
        end = "## What this page rests on\n\n" + markdown(columns, rested)
        return "\n\n".join([*top, *self.parts, end]) + "\n"


def done_line(runs: Sequence[Mapping[str, str]]) -> str:
    """How many of how many units are done; in bold, and first, where some are not."""
    done, planned = (sum(int(r[key]) for r in runs) for key in ("done", "planned"))
    if done >= planned:
        return f"All {planned:,} units of this study are done."
    left = [r["step"] for r in runs if int(r["done"]) < int(r["planned"])]
    return (
        f"**This study is not complete: {done:,} of {planned:,} units are done.** Every figure below is of those "
        f"that are; "
        f"not finished: {', '.join(left)}. The same command goes on where it was stopped."
    )


def span(low: float, high: float, digits: int = 3) -> str:
    """An interval in a cell."""
    a, b = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return a if a == b else f"{a} to {b}"
