"""k-binary search with real verifiers: the same grid interval from each, and the queries that each k needs (Table 1).

    python benchmarks/bench_grid.py [--instances 20] [--seconds 10] [--patience 30] [--only native] [--table]

The first correctly classified MNIST training images of `--network`, grid 0.001, 0.003 ... 0.399.

1. `native`, `milp` (HiGHS) and `vibecheck` (a `command`, after scripts/setup_vibecheck.sh) search with k = 1 and
   `--seconds` CPU seconds per query. A verifier that has used `--patience` CPU seconds on an instance gets no further
   question about it: what is left is missing, and the interval stays open.
2. native's answers and their times drive the same state machine on k processors for k = 1, 2, 4, 8, with `--quick`
   seconds per query and no other limit; positions that only a larger k asks are computed then.

Answers are kept in `build/grid`, so that a run that is stopped goes on where it was; `--table` prints what is there
without asking, and `--page docs/search.md` also puts it between that page's two marks. Exits with 1 when two closed
intervals differ or two open ones do not overlap.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import DATA, ROOT, correct, machine, markdown, network

from radii.decide import Budget, Decider
from radii.problem import Instance, Query, Reason, Verdict
from radii.search import Grid, KBinary
from radii.search.simulate import Play, Summary, play
from radii.verifiers.catalogue import make
from radii.verifiers.command import TEMPLATES

GRID = Grid.steps(0.001, 0.399, 0.002)
VIBECHECK = ROOT / ".venv-vibecheck" / "bin" / "vibecheck"
KS = (1, 2, 4, 8)
MARKS = ("<!-- bench_grid -->", "<!-- end of bench_grid -->")
PAPER = {1: 12.68, 2: 11.78, 4: 18.33, 8: 28.51}


@dataclass(frozen=True)
class Book:
    """The answers of one verifier about one instance, computed when they are asked for and kept in the file."""

    decider: Decider | None
    instance: Instance
    options: argparse.Namespace
    known: dict[str, Any]
    patience: float = math.inf

    def answer(self, position: int, limit: float) -> tuple[Verdict, Reason | None, float]:
        """What `radii.search.simulate.play` asks of a trial: verdict, reason and seconds."""
        row = self.known.get(str(position))
        if row is None or (row["reason"] == "time" and row["limit"] < limit):
            row = self._ask(position, limit)
        if row["seconds"] >= limit:
            return Verdict.UNKNOWN, Reason.TIME, limit
        return Verdict(row["verdict"]), Reason(row["reason"]) if row["reason"] else None, row["seconds"]

    def _ask(self, position: int, limit: float) -> dict[str, Any]:
        if self.decider is None or sum(row["seconds"] for row in self.known.values()) > self.patience:
            return {"verdict": "unknown", "reason": "cancelled", "seconds": 0.0}
        classifier = network(self.options.data, self.options.network)
        query = Query(self.instance, GRID[position])
        (answer,) = self.decider.decide(classifier, [query], Budget(seconds=limit))
        row = {
            "verdict": str(answer.verdict),
            "reason": None if answer.reason is None else str(answer.reason),
            "detail": answer.detail[:200],
            "seconds": answer.cpu_seconds,
            "limit": limit,
        }
        self.known[str(position)] = row
        return row


def main() -> int:
    """Ask what is missing, then print the tables."""
    options = arguments()
    answers: dict[str, dict[str, Any]] = {}
    instances = correct(options.data, options.network, options.instances)
    plays: dict[str, dict[int, Play]] = {}
    for name in ("native", "milp", "vibecheck"):
        decider = verifier(name) if not options.table and options.only in (None, name) else None
        # A file each, so that verifiers may run side by side.
        file = options.folder / f"{options.network}-{name}.json"
        answers[name] = json.loads(file.read_text())["answers"] if file.is_file() else {}
        for instance in instances:
            mine = answers[name].setdefault(str(instance.index), {})
            asked = decider if options.image is None or instance.index in options.image else None
            trial: Any = Book(asked, instance, options, mine, options.patience)
            plays.setdefault(name, {})[instance.index] = play(trial, KBinary(GRID), options.seconds)
            for k in KS if name == "native" else ():
                trial = Book(asked, instance, options, mine)
                plays.setdefault(f"k = {k}", {})[instance.index] = play(trial, KBinary(GRID, k), options.quick)
            if asked is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps({"machine": machine(), "answers": answers[name]}, indent=1))
                low, high = ends(plays[name][instance.index])
                print(f"{name} image {instance.index}: {low} .. {high}", file=sys.stderr, flush=True)
    text, wrong = report(plays, answers)
    print(text)
    if options.page is not None:
        before, _, rest = options.page.read_text().partition(MARKS[0])
        _, found, after = rest.partition(MARKS[1])
        if not found:
            raise SystemExit(f"{options.page}: expected the marks {MARKS[0]} and {MARKS[1]}")
        options.page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}")
    return 1 if wrong else 0


def arguments() -> argparse.Namespace:
    """What was asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="mnist_relu_3_50")
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds per query")
    parser.add_argument("--quick", type=float, default=1.0, help="CPU seconds per query where the k are compared")
    parser.add_argument("--patience", type=float, default=30.0, help="CPU seconds per instance and verifier")
    parser.add_argument("--only", choices=("native", "milp", "vibecheck"), help="ask this verifier only")
    parser.add_argument("--image", type=int, nargs="+", help="ask about these images only")
    parser.add_argument("--table", action="store_true", help="print what is known, ask nothing")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "grid", help="where answers are kept")
    parser.add_argument("--page", type=Path, help="a Markdown page with marks, to write the tables to")
    parser.add_argument("--data", type=Path, default=DATA)
    return parser.parse_args()


def verifier(name: str) -> Decider | None:
    """The verifier of that name; None, with a word, when vibecheck is not installed."""
    if name != "vibecheck":
        return make(name)
    if not VIBECHECK.is_file():
        print("vibecheck is not here: run scripts/setup_vibecheck.sh", file=sys.stderr)
        return None
    return make({"command": TEMPLATES["vibecheck"].replace("vibecheck", str(VIBECHECK), 1), "name": "vibecheck"})


def ends(found: Play) -> tuple[float | None, float | None]:
    """The interval as values of ε."""
    low = GRID[found.low] if found.low >= 0 else None
    return low, GRID[found.high] if found.high < len(GRID) else None


def closed(found: Play) -> bool:
    """Whether the ends are neighbours on the grid."""
    return found.high - found.low == 1


def report(plays: dict[str, dict[int, Play]], answers: dict[str, Any]) -> tuple[str, int]:
    """Both tables in Markdown, and how many intervals contradict each other; images never asked about are left out."""
    ones = {name: plays[name] for name in ("native", "milp", "vibecheck")}
    rows, wrong = [], 0
    for index in ones["native"]:
        if not any(answers[name].get(str(index)) for name in ones):
            continue
        found = [of[index] for of in ones.values()]
        # Intervals that share no cell of the grid, closed or open, cannot both be right.
        clash = max(f.low for f in found) >= min(f.high for f in found)
        wrong += clash
        rows.append([str(index), *map(shown, found), "CONTRADICTION" if clash else "yes"])
    lines = [markdown(["image", *(f"`{name}`" for name in ones), "agree"], rows), ""]
    for name, of in ones.items():
        asked = [row for by in answers.get(name, {}).values() for row in by.values()]
        both = [i for i in of if closed(of[i]) and closed(ones["native"][i])]
        same = sum(ends(of[i]) == ends(ones["native"][i]) for i in both)
        wrong += len(both) - same
        spent = sum(row["seconds"] for row in asked)
        count = sum(map(closed, of.values()))
        lines.append(
            f"- `{name}`: {count} of {len(of)} closed; {same} of the {len(both)} that native closed too are equal; "
            f"{len(asked)} answers in {spent:.0f} CPU s"
        )
    header = ["k", "queries: least / mean / most", "CPU s", "wall s", "time-outs", "cancelled share", "paper's queries"]
    # Before an image was asked about, its play is made of missing answers only.
    done = [index for index in ones["native"] if answers["native"].get(str(index))]
    rows = [table_one(k, [plays[f"k = {k}"][index] for index in done]) for k in KS if done]
    lines += ["", f"With native's answers, {len(done)} images:", "", markdown(header, rows)]
    return "\n".join(lines), wrong


def shown(found: Play) -> str:
    """An interval as text; open ones carry a mark."""
    low, high = ends(found)
    if low is None and high is None:
        return "no answer"
    text = f"{'–' if low is None else low} … {'–' if high is None else high}"
    return text if closed(found) else f"{text} (open)"


def table_one(k: int, found: list[Play]) -> list[str]:
    """One row of Table 1."""
    s = Summary.of(found)
    return [
        str(k),
        f"{s.queries_least} / {s.queries_mean:.2f} / {s.queries_most}",
        f"{s.cpu_seconds:.2f}",
        f"{s.wall_seconds:.2f}",
        f"{s.timeouts:.2f}",
        f"{s.cancelled_share:.3f}",
        f"{PAPER[k]}",
    ]


if __name__ == "__main__":
    sys.exit(main())
