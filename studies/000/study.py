"""Bosman, Münz, Hoos, van Rijn: Examining Per-Class Performance Bias via Robustness Distributions."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from common import Page, markdown, span
from steps import Command, Study

from radii import Distribution
from radii.report import figures
from radii.report.content import Series, gather
from radii.stats.classes import KsMatrix, ks_matrix, nearest_targets, robust_recall
from radii.stats.fairness import disparity, gini, worst_class
from radii.stats.risk import cost_risk

HERE = Path(__file__).resolve().parent
EPSILONS = (0.012, 0.04)  # the paper's two
TRAINED = ("mnist5k-ibp", "mnist5k-balanced")
DIGITS = {"per_class": 1}
STEPS = (
    Study(HERE / "any-train.yaml", 2000, 0.3, {"data": DIGITS, "seconds": 0.4, "units": 20}),
    Study(HERE / "any-test.yaml", 2000, 0.3, {"data": DIGITS, "seconds": 0.4, "units": 20}),
    Study(HERE / "any-deep-train.yaml", 1000, 0.3),
    Study(HERE / "any-deep-test.yaml", 1000, 0.3),
    Study(HERE / "one-train.yaml", 2700, 1.3),
    Study(
        HERE / "one-test.yaml", 2700, 1.3, {"classifiers": 2, "data": {"indices": [7, 9]}, "seconds": 0.4, "units": 36}
    ),
    *(
        Command(
            f"train-{name}", ("-m", "radii", "train", name, "--output", "{work}/networks/" + name, "--resume"), 0.01
        )
        for name in TRAINED
    ),
    Study(HERE / "balanced-test.yaml", 2000, 0.3),
    Command(
        "train-gtsrb",
        (
            "-m",
            "radii",
            "train",
            "gtsrb_6_256-standard",
            "--root",
            "{data}/gtsrb",
            "--resume",
            "--output",
            "{work}/networks/gtsrb_6_256-standard",
        ),
        0.1,
    ),
    Study(HERE / "gtsrb-test.yaml", 430, 0.3),
)
Splits = dict[str, dict[str, Series]]


def page(results: Path, pictures: Path) -> Page:
    """Figures 1 to 12 and Table 1 of the paper, fairness measures, risk, and balanced training."""
    made = Page(
        "Per-class bias in robustness, measured again",
        "The paper splits radii by the class of the image (one-to-any) and by the class that an image is pushed "
        "into (one-to-one), for three "
        "MNIST networks and 100 images per class and split. Here mnist-net and mnist-net_256x4 are measured again "
        "and, since mnist_relu_4_1024 is not "
        "published as a file, mnist5k-adversarial, which comes with radii; the images are the first 100 of each "
        "class. Budgets: 20 CPU seconds per image "
        "one-to-any, 2 for the deep mnist-net_256x4, 5 per image and target one-to-one. `make study-000` makes this "
        "page, in about five hours on two cores "
        "from nothing; `SMALL=1 make study-000` runs a small part.",
        pictures,
        "000",
    )
    whole = read(results, "any-*.csv")
    aggregate(made, whole)
    classes(made, whole)
    networks(made, whole)
    targets(made, read(results, "one-*.csv"))
    fairness(made, whole)
    balanced(made, read(results, "balanced-*.csv"))
    signs(made, read(results, "gtsrb-*.csv"))
    return made


def read(folder: Path, pattern: str) -> Splits:
    """Radii by split and network."""
    found: Splits = {}
    for file in sorted(folder.glob(pattern)):
        for one in gather([file]).series:
            found.setdefault(one.question["split"], {})[one.question["classifier"]] = one
    return found


def both(found: Splits) -> list[tuple[str, Distribution, Distribution]]:
    """The networks with radii of both splits: name, train, test."""
    train, test = found.get("train", {}), found.get("test", {})
    return [(name, train[name].dist, test[name].dist) for name in train if name in test]


def lower(dist: Distribution) -> Any:
    """Proven ends of correctly classified images."""
    return np.nan_to_num(dist.lower[dist.correct])


def aggregate(made: Page, found: Splits) -> None:
    """Section 4.1: all classes together."""
    pairs = both(found)
    if not pairs:
        return
    rows = []
    for name, train, test in pairs:
        for split, dist in (("train", train), ("test", test)):
            shares = [span(*(100 * v for v in dist.robust_accuracy(eps)), 1) for eps in EPSILONS]
            gaps = np.mean(np.asarray(dist.status)[dist.correct] == "open")
            mean = span(lower(dist).mean(), dist.upper[dist.correct].mean(), 4)
            rows.append((name, split, f"{dist.correct.sum()} of {len(dist)}", mean, *shares, f"{100 * gaps:.0f} %"))
    heads = ("network", "images", "right", "mean radius", *(f"robust accuracy at {e:g}, %" for e in EPSILONS), "open")
    sides = {name: a for name, a, _ in pairs}, {name: b for name, _, b in pairs}
    drawn = made.picture("figure-1", figures.split_boxes(*sides), "Figure 1: proven radii of all classes together")
    made.section("All classes together (Figure 1, section 4.1)", markdown(heads, rows), drawn)
    if "mnist-net" in sides[1] and len(sides[1]["mnist-net"]) >= 500:
        ends = [[d["mnist-net"].robust_accuracy(eps) for eps in EPSILONS] for d in sides]
        told = "; ".join(
            f"{split} {span(100 * a[0], 100 * a[1], 1)} and {span(100 * b[0], 100 * b[1], 1)}"
            for split, (a, b) in zip(("train", "test"), ends)
        )
        near = any(abs(100 * np.mean(a) - 94.8) < 5 and abs(100 * np.mean(b) - 40.4) < 10 for a, b in ends)
        made.claim(
            "mnist-net: robust accuracy 94.8 % at .012 and 40.4 % at .04", told + " %", "agrees" if near else "differs"
        )


def significant(matrix: KsMatrix) -> tuple[int, int, int, int]:
    """Cells that differ: of training images, of test images, on the diagonal; and the cells of one triangle."""
    marks = np.array(matrix.significant())
    size = len(marks)
    return int(np.tril(marks, -1).sum()), int(np.triu(marks, 1).sum()), int(np.trace(marks)), size * (size - 1) // 2


def classes(made: Page, found: Splits) -> None:
    """Section 4.2: one box per class; KS matrices in the paper's layout."""
    rows, shown, diagonal = [], [], []
    for name, train, test in both(found):
        parts = [{str(k): v for k, v in dist.by_class().items()} for dist in (train, test)]
        if set(parts[0]) != set(parts[1]):
            continue
        plain, sound = (ks_matrix(*parts, method=kind, permutations=4999) for kind in ("paper", "permutation"))
        (a, b, same, cells), (c, d, _, _) = significant(plain), significant(sound)
        rows.append((name, f"{a} and {b} of {cells}", f"{c} and {d} of {cells}", f"{same} of {len(parts[0])}"))
        diagonal.append((name, same, min(len(part) for part in parts[1].values())))
        shown.append(
            made.picture(
                f"figure-2-{name}",
                figures.class_boxes(train, test=test),
                f"Figure 2: {name}, radii by class, training and test images",
            )
        )
        shown.append(
            made.picture(
                f"figure-9-{name}",
                figures.ks_heat_map(plain),
                f"Figure 9: {name}, KS statistics of classes: training below, test above the diagonal, training "
                f"against test on it",
            )
        )
    if not rows:
        return
    heads = (
        "network",
        "pairs that differ, as in the paper (train and test)",
        "with gaps counted and Holm's correction",
        "train against test differs",
    )
    made.section("Per class, one-to-any (Figures 2 and 9, section 4.2)", markdown(heads, rows), *shown)
    if min(size for *_, size in diagonal) >= 50:
        made.claim(
            "radii of different classes differ significantly in most cases",
            "; ".join(f"{r[0]}: {r[1]}, corrected {r[2]}" for r in rows),
            "agrees" if all(int(r[1].split(" ")[0]) > 22 for r in rows) else "refined",
        )
        paper = {"mnist-net": 1, "mnist-net_256x4": 4}
        told = [(name, same) for name, same, _ in diagonal if name in paper]
        made.claim(
            "training and test images differ for 1 class of mnist-net and 4 of mnist-net_256x4",
            ", ".join(f"{name} {same}" for name, same in told),
            "agrees" if all(abs(same - paper[name]) <= 2 for name, same in told) else "differs",
        )


def networks(made: Page, found: Splits) -> None:
    """Is the same class as robust on another network? (Figures 3, 4 and 10)"""
    pairs = both(found)
    if len(pairs) < 2:
        return
    rows, shown = [], []
    for label in sorted(set(pairs[0][2].by_class())):
        parts = [
            {name: side[k].by_class()[label] for name, *side in pairs if label in side[k].by_class()} for k in (0, 1)
        ]
        if set(parts[0]) != set(parts[1]) or len(parts[0]) < 2:
            continue
        a, b, _, cells = significant(ks_matrix(*parts, method="paper"))
        order = sorted(
            parts[1], key=lambda name: -float(np.median(lower(parts[1][name])) if parts[1][name].correct.any() else 0)
        )
        rows.append((label, f"{a} and {b} of {cells}", ", ".join(order)))
        if label in (2, 6):
            shown.append(
                made.picture(
                    f"figure-3-{label}",
                    figures.ecdf(list(parts[1].values())),
                    f"Figure 3: class {label} on each network, test images",
                )
            )
            first, second = list(parts[1].values())[:2]
            shown.append(
                made.picture(
                    f"figure-4-{label}",
                    figures.paired_scatter(first, second),
                    f"Figure 4: class {label}, image by image on two networks",
                )
            )
    orders = {row[2] for row in rows}
    if rows and min(len(p[2]) for p in pairs) >= 500:
        made.claim(
            "a network may be more robust for one class and less for another",
            f"by the median of test images the networks come in {len(orders)} different orders over {len(rows)} "
            f"classes",
            "agrees" if len(orders) > 1 else "differs",
        )
    made.section(
        "The same class on different networks (Figures 3, 4 and 10)",
        markdown(
            ("class", "pairs of networks that differ (train and test)", "networks by median radius of test images"),
            rows,
        ),
        *shown,
    )


def targets(made: Page, found: Splits) -> None:
    """Section 4.3: nines pushed into every other class; the clusters of Figure 7b."""
    rows, shown, empty = [], [], []
    for split in ("train", "test"):
        for name, one in found.get(split, {}).items():
            dist = one.pairs
            if dist is None:
                continue
            parts = dist.by_target()
            plain = [ks_plain(a, b) for a, b in combinations(parts.values(), 2)]
            closed = np.mean(np.asarray(dist.status)[dist.correct] == "closed")
            near = nearest_targets(dist)
            best = int(np.argmax(near.sure[0]))
            rows.append(
                (
                    name,
                    split,
                    f"{sum(plain)} of {len(plain)}",
                    f"{100 * closed:.0f} %",
                    f"{near.targets[best]} ({near.sure[0][best]} of {near.inputs[0]})",
                )
            )
            if split == "test":
                shown.append(
                    made.picture(
                        f"figure-5-{name}",
                        figures.target_boxes(dist),
                        f"Figure 5: {name}, nines pushed into each class, test images",
                    )
                )
                if 6 in parts:
                    empty += [(name, *stretch) for stretch in stretches(parts[6])]
    if not rows:
        return
    heads = (
        "network",
        "images",
        "pairs of targets that differ, as in the paper",
        "closed",
        "nearest target (surely, of images)",
    )
    made.section("Nines pushed into each class, one-to-one (Figures 5, 11, section 4.3)", markdown(heads, rows), *shown)
    sized = [row for row in rows if int(row[2].split(" of ")[1]) == 36 and found[row[1]][row[0]].pairs is not None]
    if sized and min(len(found[row[1]][row[0]].pairs or ()) for row in sized) >= 450:
        made.claim(
            "radii towards different target classes differ significantly in many cases",
            "; ".join(f"{r[0]} ({r[1]}): {r[2]} pairs" for r in sized),
            "agrees" if all(int(r[2].split(" ")[0]) > 18 for r in sized) else "refined",
        )
        mine = [row for row in empty if row[0] == "mnist-net"]
        if mine:
            told = "; ".join(
                f"no radius between {a:.3f} and {b:.3f}, {n} below and {m} above" for _, a, b, n, m in mine
            )
            made.claim(
                "9 towards 6 on mnist-net falls into three clusters (Figure 7b)",
                f"the widest stretches that surely hold no radius: {told}",
                "new",
            )
    tests = found.get("test", {})
    pairs = [one.pairs.by_target()[6] for one in tests.values() if one.pairs is not None and 6 in one.pairs.by_target()]
    drawn = (
        made.picture(
            "figure-6-6", figures.ecdf(pairs), "Figure 6b: nines pushed into class 6, test images; shaded: the gap"
        )
        if pairs
        else ""
    )
    table = markdown(
        ("network", "from", "to", "radii below", "radii above"),
        [(n, f"{a:.3f}", f"{b:.3f}", *m) for n, a, b, *m in empty],
    )
    made.section(
        "The clusters of Figure 7b",
        "Stretches of ε in which surely no radius of 9 towards 6 lies (test images, the two widest per network): "
        "clusters would be such stretches.",
        table if empty else "",
        drawn,
    )


def ks_plain(a: Distribution, b: Distribution) -> bool:
    """Whether the paper's test tells two distributions apart."""
    from radii.stats.jair_tests import ks_two_sample

    return ks_two_sample(lower(a), lower(b)).verdict() == "rejected"


def stretches(dist: Distribution, count: int = 2) -> list[tuple[float, float, int, int]]:
    """The widest stretches of ε that no interval reaches into, with the number of radii below and above."""
    low, high = lower(dist), dist.upper[dist.correct]
    order = np.argsort(low)
    low, high = low[order], np.fmax.accumulate(np.nan_to_num(high[order], nan=np.inf))
    holes = [
        (float(high[i]), float(low[i + 1]), i + 1, len(low) - i - 1)
        for i in range(len(low) - 1)
        if low[i + 1] > high[i]
    ]
    return sorted(sorted(holes, key=lambda hole: hole[0] - hole[1])[:count])


def fairness(made: Page, found: Splits) -> None:
    """Robust recall, fairness measures, and the risk with costs."""
    rows, recalls, equal = [], [], []
    costs = np.abs(np.arange(10)[:, None] - np.arange(10)[None])
    for name, one in found.get("test", {}).items():
        dist, eps = one.dist, EPSILONS[1]
        clean, robust, even = disparity(dist, 0.0), disparity(dist, eps), gini(dist, of="area", limit=0.2)
        worst, risk = worst_class(dist, eps), cost_risk(dist, costs, eps)
        cells = [f"{span(m.lower, m.upper, 2)} [{m.low:.2f}, {m.high:.2f}]" for m in (clean, robust, even)]
        least = f"{span(worst.proven[0], worst.not_broken[0], 2)} (class {', '.join(map(str, worst.candidates[0]))})"
        rows.append((name, *cells, least, f"{span(risk.lower, risk.upper, 2)} [{risk.low:.2f}, {risk.high:.2f}]"))
        recalls.append((name, *(span(r.proven, r.not_broken, 2) for r in robust_recall(dist, eps))))
        equal.append((name, clean, robust, len(dist)))
    if not rows:
        return
    heads = (
        "network",
        "disparity of recall",
        f"disparity at {EPSILONS[1]:g}",
        "Gini of areas",
        "worst class",
        "risk, cost |i − j|",
    )
    labels = sorted(set(next(iter(found["test"].values())).dist.label.tolist()))
    made.section(
        "Fairness and risk (what the paper asks for)",
        f"Test images. Robust recall at ε = {EPSILONS[1]:g} by class:",
        markdown(("network", *map(str, labels)), recalls),
        "Each measure: what the gaps leave open in the sample, and in brackets its 95 % interval for unseen images "
        "([definitions](../fairness.md)). The risk is the mean cost when an "
        "adversary picks the dearest digit within reach and mistaking i for j costs |i − j|; untargeted radii only "
        "bound it.",
        markdown(heads, rows),
    )
    sure = [name for name, clean, robust, _ in equal if robust.lower > clean.upper]
    if min(n for *_, n in equal) >= 500:
        made.claim(
            "even when recall is balanced, robustness is not",
            f"the spread of robust recall at {EPSILONS[1]:g} is surely larger than that of recall for {len(sure)} "
            f"of {len(equal)} networks",
            "agrees" if len(sure) == len(equal) else "refined",
        )
    else:
        made.claim(
            "even when recall is balanced, robustness is not",
            f"{len(sure)} of {len(equal)} networks on this part",
            "refined",
            bool(sure),
        )


def balanced(made: Page, found: Splits) -> None:
    """Class-balanced training, before and after."""
    nets = {name: one.dist for name, one in found.get("test", {}).items()}
    if not set(TRAINED) <= set(nets):
        return
    rows = []
    for name in TRAINED:
        spread, worst = disparity(nets[name], 0.1), worst_class(nets[name], 0.1)
        rows.append(
            (
                name,
                f"{100 * nets[name].correct.mean():.1f} %",
                f"{span(worst.proven[0], worst.not_broken[0])} (class {', '.join(map(str, worst.candidates[0]))})",
                f"{span(spread.lower, spread.upper)} [{spread.low:.2f}, {spread.high:.2f}]",
            )
        )
    spreads = [disparity(nets[name], 0.1) for name in TRAINED]
    less = spreads[1].upper < spreads[0].lower
    made.claim(
        "retraining for balance is planned",
        f"disparity at .1 falls from {span(spreads[0].lower, spreads[0].upper)} to "
        f"{span(spreads[1].lower, spreads[1].upper)} (one pair of networks, intervals for unseen images overlap)"
        if less
        else "no smaller disparity shown",
        "new",
    )
    made.section(
        "Class-balanced training, before and after",
        "mnist5k-ibp and mnist5k-balanced (the same recipe with classes weighted by their robust errors), 1,000 "
        "test digits, ε = 0.1.",
        markdown(("network", "recall", "worst class at .1", "disparity at .1"), rows),
    )


def signs(made: Page, found: Splits) -> None:
    """Traffic signs."""
    for one in found.get("test", {}).values():
        dist = one.dist
        even, spread = gini(dist, of="area"), disparity(dist, 0.004)
        made.claim(
            "traffic signs are planned",
            f"43 classes, {len(dist)} images: Gini of areas {span(even.lower, even.upper, 2)} [{even.low:.2f}, "
            f"{even.high:.2f}], disparity at 1/255 {span(spread.lower, spread.upper, 2)}",
            "new",
        )
        made.section(
            "Traffic signs (what the paper plans)",
            "A network of six layers of 256 by the recipe of Bosman et al. (JAIR), trained on 2,793 images.",
            made.picture("gtsrb", figures.class_boxes(dist), "GTSRB, proven radii by class, test images"),
        )
