"""Budgets: CPU seconds asked for and used per input, from Python with all torch threads and from the command line.

    python benchmarks/bench_budget.py [--quick] [--images N] [--seconds S...] [--network NAME...] [--output FILE]
                                      [--data FOLDER]

For each network the first images that it classifies correctly, each with every budget; the networks are ones whose
radii are not closed within it, so that the budget is what ends the search. Both ways the real process is
asked: a fresh Python process that calls `radii.distribution`, with as many torch threads as there are cores, and
`radii radius`. "used" is the most that any image was charged; it may exceed what was asked for by 10 % and 0.2 s.
"process" is what the whole process took beyond what it charged: loading, compiling, lowering. With --output every row
is kept as it ends, and a run that was stopped goes on from there. Ends with 1 when a budget was exceeded or an image
has no lower end.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import DATA, ROOT, correct, keep, markdown

NETWORKS = ("mnist-net_256x4", "mnist_relu_6_200", "convSmallRELU__Point")
SECONDS = (0.5, 1.0, 5.0, 20.0)
FREE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # what would limit torch's threads

PYTHON = """
import json, sys
import radii
network, root, indices, seconds = json.loads(sys.argv[1])
net, data = radii.load_classifier(network), radii.load_dataset("mnist", split="train", root=root)
frame = radii.distribution(net, data[indices], seconds=seconds, progress=False).to_frame()
print(frame[["lower", "status", "cpu_seconds"]].to_json(orient="records"))
"""


def main() -> int:
    """Print the table; 1 when a budget was not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two images, 0.5 and 1 s")
    parser.add_argument("--images", type=int, help="per network")
    parser.add_argument("--seconds", type=float, nargs="+", help="budgets")
    parser.add_argument("--network", nargs="+", default=NETWORKS)
    parser.add_argument("--output", type=Path, help="JSON file of the rows")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    images = options.images or (2 if options.quick else 3)
    budgets = options.seconds or (SECONDS[:2] if options.quick else SECONDS)
    known = keep(options.output, "rows", {})["rows"] if options.output else {}
    lines, kept = [], True
    for name in options.network:
        indices = [instance.index for instance in correct(options.data, name, images)]
        for seconds in budgets:
            for way, ask in (("Python", by_python), ("CLI", by_command)):
                key = f"{name} {seconds:g} s, images {indices}, {way}"
                if key not in known:
                    rows, process = ask(options.data, name, indices, seconds)
                    known[key] = {
                        "process": process,
                        "rows": [[r["lower"], r["status"], r["cpu_seconds"]] for r in rows],
                    }
                    if options.output:
                        keep(options.output, "rows", {key: known[key]})
                line, good = row(known[key]["rows"], known[key]["process"], seconds)
                kept &= good
                lines.append([name, way, f"{seconds:g}", *line])
                print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    header = ["network", "by", "asked (s)", "used, most (s)", "used, mean (s)", "closed", "lower ends", "process (s)"]
    print(markdown(header, lines))
    return 0 if kept else 1


def row(images: list[list[Any]], process: float, seconds: float) -> tuple[list[str], bool]:
    """The figures of one line, and whether the budget was kept."""
    used = [float(cpu) for _, _, cpu in images]
    closed, ends = (sum(status == "closed" for _, status, _ in images), sum(low is not None for low, _, _ in images))
    figures = [f"{max(used):.2f}", f"{sum(used) / len(used):.2f}", str(closed), f"{ends} of {len(images)}"]
    good = max(used) <= 1.1 * seconds + 0.2 and ends == len(images)
    return [*figures, f"{process - sum(used):.1f}"], good


def by_python(data: Path, name: str, indices: list[int], seconds: float) -> tuple[list[dict[str, Any]], float]:
    """The rows of `radii.distribution`, in a process where torch has all threads, and the process's CPU seconds."""
    asked = json.dumps([str(data / "jair" / "networks" / f"{name}.onnx"), str(data / "mnist"), indices, seconds])
    free = {key: value for key, value in os.environ.items() if key not in FREE}
    return run([sys.executable, "-c", PYTHON, asked], free)


def by_command(data: Path, name: str, indices: list[int], seconds: float) -> tuple[list[dict[str, Any]], float]:
    """The rows of `radii radius`, and the process's CPU seconds."""
    network, which = data / "jair" / "networks" / f"{name}.onnx", ",".join(map(str, indices))
    words = ["--data", "mnist", "--root", data / "mnist", "--split", "train", "--index", which, "--seconds", seconds]
    return run([sys.executable, "-m", "radii.cli.main", "radius", network, *words, "--json"], dict(os.environ))


def run(command: list[Any], environment: dict[str, str]) -> tuple[list[dict[str, Any]], float]:
    """What a program prints as JSON rows, and the CPU seconds of the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    rows = json.loads(done.stdout)
    used = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))
    return rows if isinstance(rows, list) else [rows], used


if __name__ == "__main__":
    sys.exit(main())
