"""Draws the critical Lipschitz constants that bench_properties.py kept: their distribution, and per class.

    python benchmarks/bench_properties.py                                    # the rows
    python scripts/critical_slopes_picture.py                                # from build/properties/rows.jsonl
    python scripts/critical_slopes_picture.py docs/critical-slopes.csv       # from the rows that come with the pages

Writes docs/pictures/critical-slopes.png, and from JSON lines docs/critical-slopes.csv as well.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from train_properties import ROOT, images

from radii.report.figures import save
from radii.report.reach_curves import class_reaches, reach_curve
from radii.report.style import blank
from radii.stats.reaches import ReachDistribution

DOCS = ROOT / "docs"
COLUMNS = ["network", "index", "label", "lower", "upper"]


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "properties" / "rows.jsonl"
    if source.suffix == ".csv":
        rows = pd.read_csv(source)
    else:
        rows = pd.read_json(source, lines=True)
        rows = rows[(rows.kind == "reach") & (rows.property == "lipschitz")][COLUMNS]
        rows.to_csv(DOCS / "critical-slopes.csv", index=False, float_format="%.6g")
    figure = blank(11.0, 4.2)
    left, right = figure.subplots(1, 2)
    reach_curve([distribution(rows, name) for name in rows.network.unique()], left)
    class_reaches(distribution(rows, "fashion-30"), right)
    right.set_title("fashion-30", fontsize=9)
    print(save(figure, DOCS / "pictures" / "critical-slopes.png"))
    for name, part in rows.groupby("network", sort=False):
        least, middle, most = part.upper.min(), part.upper.median(), part.upper.max()
        gap = ((part.upper - part.lower) / part.upper).max()
        print(
            f"{name}: {len(part)} images, proven {least:.0f} to {most:.0f}, median {middle:.0f}; gap at most {gap:.1%}"
        )


def distribution(rows: pd.DataFrame, name: str) -> ReachDistribution:
    """The slopes of one network's images."""
    part = rows[rows.network == name]
    names = images(name.split("-")[0], "test").class_names
    of = {"epsilon": 0.1, "quantity": "slope", "norm": "linf", "unit": "output per unit of input"}
    return ReachDistribution.from_arrays(part.lower, part.upper, part.label, name=name, class_names=names, **of)


if __name__ == "__main__":
    main()
