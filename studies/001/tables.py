"""The tables of the page: ours beside those of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import markdown, read_csv, span
from read import PAPER, Both, Shared, known

from radii import Distribution
from radii.stats.correlation import correlations
from radii.stats.goodness_of_fit import goodness
from radii.stats.jair_tests import PaperTest, ks_two_sample, lognormal_ks, welch
from radii.stats.ks import two_sample

TABLE_1 = {1: (7, 12.68, 74), 2: (4, 11.78, 19), 4: (7, 18.33, 31), 8: (15, 28.51, 54), 16: (4, 22.46, 54)}
TABLE_6 = {
    "mnist-net_256x4": (0.072, 0.072, 0.640),
    "mnist_nn": (0.030, 0.028, 0.81),
    "mnist-net_256x2": (0.037, 0.039, 0.296),
}
GRID = 0.002


def renamed(dist: Distribution, name: str) -> Distribution:
    """The same radii under another name."""
    return replace(dist, name=name)


def printed(name: str, split: str) -> tuple[float, float]:
    """Lowest and mean radius that the paper prints."""
    return PAPER[name][0:2] if split == "train" else PAPER[name][2:4]


def radii_table(found: Both) -> str:
    """Lowest and mean radius beside the paper's."""
    rows = []
    for name, split, dist in found.each():
        lower, upper = known(dist)
        least, mean = printed(name, split)
        closed = np.mean(upper - lower <= GRID * (1 + 1e-6))
        above = " **above**" if len(dist) >= 100 and mean > upper.mean() + 5e-4 else ""
        ends = (
            span(lower.min(), upper.min(), 4),
            f"{least:.3f}",
            span(lower.mean(), upper.mean(), 4),
            f"{mean:.3f}{above}",
        )
        rows.append(
            (name, split, len(lower), *ends, f"{100 * closed:.0f} %", f"{np.mean((upper - lower) / upper):.3f}")
        )
    heads = (
        "network",
        "images",
        "right",
        "lowest radius",
        "paper",
        "mean radius",
        "paper",
        "closed",
        "mean relative gap",
    )
    return markdown(heads, rows)


def published_table(rows: list[Shared]) -> str:
    """Published rows beside ours."""
    cells = [(r.name, r.shared, r.shared - r.apart, f"{r.seconds:.0f}", f"{r.published_seconds:,.0f}") for r in rows]
    return markdown(("network", "shared images", "intervals overlap", "CPU s, radii", "seconds, published"), cells)


def quality_table(found: Both) -> str:
    """The measures of Tables 2 and 3."""
    rows = []
    for name, split, dist in found.each():
        q = dist.summary()
        shares = [f"{100 * (value or 0):.0f} %" for value in (q.critical_share, q.unsolved_share)]
        gaps = [f"{value:.4f}" if value is not None else "–" for value in (q.mean_gap, q.largest_gap)]
        rows.append((name, split, f"{q.correct} of {q.n}", *shares, *gaps))
    heads = ("network", "images", "right", "critical terminations", "unsolved", "mean gap", "largest gap")
    return markdown(heads, rows)


def hours(found: Both) -> tuple[float, float, int]:
    """CPU hours of ours and of the paper for the same number of images, and that number."""
    ours = theirs = 0.0
    images = 0
    for name, _, dist in found.each():
        right = int(dist.correct.sum())
        ours += float(np.nansum(dist.cpu_seconds)) / 3600
        theirs += PAPER[name][4] * right / 200
        images += right
    return ours, theirs, images


def cost_table(found: Both) -> str:
    """CPU hours beside the paper's."""
    rows = []
    for name in dict.fromkeys(name for name, _, _ in found.each()):
        parts = [dist for other, _, dist in found.each() if other == name]
        spent = sum(float(np.nansum(dist.cpu_seconds)) for dist in parts) / 3600
        rows.append((name, sum(len(dist) for dist in parts), f"{spent:.3f}", f"{PAPER[name][4]:.0f}"))
    return markdown(("network", "images done", "radii, CPU hours", "paper, 200 images, CPU hours"), rows)


@dataclass(frozen=True)
class Shape:
    """What both tests say of one distribution."""

    name: str
    split: str
    n: int
    plain: str
    plain_p: float | None
    sound: str
    sound_p: float | None
    best: str


def shape(name: str, split: str, dist: Distribution) -> Shape:
    """Log-normality of one distribution."""
    plain, fits = lognormal_ks(dist.lower[dist.correct]), goodness(dist.ends("correct"))
    mine = next((one for one in fits.fits if one.family == "lognormal"), None)
    best = fits.fits[0].family if fits.fits else fits.reason
    sound = (mine.verdict(), mine.p_value) if mine else ("–", None)
    return Shape(name, split, int(dist.correct.sum()), plain.verdict(), plain.p_value, *sound, best)


def shapes(found: Both) -> list[Shape]:
    """Log-normality of every distribution."""
    return [shape(*one) for one in found.each()]


def shape_table(rows: list[Shape]) -> str:
    """Both tests side by side."""
    cells = [(r.name, r.split, r.n, _p(r.plain_p), r.plain, _p(r.sound_p), r.sound, r.best) for r in rows]
    heads = ("network", "images", "right", "p, as in the paper", "verdict", "p, sound test", "verdict", "best by AIC")
    return markdown(heads, cells)


@dataclass(frozen=True)
class Split:
    """Training against test images of one network."""

    name: str
    n: tuple[int, int]
    plain: str
    plain_p: float | None
    welch: PaperTest
    sound: str
    sound_p: float


def splits(found: Both) -> list[Split]:
    """Training against test images, as in the paper and with gaps counted."""
    rows, test = [], found.of("test")
    for name, dist in found.of("train").items():
        if name in test:
            a, b = known(dist)[0], known(test[name])[0]
            ks, sound = ks_two_sample(a, b), two_sample(dist.ends("correct"), test[name].ends("correct"), 2000)
            rows.append(
                Split(name, (len(a), len(b)), ks.verdict(), ks.p_value, welch(a, b), sound.decision(), sound.p_high)
            )
    return rows


def split_table(rows: list[Split]) -> str:
    """The tests of training against test images."""
    cells = [
        (
            r.name,
            f"{r.n[0]}, {r.n[1]}",
            _p(r.plain_p),
            r.plain,
            _p(r.welch.p_value),
            r.welch.verdict(),
            _p(r.sound_p),
            r.sound,
        )
        for r in rows
    ]
    heads = (
        "network",
        "right",
        "KS p, as in the paper",
        "verdict",
        "Welch p",
        "verdict",
        "largest KS p that the gaps allow",
        "sound decision",
    )
    return markdown(heads, cells)


@dataclass(frozen=True)
class InNorm:
    """One network in one norm."""

    name: str
    norm: str
    n: int
    mean: tuple[float, float]
    closed: float
    rank: float
    sound: str
    best: str


def norms(found: Both, linf: Both) -> list[InNorm]:
    """Shapes in other norms, and whether images keep their rank."""
    rows = []
    for full, dist in found.of("train").items():
        name, norm = full.rsplit(" ", 1)
        if not dist.correct.any():
            continue
        lower, upper = known(dist)
        told = shape(full, "train", dist)
        other = linf.of("train").get(name)
        pair = correlations({"a": dist, "b": other})[0] if other is not None else None
        rank = pair.value if pair is not None and pair.value is not None else float("nan")
        closed = float(np.mean((upper - lower) / upper <= 0.05 + 1e-6))
        rows.append(InNorm(name, norm, len(lower), (lower.mean(), upper.mean()), closed, rank, told.sound, told.best))
    return rows


def norm_table(rows: list[InNorm]) -> str:
    """Other norms."""
    cells = [
        (r.name, r.norm, r.n, span(*r.mean), f"{100 * r.closed:.0f} %", f"{r.rank:+.2f}", r.sound, r.best) for r in rows
    ]
    heads = (
        "network",
        "norm",
        "right",
        "mean radius",
        "within 5 %",
        "Spearman with L∞",
        "log-normal (sound test)",
        "best by AIC",
    )
    return markdown(heads, cells)


@dataclass(frozen=True)
class Sizes:
    """The first images of a network against others."""

    name: str
    small: Distribution
    large: Distribution
    plain: PaperTest


def sizes(found: Both, more: Both) -> list[Sizes]:
    """Table 6: 100 images and 400 others."""
    first, rows = found.of("train"), []
    for name, large in more.of("train").items():
        if name in first and large.correct.any():
            plain = ks_two_sample(known(first[name])[0], known(large)[0])
            rows.append(Sizes(name, first[name], large, plain))
    return rows


def size_table(rows: list[Sizes]) -> str:
    """Means, and the test of the paper, beside its Table 6."""
    cells = []
    for row in rows:
        theirs = TABLE_6[row.name]
        means = [span(*(float(end.mean()) for end in known(dist)), 4) for dist in (row.small, row.large)]
        cells.append(
            (
                row.name,
                f"{len(row.small)}, {len(row.large)}",
                *means,
                _p(row.plain.p_value),
                f"{theirs[0]:.3f}",
                f"{theirs[1]:.3f}",
                theirs[2],
            )
        )
    heads = (
        "network",
        "images",
        "mean of the first",
        "mean of the others",
        "KS p",
        "paper, first",
        "paper, others",
        "paper, KS p",
    )
    return markdown(heads, cells)


def queries(folder: Path) -> dict[int, Any]:
    """Per k: images, least, mean and largest number of queries, CPU s per image, time-outs, memory errors, "
    "cancelled."""
    rows = {k: [r for r in read_csv(folder / f"kbinary-{k}.csv") if r["status"] != "misclassified"] for k in TABLE_1}
    found: dict[int, Any] = {}
    for k, part in rows.items():
        if not part:
            continue
        asked = np.array([int(row["queries"]) for row in part])
        spent = float(np.mean([float(row["cpu_seconds"]) for row in part]))
        counts = [sum(int(row[key] or 0) for row in part) for key in ("timeouts", "memory_errors", "cancelled")]
        found[k] = (
            len(part),
            int(asked.min()),
            float(asked.mean()),
            int(asked.max()),
            spent,
            *counts,
        )
    return found


def query_table(found: dict[int, Any]) -> str:
    """Queries of every k beside the paper's Table 1."""
    rows = []
    for k, (images, least, mean, most, spent, *counts) in found.items():
        paper = TABLE_1[k]
        rows.append(
            (k, images, f"{least}, {mean:.2f}, {most}", f"{paper[0]}, {paper[1]}, {paper[2]}", f"{spent:.2f}", *counts)
        )
    heads = (
        "k",
        "images",
        "queries: least, mean, most",
        "paper",
        "CPU s per image",
        "time-outs",
        "memory errors",
        "cancelled",
    )
    return markdown(heads, rows)


def simulated_table(rows: list[dict[str, str]]) -> str:
    """The simulated Table 1."""
    keys = (
        "search",
        "queries_least",
        "queries_mean",
        "queries_most",
        "cpu_seconds",
        "wall_seconds",
        "timeouts",
        "cancelled_share",
    )
    cells = [[row["search"]] + [f"{float(row[key]):.4g}" for key in keys[1:]] for row in rows]
    return markdown(("search", "least", "mean", "most", "CPU s", "wall s", "time-outs", "cancelled"), cells)


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
