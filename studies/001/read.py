"""The radii of this study by network and split, and the figures that the paper prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, read_csv

from radii import Distribution
from radii.report.content import gather

BOTH = ("train", "test")
PARTS = ("shallow", "convolutional", "deep")
# Tables 5, 7 and 8: lowest and mean radius of training and of test images; CPU hours of k = 2 (Table 11 beyond 7).
PAPER: dict[str, tuple[float, float, float, float, float]] = {
    "mnist-net": (0.013, 0.042, 0.005, 0.038, 272),
    "mnist-net_256x2": (0.011, 0.037, 0.007, 0.034, 86),
    "mnist-net_256x4": (0.001, 0.072, 0.011, 0.067, 1022),
    "mnist_relu_3_50": (0.007, 0.058, 0.005, 0.052, 418),
    "mnist_relu_6_200": (0.001, 0.067, 0.005, 0.067, 868),
    "mnist_relu_9_100": (0.005, 0.064, 0.009, 0.057, 851),
    "mnist_nn": (0.001, 0.030, 0.001, 0.027, 171),
    "mnist_nn_fgsm_02": (0.001, 0.188, 0.007, 0.174, 972),
    "convSmallRELU__Point": (0.005, 0.144, 0.005, 0.138, 537),
    "convSmallRELU__DiffAI": (0.079, 0.155, 0.025, 0.149, 160),
}
ADVERSARIAL = ("mnist_nn_fgsm_02", "convSmallRELU__Point", "convSmallRELU__DiffAI")  # not of the paper's section 4
MOST = 1e-6  # of rounding between our ends and the published grid


@dataclass(frozen=True)
class Both:
    """Radii by split and network; several questions of one network have names of their own."""

    by_split: dict[str, dict[str, Distribution]]

    def of(self, split: str) -> dict[str, Distribution]:
        """The networks of a split, the one with the largest least radius first, as in the paper's Figure 2."""
        found = self.by_split.get(split, {})
        return dict(sorted(found.items(), key=lambda item: -float(np.min(known(item[1])[0], initial=np.inf))))

    def plain(self, split: str) -> dict[str, Distribution]:
        """The conventionally trained, fully connected networks of a split."""
        return {name: dist for name, dist in self.of(split).items() if name not in ADVERSARIAL}

    def each(self) -> Iterator[tuple[str, str, Distribution]]:
        """Network, split and radii."""
        for name in dict.fromkeys([*self.of("train"), *self.of("test")]):
            for split in BOTH:
                if name in self.by_split.get(split, {}):
                    yield name, split, self.by_split[split][name]


def read(folder: Path, *parts: str) -> Both:
    """The radii of some study files (those of the main study unless given)."""
    found: dict[str, dict[str, Distribution]] = {}
    for part in parts or PARTS:
        for file in sorted(folder.glob(f"{part}-*.csv")):
            for one in gather([file]).series:
                asked = one.question
                name = asked["classifier"] if asked["norm"] == "linf" else f"{asked['classifier']} {asked['norm']}"
                found.setdefault(asked["split"], {})[name] = one.dist
    return Both(found)


def known(dist: Distribution) -> tuple[Any, Any]:
    """Both ends of correctly classified images; an absent lower end is 0."""
    return np.nan_to_num(dist.lower[dist.correct]), dist.upper[dist.correct]


@dataclass(frozen=True)
class Shared:
    """A network's training images that the paper's tables have too."""

    name: str
    shared: int
    apart: int
    seconds: float
    published_seconds: float


def published(found: Both) -> list[Shared]:
    """Published rows that nothing speaks against, beside ours; `apart` counts intervals that do not overlap."""
    rows: dict[str, dict[int, dict[str, str]]] = {}
    for row in read_csv(DATA / "jair" / "results.csv"):
        if row["status"] == "ok" and row["dataset"] == "MNIST":
            rows.setdefault(row["network"], {})[int(row["dataset_index"])] = row
    result = []
    for name, dist in found.of("train").items():
        index = [int(one.rsplit("/", 1)[1]) for one in np.asarray(dist.ids)[dist.correct]]
        ends = zip(index, *known(dist), np.asarray(dist.cpu_seconds)[dist.correct])
        both = [(rows[name][i], low, high, cpu) for i, low, high, cpu in ends if i in rows.get(name, {})]
        apart = sum(low > float(row["upper"]) + MOST or high < float(row["lower"]) - MOST for row, low, high, _ in both)
        spent, theirs = sum(cpu for *_, cpu in both), sum(float(row["seconds"]) for row, *_ in both)
        result.append(Shared(name, len(both), apart, spent, theirs))
    return [one for one in result if one.shared]
