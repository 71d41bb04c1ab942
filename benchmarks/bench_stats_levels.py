"""Level of every test and coverage of every interval by simulation: the tables in docs/statistics.md.

    python benchmarks/bench_stats_levels.py [--runs 2000] [--sizes 20,100] [--what levels|coverage] [--only TEXT]

Each finished cell is a line in `--output` (JSON); cells that are there are not done again, so a killed run resumes.
Prints the worst share of every statement over all ways of measuring, and every cell beyond what is promised: a test
rejects a true null hypothesis in at most 6 % of the runs (5 % nominal), a 95 % interval covers in at least 94.5 %.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from simulated_coverage import coverage
from simulations import Case, levels

LIMITS = {"levels": 0.06, "coverage": 0.945}


def shares(case: Case, n: int, runs: int, seed: int) -> dict[str, float]:
    """How often each statement of a case was true."""
    rng = np.random.default_rng(seed)
    counts: dict[str, int] = {}
    for k in range(runs):
        for name, hit in case(rng, n, k).items():
            counts[name] = counts.get(name, 0) + bool(hit)
    return {name: count / runs for name, count in counts.items()}


def simulate(what: str, sizes: list[int], runs: int, only: str, output: Path) -> list[dict[str, object]]:
    """Every cell of one kind, from the file or by simulation."""
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    known = {(row["what"], row["case"], row["n"], row["runs"]): row for row in map(json.loads, lines)}
    rows = []
    for n in sizes:
        for name, case in {"levels": levels, "coverage": coverage}[what]().items():
            if only not in name:
                continue
            if (row := known.get((what, name, n, runs))) is None:
                begun = time.process_time()
                found = shares(case, n, runs, seed=n)
                row = {"what": what, "case": name, "n": n, "runs": runs, "shares": found}
                row["cpu_seconds"] = round(time.process_time() - begun, 1)
                with output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            rows.append(row)
    return rows


def report(what: str, rows: list[dict[str, object]]) -> None:
    """The worst share of every statement, and the cells beyond the promise."""
    worst: dict[tuple[str, int], tuple[float, str]] = {}
    beyond = []
    for row in rows:
        group, _, how = str(row["case"]).partition(" | ")
        for name, share in row["shares"].items():  # type: ignore[attr-defined]
            unsound = what == "levels" and "one side" in how and "p_value" in name
            if unsound:
                continue  # the p-value assumes that both sides were measured alike: only the decision holds here
            key = (f"{group}: {name}", int(row["n"]))  # type: ignore[call-overload]
            entry = (share if what == "levels" else -share, how)
            worst[key] = max(worst.get(key, (-9.0, "")), entry)
            if share > LIMITS["levels"] if what == "levels" else share < LIMITS["coverage"]:
                beyond.append(f"{key[0]}, n = {key[1]}, {how}: {share:.4f} of {row['runs']}")
    sizes = sorted({n for _, n in worst})
    print(f"| {what} | " + " | ".join(f"n = {n}" for n in sizes) + " | worst case |")
    print("|---|" + "---|" * (len(sizes) + 1))
    for name in dict.fromkeys(name for name, _ in worst):
        cells = [worst.get((name, n)) for n in sizes]
        told = max((cell for cell in cells if cell), key=lambda cell: cell[0])[1]
        print(f"| {name} | " + " | ".join("-" if c is None else f"{abs(c[0]):.1%}" for c in cells) + f" | {told} |")
    print("\n".join(["", "beyond the promise:", *(beyond or ["none"])]))


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sizes", default="20,100")
    parser.add_argument("--what", choices=sorted(LIMITS), default=None)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--output", type=Path, default=Path("out/stats-levels.jsonl"))
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    for what in [args.what] if args.what else LIMITS:
        report(what, simulate(what, [int(n) for n in args.sizes.split(",")], args.runs, args.only, args.output))


if __name__ == "__main__":
    main()
