"""`radii verify` on the VNN-COMP 2021 instances: how many are solved, and none against the expected verdict.

    python benchmarks/bench_vnncomp.py FOLDER [--benchmark acasxu] [--timeout 20] [--verifier native] [--most 10]

FOLDER holds one folder a benchmark, each with `instances.csv`. Every `sat` is replayed in onnxruntime from its printed
text. Exits with 1 when a verdict contradicts the expected one or a counterexample does not replay.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from radii.decide import replay_spec
from radii.formats import read_vnnlib, read_witness
from radii.models import load_classifier


def main() -> int:
    """Print one line an instance, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--benchmark", action="append")
    parser.add_argument("--timeout", type=float, default=20.0)
    parser.add_argument("--verifier", default="native")
    parser.add_argument("--most", type=int, default=None, help="instances of each benchmark")
    options = parser.parse_args()
    wrong = 0
    for folder in sorted(path.parent for path in options.folder.glob("*/instances.csv")):
        if options.benchmark and folder.name not in options.benchmark:
            continue
        with (folder / "instances.csv").open() as file:
            rows = list(csv.DictReader(file))[: options.most]
        solved = 0
        for row in rows:
            begun = time.perf_counter()
            verdict, fault = judge(folder, row, options)
            solved += verdict in ("sat", "unsat") and not fault
            wrong += bool(fault)
            name = f"{Path(row['onnx']).stem} {Path(row['vnnlib']).name}"
            spent = time.perf_counter() - begun
            print(f"{folder.name} {name} {verdict} (expected {row['expected']}) {spent:.1f} s {fault}", flush=True)
        print(f"{folder.name}: {solved} of {len(rows)} solved with {options.timeout:g} s and {options.verifier}")
    print(f"contradictions and false counterexamples: {wrong}")
    return 1 if wrong else 0


def judge(folder: Path, row: dict[str, str], options: argparse.Namespace) -> tuple[str, str]:
    """The verdict of one instance, and what is wrong with it."""
    model, query = folder / row["onnx"], folder / row["vnnlib"]
    command = [sys.executable, "-m", "radii.cli.main", "verify", str(query), "--network", f"N={model}"]
    command += ["--timeout", str(options.timeout), "--verifier", options.verifier]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return "error", done.stderr.strip()[-200:]
    verdict, _, text = done.stdout.partition("\n")
    if {verdict, row["expected"]} == {"sat", "unsat"}:
        return verdict, "CONTRADICTS the expected verdict"
    if verdict == "sat":
        x = read_witness(text)["X"].astype(np.float32)
        network = load_classifier(model, domain=None, check=False)
        if not any(replay_spec(network, q, x) for q in read_vnnlib(query).queries):
            return verdict, "COUNTEREXAMPLE DOES NOT REPLAY"
    return verdict, ""


if __name__ == "__main__":
    sys.exit(main())
