"""The picture in docs/architecture.md, the walk of one input: python scripts/architecture_picture.py [picture.png]"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

# Each step: its place (column, row), what it is, where it is, and its kind.
STEPS = {
    "network": ((0, 0), "network\n.onnx, torch, zoo:", "models/", "given"),
    "input": ((0, 1), "input\n.npz, folder, name", "data/", "given"),
    "plan": ((1, 0.5), "units by\ncontent key", "study/plan.py", "work"),
    "claim": ((2, 0.5), "claimed,\nrun by a worker", "study/, runners/", "work"),
    "search": ((3, 0.5), "search asks\nthe verifier", "search/, verifiers/", "work"),
    "attack": ((4, 0), "upper end: attack,\nreplayed", "attacks/, decide.py", "end"),
    "engine": ((4, 1), "lower end: bounds\nand branching", "engine/, bounds/", "end"),
    "store": ((5, 0.5), "radius: lower,\nupper, witness", "store/, evidence/", "kept"),
    "stats": ((6, 0), "curves, tests,\nguarantees", "stats/", "kept"),
    "report": ((6, 1), "page, tables,\nfigures", "report/, cli/", "kept"),
}
ARROWS = [
    "network plan", "input plan", "plan claim", "claim search", "search attack", "search engine",
    "attack store", "engine store", "store stats", "stats report",
]  # fmt: skip
COLOURS = {"given": "#e8eef7", "work": "#f3f0e6", "end": "#e6f3ec", "kept": "#f5e8ee"}
WIDTH, HEIGHT = 1.0, 0.44


def middle(name: str) -> tuple[float, float]:
    """The centre of a step's box."""
    column, row = STEPS[name][0]
    return column * 1.3, -row * 0.95


def draw(target: Path) -> Path:
    """Draws every step and arrow, and writes the picture."""
    figure, axes = plt.subplots(figsize=(13, 3), dpi=110)
    for name, (_, text, place, kind) in STEPS.items():
        x, y = middle(name)
        box = FancyBboxPatch(
            (x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle="round,pad=0.02", fc=COLOURS[kind], ec="#44506a"
        )
        axes.add_patch(box)
        axes.text(x, y + 0.02, text, ha="center", va="center", fontsize=8)
        axes.text(
            x, y - HEIGHT / 2 - 0.06, place, ha="center", va="top", fontsize=7, family="monospace", color="#44506a"
        )
    for arrow in ARROWS:
        (x0, y0), (x1, y1) = (middle(name) for name in arrow.split())
        upright = x0 == x1
        tail = (x0, y0 - HEIGHT / 2 - 0.19) if upright else (x0 + WIDTH / 2 + 0.02, y0)
        head = (x1, y1 + HEIGHT / 2 + 0.02) if upright else (x1 - WIDTH / 2 - 0.02, y1)
        axes.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": "#44506a", "lw": 1.3})
    axes.set(xlim=(-0.6, 8.4), ylim=(-1.4, 0.32))
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(target, bbox_inches="tight")
    plt.close(figure)
    return target


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "architecture.png"
    print(draw(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
