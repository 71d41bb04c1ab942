"""Pictures of docs/bench.md: how cost grows with networks, and how gaps shrink with time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radii.report.style import PALETTE, look


def growth(found: dict[str, Any], file: Path) -> None:
    """CPU seconds per image over width, depth and the number of undecided neurons."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, (name, label) in zip(axes, (("width", "width, 2 hidden layers"), ("depth", "hidden layers, 50 wide"))):
        axis.plot([r[0] for r in found[name]], [r[1] for r in found[name]], marker="o", color=PALETTE[0])
        axis.set(xlabel=label, yscale="log", xticks=[r[0] for r in found[name]])
    points = found["neurons"]
    for position, (label, want) in enumerate((("closed", True), ("open", False))):
        some = [p for p in points if p[2] == want]
        drawn = look(position)
        axes[2].scatter([p[0] for p in some], [p[1] for p in some], 14, drawn.colour, "os"[position], label=label)
    axes[2].axhline(found["seconds"], color="0.6", linewidth=0.8)
    axes[2].set(xlabel="undecided neurons at the upper end")
    axes[2].legend(frameon=False)
    axes[0].set_ylabel("CPU s per image")
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter("")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)


def curves(results: dict[str, Any], file: Path) -> None:
    """Mean gaps of networks over the CPU seconds per image."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    for position, (name, r) in enumerate(results.items()):
        drawn = look(position)
        seconds, gaps = zip(*r["gaps"])
        axis.plot(seconds, gaps, color=drawn.colour, linestyle=drawn.line, marker="o", label=name)
    axis.set(xlabel="CPU s per image", ylabel="mean (upper − lower) / upper", xscale="log", ylim=(0, None))
    ticks = sorted({s for r in results.values() for s, _ in r["gaps"]})
    axis.set_xticks(ticks, [f"{s:g}" for s in ticks], minor=False)
    axis.minorticks_off()
    figure.legend(frameon=False, fontsize=8, loc="outside upper center", ncols=3)  # clear of the lines
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
