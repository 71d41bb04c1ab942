"""Table 1 of paper 001 in simulation: k-binary search for k = 1, 2, 4, 8, 16, and where `direct` stands.

    python benchmarks/bench_kbinary.py [--instances 2000] [--seed 0] [--memory-of-paper] [--output FILE]

The state machines are the ones `radii` runs; only the verifier is made up: monotone truth, log-normal answer times that
peak at the radius, a limit of one hour per query. `--memory-of-paper` adds the share of memory errors of Table 4,
for each k. `--output` also writes the rows as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from radii.search import Grid, Iterative, KBinary
from radii.search.simulate import Difficulty, Summary, compare

KS = (1, 2, 4, 8, 16)
# Table 4: queries that ran out of memory over all queries. Those for k = 1 are the totals less the other rows.
PAPER_MEMORY = {1: 5643 / 14547, 2: 131 / 13516, 4: 140 / 21025, 8: 86 / 32646, 16: 205 / 25761}
PAPER = {1: (12.68, 10162, 9781, 0.10), 2: (11.78, 12750, 6717, 0.17), 4: (18.33, 19582, 5574, 1.07)}
PAPER |= {8: (28.51, 27234, 4433, 1.46), 16: (22.46, 15657, 5878, 0.19)}
LIMIT = 3600.0


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory-of-paper", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    grid = Grid.steps(0.001, 0.4, 0.002)
    begun = time.perf_counter()
    rows: dict[str, Summary] = {}
    for k in KS:
        memory = PAPER_MEMORY[k] if options.memory_of_paper else 0.0
        trials = replace(Difficulty(), memory=memory).trials(grid, options.instances, options.seed)
        rows |= compare(trials, {f"kbinary k={k}": partial(KBinary, k=k)}, LIMIT)
    rows.pop("direct")  # to the end of the table
    rows |= compare(Difficulty().trials(grid, options.instances, options.seed), {"iterative": Iterative}, LIMIT)
    if options.output is not None:
        lines = [json.dumps({"search": name, **asdict(summary)}) for name, summary in rows.items()]
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = list(asdict(next(iter(rows.values()))))[1:]
    print("| search | " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for name, summary in rows.items():
        values = asdict(summary)
        print(f"| {name} | " + " | ".join(f"{values[c]:.4g}" for c in columns) + " |")
    print("\npaper: k, queries, CPU s, wall s, time-outs an instance")
    for k, row in PAPER.items():
        print(f"{k:3d} " + " ".join(f"{v:>9}" for v in row))
    print(f"\n{options.instances} instances, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
