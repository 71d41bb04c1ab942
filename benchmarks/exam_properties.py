"""The exam of every property: radii and reaches of random tiny networks beside brute force and exact cells.

    python benchmarks/exam_properties.py                   # 300 networks, each in one norm, with or without a domain
    python benchmarks/exam_properties.py --all             # each in all three norms, with and without a domain
    python benchmarks/exam_properties.py --networks 10

ReLU, LeakyRelu, Clip, MaxPool and residual networks of 1 to 4 inputs and 1 to 3 outputs. Rows go to a file of JSON
lines; a run goes on where it was stopped. Ends with 1 when an answer does not hold the truth.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import ROOT

from radii._cpu import cpu_seconds
from radii.testing._property_cases import COMBINATIONS, examine, stated


def main() -> int:
    options = arguments()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.is_file() else []
    done = {tuple(r["case"]) for r in rows}
    with options.output.open("a", encoding="utf-8") as file:
        for seed in range(options.networks):
            for norm, bounded in COMBINATIONS if options.all else [COMBINATIONS[seed % len(COMBINATIONS)]]:
                if (seed, norm, bounded) not in done:
                    begun = cpu_seconds()
                    found = [asdict(finding) for finding in examine(seed, norm, bounded, options.seconds)]
                    rows.append({"case": (seed, norm, bounded), "cpu": cpu_seconds() - begun, "found": found})
                    print(json.dumps(rows[-1]), file=file, flush=True)
    return summarise(rows)


def summarise(rows: list[dict[str, Any]]) -> int:
    """Counts, and every answer that is untrue or open though no page says that it may be."""
    found = [finding for row in rows for finding in row["found"]]
    wrong = [f for f in found if not f["true"]]
    left = [f for f in found if f["true"] and not f["closed"]]
    print(
        f"{len({f['network'] for f in found})} networks, {len(found)} answers, {len(wrong)} untrue; "
        f"{sum(f['closed'] for f in found)} closed; {sum(f['points'] for f in found)} inputs of proven balls kept "
        f"their property; {sum(r['cpu'] for r in rows):.0f} CPU s"
    )
    kinds = Counter(_kind(f["question"]) for f in left)
    print("open: " + ("; ".join(f"{name} {count}" for name, count in kinds.most_common()) or "none"))
    for f in [*wrong, *(f for f in left if not stated(f["question"]))]:
        print(f"{'open' if f['true'] else 'UNTRUE'}: {f['network']}, {f['question']}: {f['detail']}")
    return 1 if wrong else 0


def _kind(question: str) -> str:
    what, rest = question.split(" of ", 1)
    return f"{what} of {rest.split(':')[0].split(' in ')[0]}{' (output norm l2)' if stated(question) else ''}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--all", action="store_true", help="every network in every norm, with and without a domain")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds per question")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "properties" / "exam.jsonl")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
