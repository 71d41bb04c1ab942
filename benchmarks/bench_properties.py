"""Definitions of robustness on networks as in Casadio et al. (2022): verdicts, critical constants, Marabou beside.

    python scripts/train_properties.py                        # the networks, into build/properties/
    python benchmarks/bench_properties.py --quick             # four images
    python benchmarks/bench_properties.py                     # 200 test images; goes on where it was stopped

CR, SCR, SR and LR at ε = .1, η = .52, δ = 10, L = 10, then the critical δ and L of every image (reaches within 5 %).
Rows go to a file of JSON lines. Ends with 1 when an attack or a sample breaks what is proven, or Marabou contradicts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT

from radii.attacks.reach import Ascent
from radii.data import Dataset
from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.prepare import working
from radii.models import Classifier, load_classifier
from radii.problem import Instance, Norm, Query, Verdict
from radii.problem.property import known_property, measured
from radii.study.measures import Settings, is_broken, violated
from radii.verifiers.marabou import Marabou

sys.path.insert(0, str(ROOT / "scripts"))
from train_properties import images

NETWORKS = ("fashion-30", "fashion-100", "gtsrb-30", "gtsrb-100")
PROPERTIES = (
    "classification",
    "strong:eta=0.52",
    "strong:eta=0.52,on=probability",
    "standard:delta=10",
    "lipschitz:constant=10",
)
REACHES = ("standard", "lipschitz")
EPSILON, NORM, TOLERANCE = 0.1, Norm.of("linf"), 0.05


def main() -> int:
    options = arguments()
    known = {(r["kind"], r["network"], r["property"], r["index"]): r for r in kept(options.output)}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a", encoding="utf-8") as file:
        names = options.network or NETWORKS
        passes = [verdicts, marabou, *(partial(reaches, text) for text in REACHES)]
        for made, name in [(made, name) for made in passes for name in names]:
            net, data = load_classifier(options.networks / f"{name}.onnx"), chosen(name, options)
            for row in made(name, net, data, known, options):
                known[row["kind"], row["network"], row["property"], row["index"]] = row
                print(json.dumps(row), file=file, flush=True)
    return summarise(list(known.values()))


def kept(file: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def chosen(name: str, options: argparse.Namespace) -> Dataset:
    """Test images spread evenly over the split, so that all classes are there."""
    data = images(name.split("-")[0], "test", options.data)
    return data[np.linspace(0, len(data) - 1, min(options.images, len(data))).astype(int)]


Known = dict[Any, Any]
Rows = Iterator[dict[str, Any]]


def verdicts(name: str, net: Classifier, data: Dataset, known: Known, options: argparse.Namespace) -> Rows:
    """The verdicts that are not known yet."""
    with working(net):
        for text, instance in [(text, one) for text in PROPERTIES for one in data]:
            if ("verdict", name, text, instance.index) not in known:
                query = Query(instance, EPSILON, known_property(text), NORM)
                yield {**row_of("verdict", name, text, instance), **verdict(net, query, options.seconds)}


def marabou(name: str, net: Classifier, data: Dataset, known: Known, options: argparse.Namespace) -> Rows:
    """Marabou's on the first images."""
    for text, instance in [(text, one) for text in PROPERTIES for one in list(data)[: options.marabou]]:
        query = Query(instance, EPSILON, known_property(text), NORM)
        asked = query.property.speaks_of in ("classes", "outputs")
        if asked and ("marabou", name, text, instance.index) not in known:
            answer = Marabou().decide(net, [query], Budget(seconds=options.marabou_seconds))[0]
            found = {"verdict": answer.verdict.value, "cpu": answer.cpu_seconds}
            yield {**row_of("marabou", name, text, instance), **found}


def reaches(text: str, name: str, net: Classifier, data: Dataset, known: Known, options: argparse.Namespace) -> Rows:
    """The critical δ or L that are not known yet."""
    with working(net):
        for instance in data:
            if ("reach", name, text, instance.index) not in known:
                asked = [instance], measured(text), NORM, EPSILON, Budget(seconds=options.seconds)
                found = Native().reach(net, *asked, tolerance=TOLERANCE)[0]
                ends = {"lower": found.lower, "upper": found.upper, "gap": found.relative_gap}
                yield {**row_of("reach", name, text, instance), **ends, "cpu": found.cost.cpu_seconds}


def row_of(kind: str, name: str, text: str, instance: Instance) -> dict[str, Any]:
    """What every row begins with."""
    return {"kind": kind, "network": name, "property": text, "index": instance.index, "label": instance.label}


def verdict(net: Classifier, query: Query, seconds: float) -> dict[str, Any]:
    """The verdict, and what an attack and 100 samples say of their own where no replayed input breaks the ball."""
    answer = Native().decide(net, [query], Budget(seconds=seconds))[0]
    found = {"verdict": answer.verdict.value, "cpu": answer.cpu_seconds, "attacked": True, "violations": None}
    if answer.verdict is not Verdict.BROKEN:
        settings = Settings(query.epsilon, query.norm, Budget(seconds=seconds), Ascent())
        found["attacked"], found["violations"] = is_broken(net, query, settings), violated(net, query, settings)
    return found


def summarise(rows: list[dict[str, Any]]) -> int:
    """Prints counts and quantiles; 1 when something contradicts."""
    faults = 0
    for name in dict.fromkeys(r["network"] for r in rows):
        mine = [r for r in rows if r["network"] == name]
        for text in PROPERTIES:
            own = {r["index"]: r for r in mine if r["kind"] == "verdict" and r["property"] == text}
            if not own:
                continue
            words = {word.value: sum(r["verdict"] == word.value for r in own.values()) for word in Verdict}
            wrong = [r for r in own.values() if r["verdict"] == "robust" and (r["attacked"] or r["violations"])]
            print(f"{name} {text}: {words}, {sum(r['cpu'] for r in own.values()):.1f} CPU s", end="")
            theirs = [r for r in mine if r["kind"] == "marabou" and r["property"] == text]
            done = [r for r in theirs if r["verdict"] != "unknown"]
            against = [r for r in done if {r["verdict"], own[r["index"]]["verdict"]} == {"robust", "broken"}]
            if theirs:
                ours = sum(own[r["index"]]["cpu"] for r in done)
                print(
                    f"; Marabou {len(done)} of {len(theirs)}, {sum(r['cpu'] for r in done):.1f} CPU s on them, "
                    f"radii {ours:.1f}",
                    end="",
                )
            print()
            faults += len(wrong) + len(against)
        for text in REACHES:
            found = [r for r in mine if r["kind"] == "reach" and r["property"] == text]
            closed = [r for r in found if r["gap"] is not None and r["gap"] <= TOLERANCE * (1 + 1e-9)]
            if found:
                ends = {end: [r[end] for r in found if r[end] is not None] for end in ("lower", "upper")}
                shown = [f"{np.quantile(ends[e], [0, 0.25, 0.5, 0.75, 1]).round(1)}" for e in ends if ends[e]]
                print(
                    f"{name} critical {text}: {len(closed)} of {len(found)} within 5 %, least, quartiles and largest "
                    f"of witnessed and proven ends {' '.join(shown)}, {sum(r['cpu'] for r in found):.1f} CPU s"
                )
    for kind in ("verdict", "reach"):
        mine = [r for r in rows if r["kind"] == kind]
        left = sum(r["verdict"] == "unknown" for r in mine) if kind == "verdict" else ""
        seconds = sum(r["cpu"] for r in mine)
        print(f"all rows of kind {kind}: {len(mine)}, {seconds:.0f} CPU s{f', {left} open' if left != '' else ''}")
    theirs = {(r["network"], r["property"], r["index"]): r for r in rows if r["kind"] == "marabou"}
    done = {key for key, r in theirs.items() if r["verdict"] != "unknown"}
    ours = sum(r["cpu"] for r in rows if r["kind"] == "verdict" and (r["network"], r["property"], r["index"]) in done)
    print(f"Marabou: {len(done)} of {len(theirs)}, {sum(theirs[k]['cpu'] for k in done):.1f} CPU s, radii {ours:.1f}")
    print(f"contradictions: {faults}")
    return 1 if faults else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--networks", type=Path, default=ROOT / "build" / "properties")
    parser.add_argument("--network", action="extend", nargs="+", help="these alone")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds per image and question")
    parser.add_argument("--marabou", type=int, default=0, help="images per network and property that Marabou gets too")
    parser.add_argument("--marabou-seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true", help="four images")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "properties" / "rows.jsonl")
    options = parser.parse_args()
    if options.quick:
        options.images, options.output = 4, options.output.with_name("quick.jsonl")
    return options


if __name__ == "__main__":
    sys.exit(main())
