"""VNN-COMP 2021 instances: how many are solved, and none against the expected verdict.

    python benchmarks/bench_vnncomp.py [FOLDER] [--only acasxu] [--seconds 20] [--verifier native] [--most 10]
                                       [--command [--slack 1] [--beside]] [--workers 2] [--json out.json [--again]]

FOLDER holds one folder a benchmark, each with `instances.csv`. Without `--command` all instances run in this process
and the seconds are CPU seconds of the verifier; with it each one is a `radii verify` of its own, as a user types it,
and the seconds are CPU seconds of that process with its start-up (one thread). `--slack 4` gives it four times the
limit by the wall clock, for a machine with other work to do; the limit in CPU seconds stays. `--beside` gives every
instance to vibecheck's own command too, under the same limits, and compares. Instances that are in the file of `--json`
already are not run again; with `--again` ours are (for an engine that has changed), and vibecheck's are kept. Every
`sat` of ours is replayed in onnxruntime from its printed text. Exits with 1 when a verdict of ours contradicts the
expected one or a counterexample does not replay.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT

from radii.cli.verify import solve
from radii.decide import replay_spec
from radii.formats import assignment_text, read_vnnlib, read_witness
from radii.models import load_classifier
from radii.verifiers.catalogue import make
from radii.verifiers.process import Limits, run

PEER = ROOT / ".venv-vibecheck" / "bin" / "vibecheck"
SOLVED = ("sat", "unsat")
VERDICTS = (*SOLVED, "unknown", "timed-out", "timeout")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


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
    """Print one line per instance, then the counts."""
    options = arguments()
    results: list[dict[str, Any]] = []
    known = kept(options)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        jobs: list[dict[str, Any] | Future[dict[str, Any]]] = []
        for folder, row in asked_for(options):
            old = known.get((folder.name, name_of(row)))
            if old is not None and not options.again:
                jobs.append(old)
            else:
                jobs.append(pool.submit(instance, folder, row, options, (old or {}).get("beside")))
        for job in jobs:
            results.append(job if isinstance(job, dict) else job.result())
            beside = "; vibecheck {verdict} {seconds:.1f} s".format(**p) if (p := results[-1].get("beside")) else ""
            line = "{benchmark} {name} {verdict} (expected {expected}) {seconds:.1f} s {fault}"
            print(line.format(**results[-1]) + beside, flush=True)
            known.pop((results[-1]["benchmark"], results[-1]["name"]), None)
            keep(options.json, {"instances": [*results, *known.values()]})
    summary = summarise(results, options)
    keep(options.json, {"summary": summary, "instances": results})
    return 1 if summary["faults"] else 0


def asked_for(options: argparse.Namespace) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder and the row of every instance."""
    for folder in sorted(path.parent for path in options.folder.glob("*/instances.csv")):
        if options.only and folder.name not in options.only:
            continue
        with (folder / "instances.csv").open() as file:
            rows = [r for r in csv.DictReader(file) if options.match in r["onnx"] + " " + r["vnnlib"]]
        yield from ((folder, row) for row in rows[: options.most])


def kept(options: argparse.Namespace) -> dict[tuple[str, str], dict[str, Any]]:
    """What an earlier run has found, by benchmark and name; not what got too little of the processor in its time."""
    file = options.json
    rows = json.loads(file.read_text())["instances"] if file is not None and file.is_file() else []
    starved = [r for r in rows if r["verdict"] == "timed-out" and r["seconds"] < 0.9 * options.seconds]
    again = [r for r in rows if r in starved or (options.beside and "beside" not in r)]
    return {(row["benchmark"], row["name"]): row for row in rows if row not in again}


def keep(file: Path | None, values: dict[str, Any]) -> None:
    """Write the results so far, if a file was asked for."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values, indent=1))


def arguments() -> argparse.Namespace:
    """What was asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=DATA / "vnncomp2021")
    parser.add_argument("--only", action="append", metavar="BENCHMARK")
    parser.add_argument("--match", default="", help="instances whose file names hold this")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--verifier", default="native")
    parser.add_argument("--most", type=int, default=None, help="instances of each benchmark")
    parser.add_argument("--command", action="store_true", help="run `radii verify` in a process of its own")
    parser.add_argument("--slack", type=float, default=1.0, help="wall-clock limit of the command in limits")
    parser.add_argument("--beside", action="store_true", help="run vibecheck's command on every instance too")
    parser.add_argument("--workers", type=int, default=1, help="instances at a time")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--again", action="store_true", help="run ours again, keep vibecheck's of the file of --json")
    options = parser.parse_args()
    if options.beside and not (options.command and PEER.is_file()):
        parser.error("--beside: expected --command and an installed vibecheck (make vibecheck)")
    if not any(options.folder.glob("*/instances.csv")):
        parser.error(f"{options.folder}: expected folders with instances.csv")
    return options


def instance(
    folder: Path, row: dict[str, str], options: argparse.Namespace, beside: dict[str, Any] | None
) -> dict[str, Any]:
    """What came of one instance; `beside` is vibecheck's answer where an earlier run has it."""
    begun = time.perf_counter()
    model, query = folder / row["onnx"], folder / row["vnnlib"]
    cpu, verdict, text = (by_command if options.command else in_process)(model, query, options)
    result = {
        "benchmark": folder.name,
        "name": name_of(row),
        "expected": row["expected"],
        "verdict": verdict,
        "seconds": cpu,
        "wall": time.perf_counter() - begun,
        "fault": fault(model, query, verdict, row["expected"], text),
    }
    if options.beside and beside is not None:
        result["beside"] = beside
    elif options.beside:
        program = [str(PEER), "verify", str(query), "--network", f"N={model}", "--device", "cpu"]
        cpu, verdict, text = command(program, options)
        result["beside"] = {"verdict": verdict, "seconds": cpu, "fault": said_wrong(verdict, row["expected"], text)}
    return result


def name_of(row: dict[str, str]) -> str:
    """What an instance is called: network and specification."""
    return f"{Path(row['onnx']).stem} {Path(row['vnnlib']).name.removesuffix('.gz')}"


@lru_cache(maxsize=2)
def network(model: Path) -> Any:
    """The classifier of a file, without a domain of its own."""
    return load_classifier(model, domain=None, check=False)


def in_process(model: Path, query: Path, options: argparse.Namespace) -> tuple[float, str, str]:
    """CPU seconds, verdict and counterexample text."""
    gc.collect()
    problem, classifier = read_vnnlib(query), network(model)
    deadline: Any = CpuDeadline(options.seconds)
    verdict, witness = solve(problem, classifier, make(options.verifier), deadline)
    spent = deadline.spent
    if witness is None:
        return spent, verdict, ""
    return spent, verdict, assignment_text([(problem.input, witness.x), (problem.output, witness.outputs)])


def by_command(model: Path, query: Path, options: argparse.Namespace) -> tuple[float, str, str]:
    """The same through `radii verify`; the CPU seconds are those of the whole process."""
    program = [sys.executable, "-m", "radii.cli.main", "verify", str(query), "--network", f"N={model}"]
    return command([*program, "--verifier", options.verifier], options)


def command(program: list[str], options: argparse.Namespace) -> tuple[float, str, str]:
    """CPU seconds, verdict and counterexample text of a program that is told its limit; a second late is allowed."""
    wall = options.seconds * options.slack
    limits = Limits(wall=2 * wall + 10, cpu=options.seconds + 1, output=2**26)
    done = run([*program, "--timeout", f"{wall:g}"], limits, env={**os.environ, **ONE_THREAD})
    if done.end == "time":
        return done.cpu_seconds, "timed-out", ""
    verdict, _, text = done.stdout.partition("\n")
    # The exit code does not count where there is a verdict: vibecheck ends with 1 after a sat.
    if done.end != "exit" or verdict.strip() not in VERDICTS:
        return done.cpu_seconds, "error", done.stderr.strip()[-200:]
    return done.cpu_seconds, verdict.strip(), text


def fault(model: Path, query: Path, verdict: str, expected: str, text: str) -> str:
    """What is wrong with a verdict, empty when nothing is."""
    wrong = said_wrong(verdict, expected, text)
    if not wrong and verdict == "sat":
        x = read_witness(text)["X"].astype(np.float32)
        if not any(replay_spec(network(model), q, x) for q in read_vnnlib(query).queries):
            return "COUNTEREXAMPLE DOES NOT REPLAY"
    return wrong


def said_wrong(verdict: str, expected: str, text: str) -> str:
    """What is wrong with a verdict, as far as the word alone tells."""
    if verdict == "error":
        return f"ERROR {text}"
    return "CONTRADICTS the expected verdict" if {verdict, expected} == {"sat", "unsat"} else ""


def summarise(results: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """The counts, printed."""
    benchmarks: dict[str, Any] = {}
    for name in dict.fromkeys(r["benchmark"] for r in results):
        mine = [r for r in results if r["benchmark"] == name]
        done = [r for r in mine if solved(r, options)]
        mean = mean_seconds(done)
        kinds = {kind: sum(r["verdict"] == kind for r in done) for kind in SOLVED}
        benchmarks[name] = {"solved": len(done), "total": len(mine), **kinds, "mean_seconds_of_solved": mean}
        shown = "" if mean is None else f", {mean:.2f} s a solved one on average"
        print(f"{name}: {len(done)} of {len(mine)} solved ({kinds['sat']} sat, {kinds['unsat']} unsat){shown}")
        if options.beside:
            benchmarks[name]["beside"] = compare(mine, done, options)
    faults = sum(bool(r["fault"]) for r in results)
    total = sum(b["solved"] for b in benchmarks.values())
    print(f"all: {total} of {len(results)} solved with {options.seconds:g} s and {options.verifier}")
    if options.beside:
        benchmarks["all"] = {"beside": compare(results, [r for r in results if solved(r, options)], options)}
    print(f"contradictions, false counterexamples and errors: {faults}")
    return {"seconds": options.seconds, "verifier": options.verifier, "benchmarks": benchmarks, "faults": faults}


def compare(rows: list[dict[str, Any]], done: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """How vibecheck fared on these rows, and both on those that both solve; printed."""
    theirs = [r["beside"] for r in rows if solved(r["beside"], options)]
    both = [r for r in done if solved(r["beside"], options)]
    ours_mean, peer_mean = mean_seconds(both), mean_seconds([r["beside"] for r in both])
    faults = sum(bool(r["beside"]["fault"]) for r in rows)
    print(f"  vibecheck: {len(theirs)} of {len(rows)} solved, {faults} wrong or failed", end="")
    print("" if ours_mean is None else f"; {len(both)} by both, on average {ours_mean:.2f} s and {peer_mean:.2f} s")
    means = {"ours_mean_seconds": ours_mean, "mean_seconds": peer_mean}
    return {"solved": len(theirs), "total": len(rows), "faults": faults, "both": len(both), **means}


def solved(row: dict[str, Any], options: argparse.Namespace) -> bool:
    """Whether an answer came in time and is not known to be wrong."""
    return row["verdict"] in SOLVED and not row["fault"] and row["seconds"] <= options.seconds + 1


def mean_seconds(rows: list[dict[str, Any]]) -> float | None:
    """The mean over rows, if there are any."""
    return float(np.mean([r["seconds"] for r in rows])) if rows else None


if __name__ == "__main__":
    sys.exit(main())
