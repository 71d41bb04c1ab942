"""VNN-COMP 2021 instances: how many are solved, and none against the expected verdict.

    python benchmarks/bench_vnncomp.py [FOLDER] [--only acasxu] [--seconds 20] [--verifier native] [--most 10]
                                       [--command] [--json out.json]

FOLDER holds one folder a benchmark, each with `instances.csv`. Without `--command` all instances run in this process
and the seconds are CPU seconds of the verifier; with it each one is a `radii verify` of its own, as a user types it,
and the seconds are wall-clock with start-up. Every `sat` is replayed in onnxruntime from its printed text. Exits with 1
when a verdict contradicts the expected one or a counterexample does not replay.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from radii import api
from radii.cli.verify import solve
from radii.decide import replay_spec
from radii.formats import assignment_text, read_vnnlib, read_witness
from radii.models import load_classifier
from radii.study.ask import Ask

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "vnncomp2021"
SOLVED = ("sat", "unsat")


class CpuDeadline:
    """A limit in CPU seconds of this process, with the face of `radii.cli.deadline.Deadline`."""

    def __init__(self, seconds: float) -> None:
        self.limit, self.start = seconds, time.process_time()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.process_time() - self.start

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.limit - self.spent


def main() -> int:
    """Print one line an instance, then the counts."""
    options = arguments()
    results: list[dict[str, Any]] = []
    for folder in sorted(path.parent for path in options.folder.glob("*/instances.csv")):
        if options.only and folder.name not in options.only:
            continue
        with (folder / "instances.csv").open() as file:
            rows = [r for r in csv.DictReader(file) if options.match in r["onnx"] + " " + r["vnnlib"]]
        for row in rows[: options.most]:
            results.append(instance(folder, row, options))
            print(
                "{benchmark} {name} {verdict} (expected {expected}) {seconds:.1f} s {fault}".format(**results[-1]),
                flush=True,
            )
    summary = summarise(results, options)
    if options.json is not None:
        options.json.write_text(json.dumps({"summary": summary, "instances": results}, indent=1))
    return 1 if summary["faults"] else 0


def arguments() -> argparse.Namespace:
    """What was asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=DATA)
    parser.add_argument("--only", action="append", metavar="BENCHMARK")
    parser.add_argument("--match", default="", help="instances whose file names hold this")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--verifier", default="native")
    parser.add_argument("--most", type=int, default=None, help="instances of each benchmark")
    parser.add_argument("--command", action="store_true", help="run `radii verify` in a process of its own")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    if not any(options.folder.glob("*/instances.csv")):
        parser.error(f"{options.folder}: expected folders with instances.csv")
    return options


def instance(folder: Path, row: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """What came of one instance."""
    begun = time.perf_counter()
    model, query = folder / row["onnx"], folder / row["vnnlib"]
    cpu, verdict, text = (by_command if options.command else in_process)(model, query, options)
    seconds = time.perf_counter() - begun if options.command else cpu
    return {
        "benchmark": folder.name,
        "name": f"{Path(row['onnx']).stem} {Path(row['vnnlib']).name.removesuffix('.gz')}",
        "expected": row["expected"],
        "verdict": verdict,
        "seconds": seconds,
        "wall": time.perf_counter() - begun,
        "fault": fault(model, query, verdict, row["expected"], text),
    }


@lru_cache(maxsize=2)
def network(model: Path) -> Any:
    """The classifier of a file, without a domain of its own."""
    return load_classifier(model, domain=None, check=False)


def in_process(model: Path, query: Path, options: argparse.Namespace) -> tuple[float, str, str]:
    """CPU seconds, verdict and counterexample text."""
    gc.collect()
    problem, classifier = read_vnnlib(query), network(model)
    deadline: Any = CpuDeadline(options.seconds)
    verdict, witness = solve(problem, classifier, api.decider(Ask.of({"verifier": options.verifier})), deadline)
    spent = deadline.spent
    if witness is None:
        return spent, verdict, ""
    return spent, verdict, assignment_text([(problem.input, witness.x), (problem.output, witness.outputs)])


def by_command(model: Path, query: Path, options: argparse.Namespace) -> tuple[float, str, str]:
    """The same through `radii verify`; the CPU seconds are not known."""
    command = [sys.executable, "-m", "radii.cli.main", "verify", str(query), "--network", f"N={model}"]
    command += ["--timeout", str(options.seconds), "--verifier", options.verifier]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return 0.0, "error", done.stderr.strip()[-200:]
    verdict, _, text = done.stdout.partition("\n")
    return 0.0, verdict, text


def fault(model: Path, query: Path, verdict: str, expected: str, text: str) -> str:
    """What is wrong with a verdict, empty when nothing is."""
    if verdict == "error":
        return f"ERROR {text}"
    if {verdict, expected} == {"sat", "unsat"}:
        return "CONTRADICTS the expected verdict"
    if verdict == "sat":
        x = read_witness(text)["X"].astype(np.float32)
        if not any(replay_spec(network(model), q, x) for q in read_vnnlib(query).queries):
            return "COUNTEREXAMPLE DOES NOT REPLAY"
    return ""


def summarise(results: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """The counts, printed."""
    benchmarks = {}
    for name in dict.fromkeys(r["benchmark"] for r in results):
        mine = [r for r in results if r["benchmark"] == name]
        # The command would have been ended a second after its limit: an answer that came later does not count.
        solved = [r for r in mine if r["verdict"] in SOLVED and not r["fault"] and r["seconds"] <= options.seconds + 1]
        mean = float(np.mean([r["seconds"] for r in solved])) if solved else None
        kinds = {kind: sum(r["verdict"] == kind for r in solved) for kind in SOLVED}
        benchmarks[name] = {"solved": len(solved), "total": len(mine), **kinds, "mean_seconds_of_solved": mean}
        shown = "" if mean is None else f", {mean:.2f} s a solved one on average"
        print(f"{name}: {len(solved)} of {len(mine)} solved ({kinds['sat']} sat, {kinds['unsat']} unsat){shown}")
    faults = sum(bool(r["fault"]) for r in results)
    total = sum(b["solved"] for b in benchmarks.values())
    print(f"all: {total} of {len(results)} solved with {options.seconds:g} s and {options.verifier}")
    print(f"contradictions, false counterexamples and errors: {faults}")
    return {"seconds": options.seconds, "verifier": options.verifier, "benchmarks": benchmarks, "faults": faults}


if __name__ == "__main__":
    sys.exit(main())
