"""Gross, Jansen, Pérez, Raaijmakers: Robustness Verification for Classifier Ensembles."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, Page, markdown, read_csv
from steps import Command

from radii.report.style import PALETTE, legend, new_figure, tidy

sys.path.insert(0, str(ROOT / "scripts"))
from train_ensembles import rows

SAME = 1e-4  # values that differ by less agree
EXACT, ENCODED, ATTACKERS = "decomposed", ("milp-plain", "milp", "maxmilp", "smt"), ("ua", "bda", "mw")
MEMBERS = ("mnist-net_256x2", "mnist-net", "mnist_relu_3_50", "mnist_nn", "mnist5k-standard")
PAPER = {row.number: row for row in rows()}  # Table 4
# Table 6: what the uniform and the best deterministic attacker get.
UA = {number: 0.25 if number in (13, 14) else 0.33 for number in (*range(1, 21), 32, 33)}
STEPS = (
    Command(
        "train-ensembles",
        ("scripts/train_ensembles.py",),
        0.05,
        small=("scripts/train_ensembles.py", "--output", "{work}/networks", "--name", "mnist_3_6-8x8", "--name",
               "mnist_7_8-6x6"),
    ),
    Command(
        "suite",
        ("benchmarks/bench_ensemble_suite.py", "--seconds", "60", "--output", "{output}"),
        2.5,
        units=38 * 9,
        small=("benchmarks/bench_ensemble_suite.py", "--rows", "19", "24", "25", "--methods", EXACT, "milp", "ua",
               "bda",
               "--seconds", "5", "--networks", "{work}/networks", "--output", "{output}"),
        small_units=12,
        columns=("row", "method", "seconds", "value", "robust", "finished", "cpu", "attacks", "claimed"),
        spent="cpu",
        budget="60 CPU s per row and method",
    ),
    Command(
        "large",
        ("benchmarks/bench_ensembles.py", "large", "--workers", "{workers}"),
        0.4,
        units=11,
        columns=("epsilon", "value", "best_single", "uniform", *MEMBERS, "points"),
        table="build/ensembles/large.json",
        budget="50 images, 5 CPU s per radius",
    ),
)  # fmt: skip


def page(results: Path, pictures: Path) -> Page:
    """Tables 1 to 6 of the paper, and a game of real size."""
    made = Page(
        "Classifier ensembles against randomised attacks, measured again",
        "The paper asks what an attacker who may toss coins gets from an ensemble that knows the attack, by an SMT "
        "and a MILP encoding (Z3, Gurobi, time-out not printed), on 38 "
        "rows of small networks. Its networks and images are not published; here the suite is rebuilt with networks "
        "of the same sizes and data sets, so that values may differ while "
        "the task is the same. radii's own method needs no joint encoding: it finds, for every image, which sets of "
        "networks one perturbation fools, and solves a matrix game "
        "([how](../ensembles.md)). `make study-003` makes this page, in about three hours on two cores from "
        "nothing; `SMALL=1 make study-003` takes a minute.",
        pictures,
        "003",
    )
    said: dict[int, dict[str, dict[str, Any]]] = {}
    for row in read_csv(results / "suite.csv"):
        found = {
            **row,
            "value": json.loads(row["value"]),
            "cpu": float(row["cpu"]),
            "finished": row["finished"] == "True",
        }
        said.setdefault(int(row["row"]), {})[row["method"]] = found
    answers(made, said)
    compared(made, said)
    attackers(made, said)
    large(made, read_csv(results / "large.csv"))
    return made


def cell(found: dict[str, Any] | None) -> str:
    """An answer in a few characters: value and CPU seconds."""
    if found is None:
        return ""
    low, high = found["value"]
    if found["method"] in ATTACKERS:
        text = f"{low:.2f}"
    elif not found["finished"]:
        text = "–" if not low else f"≥ {low:.2f}"
    elif found["robust"] == "True" and found["method"] != EXACT:
        text = "robust"
    else:
        text = f"{low:.2f}" if high - low < SAME or found["method"] != EXACT else f"{low:.2f} to {high:.2f}"
    return f"{text} ({found['cpu']:.2f})"


def answers(made: Page, known: dict[int, dict[str, dict[str, Any]]]) -> None:
    """Tables 1, 4 and 5."""
    exact = {number: said[EXACT] for number, said in known.items() if EXACT in said}
    if not exact:
        return
    closed = sum(one["finished"] for one in exact.values())
    slow = max(one["cpu"] for one in exact.values())
    made.claim(
        "SMT times out on most rows, MILP on two (21 and 23)",
        f"the decomposed method answers {closed} of {len(exact)} rows, each within {slow:.2f} CPU s"
        + (
            ", rows 21 and 23 among them"
            if {21, 23} <= set(exact) and exact[21]["finished"] and exact[23]["finished"]
            else ""
        ),
        "refined",
        closed == len(exact),
    )
    wrong = [f"row {n}, {m}" for n, said in known.items() for m in contradictions(n, said)]
    made.claim(
        "SMT and MILP agree",
        f"contradictions between methods on {len(known)} rows: {', '.join(wrong) or 'none'}",
        "agrees" if not wrong else "differs",
        not wrong,
    )
    cells = []
    for number, said in sorted(known.items()):
        row = PAPER[number]
        theirs = ["time-out" if one is None else f"{one[1]} ({one[0]:g})" for one in (row.smt, row.milp)]
        sizes = row.members, row.attacks, f"{row.alpha:g}", f"{row.epsilon:g}"
        cells.append((number, row.name, *sizes, cell(said.get(EXACT)), *(cell(said.get(m)) for m in ENCODED), *theirs))
    heads = ("row", "name", "members", "attacks", "α", "ε", "decomposed", *ENCODED, "paper, SMT", "paper, MILP")
    made.section(
        "The 38 rows (Tables 1, 2, 4 and 5)",
        "A cell is the value of an attack, or *robust*, with CPU seconds in brackets; – where the budget ran out. "
        "The decomposed method gives the value of the game with any number of "
        "attacks; an encoding may only use the row's number, and stops at α. The paper's seconds are of its own "
        "machine.",
        markdown(heads, cells),
    )


def contradictions(number: int, said: dict[str, dict[str, Any]]) -> list[str]:
    """Methods that exclude the exact value."""
    if EXACT not in said:
        return []
    low, high = said[EXACT]["value"]
    found = [m for m, one in said.items() if m != EXACT and one["value"][0] > high + SAME]
    full = PAPER[number].attacks >= PAPER[number].members
    return found + [m for m, one in said.items() if full and m in ENCODED and one["value"][1] < low - SAME]


def compared(made: Page, known: dict[int, dict[str, dict[str, Any]]]) -> None:
    """CPU seconds of encodings over those of the decomposed method."""
    lines = []
    for method in ENCODED:
        ratios = [
            s[method]["cpu"] / max(s[EXACT]["cpu"], 1e-3)
            for s in known.values()
            if EXACT in s and method in s and s[method]["finished"]
        ]
        asked = sum(method in s for s in known.values())
        if asked:
            shown = (f"{min(ratios):.1f}", f"{np.median(ratios):.1f}", f"{max(ratios):.1f}") if ratios else ("–",) * 3
            lines.append((method, f"{len(ratios)} of {asked}", *shown))
    made.section(
        "CPU seconds of the encodings over those of the decomposed method",
        markdown(("method", "rows finished", "least ratio", "median", "largest"), lines) if lines else "",
    )


def attackers(made: Page, known: dict[int, dict[str, dict[str, Any]]]) -> None:
    """Tables 3 and 6: simple attackers."""
    cells = []
    for number, said in sorted(known.items()):
        if number in UA and {"ua", "bda", EXACT} <= set(said):
            cells.append(
                (
                    number,
                    *(f"{said[m]['value'][0]:.2f}" if m in said else "" for m in ATTACKERS),
                    cell(said[EXACT]),
                    UA[number],
                )
            )
    if not cells:
        return
    short = [c[0] for c in cells if max(float(c[1]), float(c[2])) < known[c[0]][EXACT]["value"][0] - SAME]
    best = sum(float(c[2]) >= float(c[1]) for c in cells)
    over = [c[0] for c in cells if max(float(v) for v in c[1:3]) > known[c[0]][EXACT]["value"][1] + 0.005]
    made.claim(
        "the uniform and the best deterministic attacker stay below the optimum; the deterministic one usually gets "
        "more",
        f"below it on {len(short)} of {len(cells)} rows; the deterministic one gets at least as much on {best}",
        "agrees" if len(short) == len(cells) and best > len(cells) / 2 else "refined",
        not over,
    )
    made.section(
        "Simple attackers (Tables 3 and 6)",
        "ua attacks each member in turn with equal chances, bda is the best of these attacks alone, mw the attacker "
        "by multiplicative weights.",
        markdown(("row", *ATTACKERS, "value of the game", "paper, UA"), cells),
    )


def large(made: Page, table: list[dict[str, str]]) -> None:
    """Five networks of real size."""
    if not table:
        return
    ends = [tuple(float(v) for v in row["value"].split(" to ")) for row in table]
    sizes, single, uniform = (
        np.array([float(row[key]) for row in table]) for key in ("epsilon", "best_single", "uniform")
    )
    width = float(np.mean([high - low for low, high in ends]))
    gained = max(float(s - high) for s, (_, high) in zip(single, ends))
    made.claim(
        "tables end at networks of some hundred inputs",
        f"five MNIST networks of up to 1,024 ReLUs, {table[0]['points']} test images: the value is known within "
        f"{width:.3f} on average over ε; a "
        f"random choice beats the best single network by up to {gained:.2f}",
        "new",
    )
    figure, axes = new_figure()
    axes.fill_between(
        sizes, [a for a, _ in ends], [b for _, b in ends], color=PALETTE[0], alpha=0.4, label="best mix: value"
    )
    for values, label, colour in ((single, "best single network", PALETTE[1]), (uniform, "uniform choice", PALETTE[2])):
        axes.plot(sizes, values, color=colour, label=label)
    tidy(axes, "ε (L∞)", "expected share of images lost")
    legend(axes)
    cells = [tuple(row.values()) for row in table]
    made.section(
        "Five MNIST networks (beyond the paper)",
        markdown(tuple(table[0]), cells),
        made.picture("large", figure, "What the best randomised attack gets from five networks, by ε"),
    )
