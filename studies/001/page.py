"""A page of tables and pictures from the radii that `studies/run.py` exported: ours beside those of the paper.

    python studies/001/page.py --folder FOLDER_OF_CSV_FILES [--output PAGE.md]

Tables 5, 7 and 8 and the log-normality tests of Bosman et al. (JAIR 2025), and their Figures 2, 3, 4, 6 and 7. The
figures printed in the paper are the constants `PAPER` below; all others come from the CSV files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import BUILD, markdown

from radii import Distribution
from radii.report import figures
from radii.report.content import gather
from radii.stats.correlation import correlations
from radii.stats.goodness_of_fit import goodness
from radii.stats.jair_tests import ks_two_sample, lognormal_ks, welch

HERE = Path(__file__).resolve().parent
# The paper's Tables 5, 7 and 8: lowest and mean radius of training and of test images; CPU hours of k-binary, k = 2.
PAPER: dict[str, tuple[float, float, float, float, float | None]] = {
    "mnist-net": (0.013, 0.042, 0.005, 0.038, 272),
    "mnist-net_256x2": (0.011, 0.037, 0.007, 0.034, 86),
    "mnist-net_256x4": (0.001, 0.072, 0.011, 0.067, 1022),
    "mnist_relu_3_50": (0.007, 0.058, 0.005, 0.052, 418),
    "mnist_relu_6_200": (0.001, 0.067, 0.005, 0.067, 868),
    "mnist_relu_9_100": (0.005, 0.064, 0.009, 0.057, 851),
    "mnist_nn": (0.001, 0.030, 0.001, 0.027, 171),
    "mnist_nn_fgsm_02": (0.001, 0.188, 0.007, 0.174, None),
    "convSmallRELU__Point": (0.005, 0.144, 0.005, 0.138, None),
    "convSmallRELU__DiffAI": (0.079, 0.155, 0.025, 0.149, None),
}
Both = dict[str, dict[str, Distribution]]  # split -> network -> radii


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--output", type=Path, default=BUILD / "001" / "page.md")
    options = parser.parse_args()
    found = read(options.folder)
    if not found["train"]:
        print(f"{options.folder}: expected files *-train.csv of studies/run.py, got none", file=sys.stderr)
        return 2
    parts = {
        "Radii, ours and the paper's": radii_table(found),
        "CPU hours": cost_table(found),
        "Are radii log-normal?": shape_table(found),
        "Training against test images, as in the paper": split_table(found),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    drawn = pictures(found, options.output.parent / "pictures")
    shown = [f"![{name}](pictures/{name}.png)" for name in drawn]
    text = [f"## {title}\n\n{table}\n" for title, table in parts.items()] + ["## Figures\n", *shown]
    options.output.write_text("\n".join(text) + "\n", encoding="utf-8")
    print(f"{options.output}: {len(found['train'])} networks, {len(drawn)} pictures", file=sys.stderr)
    return 0


def read(folder: Path) -> Both:
    """The radii of every network by split; networks in the order of the paper's Figure 2, by least radius."""
    found: Both = {"train": {}, "test": {}}
    for split, by_name in found.items():
        for file in sorted(folder.glob(f"*-{split}.csv")):
            by_name.update({one.question["classifier"]: one.dist for one in gather([file]).series})
    order = sorted(found["train"], key=lambda name: -float(np.nanmin(known(found["train"][name])[0])))
    return {split: {name: by_name[name] for name in order if name in by_name} for split, by_name in found.items()}


def known(dist: Distribution) -> tuple[Any, Any]:
    """Both ends of correctly classified inputs; an absent lower end is 0."""
    return np.nan_to_num(dist.lower[dist.correct]), dist.upper[dist.correct]


def each(found: Both) -> Iterator[tuple[str, str, Distribution]]:
    """Network, split and radii."""
    for name in found["train"]:
        for split, by_name in found.items():
            if name in by_name:
                yield name, split, by_name[name]


def radii_table(found: Both) -> str:
    """Lowest and mean radius beside the paper's."""
    rows = []
    for name, split, dist in each(found):
        lower, upper = known(dist)
        paper = PAPER[name][0:2] if split == "train" else PAPER[name][2:4]
        closed = np.mean(upper - lower <= 0.002 * (1 + 1e-9))
        rows.append(
            (
                name,
                split,
                len(lower),
                f"{lower.min():.4f} to {upper.min():.4f}",
                f"{paper[0]:.3f}",
                f"{lower.mean():.4f} to {upper.mean():.4f}",
                f"{paper[1]:.3f}" + (" **above**" if paper[1] > upper.mean() + 5e-4 else ""),
                f"{100 * closed:.0f} %",
                f"{np.mean((upper - lower) / upper):.3f}",
            )
        )
    heads = ("network", "images", "number", "lowest radius", "paper", "mean radius", "paper", "closed", "mean gap")
    return markdown(heads, rows)


def cost_table(found: Both) -> str:
    """CPU hours beside the paper's."""
    rows, ours, theirs = [], 0.0, 0.0
    for name in found["train"]:
        spent = sum(float(np.nansum(by[name].cpu_seconds)) for by in found.values() if name in by) / 3600
        paper = PAPER[name][4]
        both = name in found["test"]
        if paper is not None and both:
            ours, theirs = ours + spent, theirs + paper
        shown = "–" if paper is None else f"{paper:.0f}"
        rows.append((name, f"{spent:.2f}" + ("" if both else " (train only)"), shown))
    rows.append(("those with both figures", f"{ours:.2f}", f"{theirs:.0f}"))
    return markdown(("network", "radii, CPU hours", "paper (k = 2), CPU hours"), rows)


def shape_table(found: Both) -> str:
    """Log-normality by the paper's test and by one that takes gaps and the fit into account."""
    rows = []
    for name, split, dist in each(found):
        plain = lognormal_ks(dist.lower[dist.correct])
        sound = goodness(dist.ends("correct"))
        fits = {fit.family: fit for fit in sound.fits}
        mine = fits.get("lognormal") or fits.get("log-normal")
        best = sound.fits[0].family if sound.fits else sound.reason
        p = "–" if plain.p_value is None else f"{plain.p_value:.3f}"
        rows.append(
            (
                name,
                split,
                p,
                plain.verdict(),
                "–" if mine is None else f"{mine.p_value:.3f}",
                mine.verdict() if mine else "–",
                best,
            )
        )
    heads = (
        "network",
        "images",
        "p, as in the paper",
        "verdict",
        "p, sound test",
        "verdict",
        "best of four families by AIC",
    )
    return markdown(heads, rows)


def split_table(found: Both) -> str:
    """Training against test images, as in the paper."""
    rows = []
    for name in found["train"]:
        if name in found["test"]:
            a, b = known(found["train"][name])[0], known(found["test"][name])[0]
            ks, t = ks_two_sample(a, b), welch(a, b)
            rows.append((name, f"{ks.p_value:.3f}", ks.verdict(), f"{t.p_value:.3f}", t.verdict()))
    return markdown(("network", "KS, p", "verdict", "Welch, p", "verdict"), rows)


def pictures(found: Both, folder: Path) -> list[str]:
    """Figures 2, 3, 4, 6 and 7 of the paper, of our radii; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    train, test = found["train"], found["test"]
    medians = sorted(train, key=lambda name: float(np.median(known(train[name])[0])))
    drawn = {
        "figure-2": figures.network_boxes(list(train.values())),
        "figure-3": figures.ecdf([train[medians[-1]], train[medians[0]]]),
    }
    if test:
        drawn["figure-4"] = figures.split_boxes({name: train[name] for name in test}, test)
    for split, by_name in found.items():
        pairs = [one for one in correlations(by_name) if one.value is not None]
        if pairs:
            pairs.sort(key=lambda one: one.value or 0.0)
            drawn[f"figure-6-{split}"] = figures.spearman_heat_map(pairs)
            for what, one in (("lowest", pairs[0]), ("highest", pairs[-1])):
                drawn[f"figure-7-{split}-{what}"] = figures.paired_scatter(by_name[one.a], by_name[one.b])
    for name, axes in drawn.items():
        figures.save(axes.figure, folder / f"{name}.png")
    return list(drawn)


if __name__ == "__main__":
    sys.exit(main())
