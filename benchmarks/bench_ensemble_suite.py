"""The suite of Gross et al. (2021), rebuilt: value and CPU seconds of the methods on the 38 rows of its Table 4.

    python scripts/train_ensembles.py                                # the networks, into build/ensembles/
    python benchmarks/bench_ensemble_suite.py --rows 25 34 --seconds 5
    python benchmarks/bench_ensemble_suite.py                        # all rows; goes on where it was stopped

smt and milp look for an attack that gets α with the row's number of attacks. milp lets linear bounds fix ReLUs and
losses before the solver starts, milp-interval intervals, milp-plain nothing: that is the paper's encoding, equations 4
to 8 with one constant M per layer. maxmilp maximises the sum of the losses above α, ua and bda attack each member
alone, mw is the attacker by multiplicative weights, decomposed finds the value. L1, inputs unbounded but for ε, as in
the paper. A cell is "value (CPU seconds)": the value of a replayed attack, "robust", or "-" when `--seconds` ran out.
Every answer is a line of JSON. Ends with 1 when a method contradicts another or decomposed leaves a row open.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from common import ROOT, machine, markdown

import radii
from radii.api import dataset
from radii.ensembles.attackers import alone, best_of
from radii.ensembles.encoded import Form, encoded
from radii.ensembles.multiplicative_weights import multiplicative_weights
from radii.problem import Norm

sys.path.insert(0, str(ROOT / "scripts"))
from train_ensembles import OUTPUT, Row, load, rows

ATTACKERS = ("ua", "bda", "mw")
METHODS = ("decomposed", "milp", "milp-plain", "milp-interval", "maxmilp", "smt", *ATTACKERS)
ALONE: dict[int, tuple[Any, float]] = {}  # attacks on each member alone, and their CPU seconds, by row
L1 = Norm.of("l1")
SAME = 1e-4  # values that differ by less agree: proofs of the MILP charge its tolerances


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", help="Numbers of rows; all unless given.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds per method and row.")
    parser.add_argument("--show", action="store_true", help="Only print what was measured before.")
    parser.add_argument("--networks", type=Path, default=OUTPUT)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "ensemble-suite.jsonl")
    options = parser.parse_args()
    chosen = [row for row in rows() if options.rows is None or row.number in options.rows]
    known = {(one["row"], one["method"]): one for one in kept(options.output) if one["seconds"] == options.seconds}
    if options.show:
        return shown(chosen, known, options.methods)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for method in options.methods:  # what is loaded on first use is charged to no row
        answer(next(row for row in rows() if row.number == 24), method, options)
    ALONE.clear()
    with options.output.open("a", encoding="utf-8") as file:
        for method in options.methods:
            for row in chosen:
                if (row.number, method) in known:
                    continue
                found = {
                    "row": row.number,
                    "method": method,
                    "seconds": options.seconds,
                    **answer(row, method, options),
                }
                known[row.number, method] = found
                print(json.dumps(found), file=file, flush=True)
                print(f"row {row.number} {method}: {cell(found)}", file=sys.stderr, flush=True)
    return shown(chosen, known, options.methods)


def kept(file: Path) -> list[dict[str, Any]]:
    """The answers of earlier runs."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def answer(row: Row, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a method says of a row, with CPU seconds of this process and its children."""
    members, data = load(row, options.networks)
    instances = dataset(data).instances
    for one in members:
        one.graph, one.reference(instances[0].x[None])  # loading is nobody's
    begun = time.process_time()
    if method == "decomposed":
        game = radii.ensemble(members, instances, norm="l1", epsilons=row.epsilon, seconds=options.seconds)
        low, high = game.value(row.epsilon)
        attacks = len(game.attack(row.epsilon).probabilities)
        found = {"value": [low, high], "robust": game.robust(row.epsilon, row.alpha), "attacks": attacks}
        return {**found, "finished": high - low < SAME, "cpu": time.process_time() - begun}
    if method in ATTACKERS:
        if method == "mw":
            attack = multiplicative_weights(members, instances, L1, row.epsilon, options.seconds)
            return {"value": [attack.value, 1.0], "finished": True, "cpu": time.process_time() - begun}
        if row.number not in ALONE:  # ua and bda play the same attacks
            attack = alone(members, instances, L1, row.epsilon, options.seconds)
            ALONE[row.number] = attack, time.process_time() - begun
        attack, cpu = ALONE[row.number]
        return {"value": [(best_of(attack) if method == "bda" else attack).value, 1.0], "finished": True, "cpu": cpu}
    objective = "sum" if method == "maxmilp" else "check"
    bounds = {"milp-interval": "interval", "milp-plain": "plain"}.get(method, "crown")
    form = Form("smt" if method == "smt" else "milp", row.attacks, objective, row.alpha, bounds=bounds)
    one = encoded(members, instances, L1, [row.epsilon], form, options.seconds).at(row.epsilon)
    found = {"value": list(one.value), "robust": one.robust(row.alpha), "finished": one.finished}
    return {**found, "claimed": one.claimed, "why": one.detail, "cpu": one.cpu_seconds}


def cell(found: dict[str, Any] | None) -> str:
    """An answer in a few characters."""
    if found is None:
        return ""
    low, high = found["value"]
    if found["method"] in ATTACKERS:
        text = f"{low:.2f}"
    elif found["method"] == "decomposed":
        text = f"{low:.2f}" if found["finished"] else f"{low:.2f} to {high:.2f}"
    elif found["finished"]:
        text = "robust" if found["robust"] else f"{low:.2f}"
    else:
        text = "-" if not low else f"≥ {low:.2f}"
    return f"{text} ({found['cpu']:.{3 if found['cpu'] < 0.1 else 2}f})"


def shown(chosen: list[Row], known: dict[tuple[int, str], dict[str, Any]], methods: list[str]) -> int:
    """Prints the table and what it amounts to; 1 when something is wrong."""
    head = ["row", "name", "members", "attacks", "points", "size", "α", "ε", *methods]
    lines, wrong = [], list[str]()
    for row in chosen:
        said = {method: known.get((row.number, method)) for method in methods}
        sizes = [row.members, row.attacks, row.points, f"{row.side}x{row.side}", f"{row.alpha:g}", f"{row.epsilon:g}"]
        lines.append([str(row.number), row.name, *map(str, sizes), *(cell(said[m]) for m in methods)])
        wrong += [f"row {row.number}: {one}" for one in contradictions(row, said)]
    print(markdown(head, lines))
    print(f"\n{machine()}")
    exact = [known[row.number, "decomposed"] for row in chosen if (row.number, "decomposed") in known]
    print(f"decomposed: {sum(one['finished'] for one in exact)} of {len(exact)} rows answered")
    for method in ("milp", "milp-plain", "milp-interval", "maxmilp", "smt"):
        both = [
            (known[row.number, method]["cpu"], known[row.number, "decomposed"]["cpu"])
            for row in chosen
            if known.get((row.number, method), {}).get("finished") and (row.number, "decomposed") in known
        ]
        if both:
            ratios = sorted(theirs / ours for theirs, ours in both)
            sums = [sum(one) for one in zip(*both)]
            print(
                f"{method}: {len(both)} of {len(chosen)} rows finished; its CPU seconds over those of decomposed: "
                f"least {ratios[0]:.1f}, median {ratios[len(ratios) // 2]:.1f}, at least 50 on "
                f"{sum(ratio >= 50 for ratio in ratios)}; in total {sums[0]:.2f} over {sums[1]:.3f}, "
                f"{sums[0] / sums[1]:.0f} times"
            )
    for line in wrong:
        print(f"WRONG {line}")
    return int(bool(wrong) or not all(one["finished"] for one in exact))


def contradictions(row: Row, said: dict[str, dict[str, Any] | None]) -> list[str]:
    """Where methods exclude each other: with fewer attacks than members an encoding may only stay below the value."""
    exact = said.get("decomposed")
    if exact is None:
        return []
    low, high = exact["value"]
    found = []
    for method, one in said.items():
        if one is None or method == "decomposed":
            continue
        if one["value"][0] > high + SAME:
            found.append(f"{method} witnessed {one['value'][0]:.4f}, decomposed allows {high:.4f}")
        if row.attacks >= row.members and method not in ATTACKERS and one["value"][1] < low - SAME:
            found.append(f"{method} allows {one['value'][1]:.4f}, decomposed witnessed {low:.4f}")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
