"""The fuzzer: random networks, the engine's claims about them, and oracles that share nothing with the engine.

    python benchmarks/fuzz.py --radii 20000 --specs 5000       all of it; stopped and started again, it goes on
    python benchmarks/fuzz.py --show radius:17                 one case again, with its network in build/fuzz/

Every case follows from the seed and its index, budgets are in nodes, and so a run repeats exactly. Results are kept in
`--output`, one line per network (four radii of each) or specification. A violation is printed at once, with the case
that shows it and the network as a file. docs/trust.md says what the oracles are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from fuzzing.ask import ARITHMETICS, NORMS, describe, radius_case, spec_case
from fuzzing.judge import judge_radius, judge_spec

ROOT = Path(__file__).resolve().parents[1]
Row = dict[str, Any]
Unit = tuple[str, int, int]  # kind, seed, index


def run(unit: Unit) -> Row:
    """One case from the beginning to its line in the log; an error that nothing caught is a violation."""
    kind, seed, index = unit
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, on networks that are made to overflow
        case = (radius_case if kind == "radius" else spec_case)(seed, index)
        try:
            return judge_radius(case, seed) if kind == "radius" else judge_spec(case, seed)
        except Exception as error:
            what = {"what": f"crash: {type(error).__name__}: {error}"}
            return {"kind": kind, "index": index, **describe(case), "status": [], "violations": [what], "seconds": 0.0}


class Log:
    """The lines so far; the first says which seed they belong to. A line cut off by a kill is dropped."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.rows = path, {"radius": {}, "spec": {}}
        head = {"seed": seed}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
        whole = [line for line in lines if line.endswith("\n")]
        if whole and json.loads(whole[0]) != head:
            sys.exit(f"{path}: expected a log of seed {seed}, got {whole[0].strip()}; give another --output")
        if len(whole) != len(lines) or not whole:
            path.write_text("".join(whole) or json.dumps(head) + "\n")
        for line in whole[1:]:
            self._keep(json.loads(line))

    def add(self, row: Row) -> None:
        """Keeps a line, on disk at once."""
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._keep(row)

    def _keep(self, row: Row) -> None:
        self.rows[row["kind"]][row["index"]] = row

    def count(self, kind: str) -> int:
        """How many radii or specifications were answered; networks that could not be loaded have none."""
        return sum(len(row["status"]) for row in self.rows[kind].values())

    def missing(self, kind: str, wanted: int, seed: int) -> Iterator[Unit]:
        """Cases in order of their index, those in the log left out, until enough are answered."""
        index = 0
        while self.count(kind) < wanted:
            if index not in self.rows[kind]:
                yield kind, seed, index
            index += 1


def work(units: Iterable[Unit], jobs: int) -> Iterator[Row]:
    """The lines of cases, in this process or in several; a few cases more than asked for are done in several."""
    if jobs == 1:
        yield from map(run, units)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        source = iter(units)
        while block := [unit for unit, _ in zip(source, range(8 * jobs))]:
            yield from pool.imap_unordered(run, block)


def report(row: Row, seed: int) -> None:
    """Prints the violations of a line with the command that shows them again."""
    for violation in row["violations"]:
        asked = " ".join(str(row[k]) for k in ("norm", "arithmetic", "recipe", "profile") if k in row)
        print(f"VIOLATION {row['kind']}:{row['index']} --seed {seed} ({asked}): {violation}", flush=True)


def show(what: str, seed: int) -> Row:
    """One case again, its network written to a file."""
    kind, _, index = what.partition(":")
    if kind not in ("radius", "spec") or not index.isdigit():
        sys.exit(f"--show: expected radius:INDEX or spec:INDEX, got {what}")
    case = (radius_case if kind == "radius" else spec_case)(seed, int(index))
    path = ROOT / "build" / "fuzz" / f"{kind}-{seed}-{index}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.network.model)
    print(path, case, sep="\n")
    return run((kind, seed, int(index)))


def table(rows: Iterable[Row]) -> str:
    """The summary in Markdown: radii by norm, arithmetic and recipe, then specifications."""
    every = list(rows)
    asked = [r for r in every if r["kind"] == "radius"]
    head = [
        "radii",
        "networks",
        "all",
        "proven",
        "closed or robust",
        "open or unsolved",
        "misclassified",
        "with evidence",
        "violations",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    groups = [
        (f"{n}, {a}", lambda r, n=n, a=a: (r["norm"], r["arithmetic"]) == (n, a)) for n in NORMS for a in ARITHMETICS
    ]
    groups += [(name, lambda r, name=name: r["recipe"] == name) for name in ("random", "linear", "spike")]
    for name, belongs in [*groups, ("all", lambda r: True)]:
        lines.append("| " + " | ".join([name, *map(str, _numbers([r for r in asked if belongs(r)]))]) + " |")
    lines += ["", "| specifications | all | robust | broken | unknown | violations |", "|" + " --- |" * 6]
    for name in ("random", "linear", "spike", "all"):
        some = [r for r in every if r["kind"] == "spec" and name in (r["recipe"], "all")]
        found = Counter(s for r in some for s in r["status"])
        counts = [sum(found.values()), *(found[s] for s in ("robust", "broken", "unknown"))]
        lines.append("| " + " | ".join([name, *map(str, counts), str(sum(len(r["violations"]) for r in some))]) + " |")
    return "\n".join(lines)


def _numbers(rows: list[Row]) -> list[int]:
    found = Counter(s for r in rows for s in r["status"])
    counts = Counter()
    for row in rows:
        counts.update(row.get("counts", {}))
    return [
        sum("refused" not in r for r in rows), sum(found.values()), counts["proven"], found["closed"] + found["robust"],
        found["open"] + found["unsolved"], found["misclassified"], counts["evidence"],
        sum(len(r["violations"]) for r in rows),
    ]  # fmt: skip


def summary(log: Log) -> str:
    """The tables, what was refused and why, and how long it took."""
    rows = [row for kind in log.rows.values() for row in kind.values()]
    operators = sorted({name for row in rows for name in row["operators"]})
    alarms = sum(len(row.get("alarms", ())) for row in rows)
    refused = Counter(row["refused"].partition(": ")[2][:70] for row in rows if "refused" in row)
    lines = [f"- {count} networks: {reason} …" for reason, count in refused.most_common()]
    cost = sum(row["seconds"] for row in rows)
    return "\n\n".join(
        [
            table(rows),
            f"{len(operators)} ONNX operators: {', '.join(operators)}",
            f"{alarms} radii stopped by an alarm, {cost:.0f} CPU seconds, {refused.total()} networks refused:",
            "\n".join(lines),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs what is missing, prints violations as they come and the summary; 1 when there is a violation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--radii", type=int, default=0, help="how many radii")
    parser.add_argument("--specs", type=int, default=0, help="how many specifications")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "fuzz.jsonl")
    parser.add_argument("--show", metavar="KIND:INDEX", help="one case again, its network as a file")
    asked = parser.parse_args(arguments)
    if asked.show:
        row = show(asked.show, asked.seed)
        print(json.dumps(row, indent=1))
        return int(bool(row["violations"]))
    log = Log(asked.output, asked.seed)
    for kind, wanted in (("radius", asked.radii), ("spec", asked.specs)):
        for row in work(log.missing(kind, wanted, asked.seed), asked.jobs):
            log.add(row)
            report(row, asked.seed)
    print(summary(log))
    return int(any(row["violations"] for kind in log.rows.values() for row in kind.values()))


if __name__ == "__main__":
    sys.exit(main())
