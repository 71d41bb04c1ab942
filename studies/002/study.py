"""Global Adversarial Robustness Guarantees for Neural Networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import Page, markdown, read_csv, span
from steps import Command, Study

from radii.report import trade_off
from radii.report.content import gather
from radii.report.style import PALETTE, new_figure, tidy
from radii.stats import Distribution
from radii.stats.correlation import rank_correlation
from radii.stats.sample_sizes import sample_size

HERE = Path(__file__).resolve().parent
DELTA = 0.02  # the ball of Figure 1
TOLERANCES = (0.3, 0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03)
ESTIMATES = 50  # per tolerance, as in the paper
KINDS = {
    "mnist5k-grid": ("plain networks", ("architecture.name", "optimiser.learning_rate", "epochs")),
    "mnist5k-imp": ("pruned networks", ("architecture.name", "prune.share", "prune.iterations")),
    "mnist5k-bayes": ("Bayesian networks (HMC)", ("architecture.name", "bayes.steps", "bayes.draws", "bayes.networks")),
}
MEASURES = ("accuracy", "proven", "not_broken", "robust_low", "robust_high", "witnessed", "bound", "change_low",
            "change_high", "inputs", "cpu_seconds")  # fmt: skip


def grid(name: str, hours: float, small: bool = False) -> Command:
    """A grid of 24 networks by a recipe that comes with radii, trained and measured."""
    words = ("-m", "radii", "train", name, "--measure", "0.03", "--inputs", "40", "--seconds", "0.5", "--output")
    less = ("-m", "radii", "train", "studies/002/small.yaml", "--measure", "0.03", "--inputs", "8", "--seconds", "0.3")
    return Command(
        name,
        (*words, "{work}/" + name, "--workers", "{workers}"),
        hours,
        units=24,
        small=(*less, "--output", "{work}/" + name, "--runner", "serial") if small else None,
        small_units=4,
        columns=(*KINDS[name][1], *MEASURES),
        budget="ε 0.03, γ 0.5, 40 inputs, 0.5 CPU s each, seed 0",
        table=f"{name}/networks.csv",
        spent="cpu_seconds",
    )


STEPS = (
    Study(HERE / "pool-test.yaml", 5000, 1.0, {"data": {"indices": "0:30"}, "seconds": 0.5, "units": 30}),
    grid("mnist5k-grid", 0.1, small=True),
    grid("mnist5k-imp", 0.1),
    grid("mnist5k-bayes", 0.5),
)


def page(results: Path, pictures: Path) -> Page:
    """Figures 1 to 4 of the paper."""
    made = Page(
        "Global robustness guarantees, measured again",
        "The paper estimates R(g), the probability that an unseen input is robust, and D(ḡ), the mean of the "
        "largest change of the output, from samples, "
        "with Chernoff's and Hoeffding's bounds; then it looks at accuracy against robustness over some 3,800 "
        "networks, mostly by FGSM. Here g comes from "
        "proofs and witnesses: a proven end and an attacked end stand where the paper has one figure. R(g) counts "
        "inputs on which no softmax "
        "probability moves by γ = 0.5 or more; grids of networks are far smaller than the paper's. `make study-002` "
        "makes this page, in about two hours "
        "on two cores from nothing; `SMALL=1 make study-002` runs a small part.",
        pictures,
        "002",
    )
    convergence(made, results)
    for name, (title, keys) in KINDS.items():
        cloud(made, results, name, title, keys)
    return made


def convergence(made: Page, results: Path) -> None:
    """Figure 1: 50 estimates per tolerance."""
    made.claim(
        "738 samples give R(g) within .05 with 95 % confidence",
        f"exact binomial limits need {sample_size(0.05, method='clopper-pearson').n} whatever the share, "
        f"{sample_size(0.05, method='clopper-pearson', share=0.98).n} if it is near .98",
        "refined",
        sample_size(0.05).n == 738 and sample_size(0.05, method="clopper-pearson").n <= 738,
    )
    files = list(results.glob("pool-*.csv"))
    if not files:
        return
    dist: Distribution = gather(files).series[0].dist
    ends = dist.ends("all")
    proven, alive = ends.low >= DELTA, ends.high > DELTA
    rng, rows, outside, total = np.random.default_rng(0), [], 0, 0
    figure, axes = new_figure(7.0, 4.2)
    for tolerance in TOLERANCES:
        need = sample_size(tolerance).n
        if need > len(dist):
            continue
        drawn = [rng.choice(len(dist), need, replace=False) for _ in range(ESTIMATES)]
        low, high = (np.array([flags[rows_].mean() for rows_ in drawn]) for flags in (proven, alive))
        away = (low > alive.mean() + tolerance) | (high < proven.mean() - tolerance)
        outside, total = outside + int(away.sum()), total + ESTIMATES
        rows.append((tolerance, need, span(low.min(), high.max()), f"{low.std():.4f}", int(away.sum())))
        axes.vlines(np.full(ESTIMATES, tolerance), low, high, color=PALETTE[0], alpha=0.3, linewidth=1)
        axes.plot(np.full(ESTIMATES, tolerance), low, "o", color=PALETTE[0], markersize=3, alpha=0.5)
    if not rows:
        return
    axes.axhspan(proven.mean(), alive.mean(), color=PALETTE[1], alpha=0.4)
    axes.set_xlim(max(TOLERANCES) * 1.05, 0)
    tidy(axes, "tolerance ε of the guarantee", f"estimate of R(g), δ = {DELTA:g}")
    other = axes.twinx()
    other.plot([row[0] for row in rows], [row[1] for row in rows], color=PALETTE[3], linewidth=1.4)
    other.set_yscale("log")
    other.set_ylabel("samples needed")
    made.claim(
        "estimates with tolerance ε lie within ε of R(g), and their spread shrinks with ε (Figure 1)",
        f"{total - outside} of {total} estimates do (R(g) of all {len(dist):,} images: "
        f"{span(proven.mean(), alive.mean())}); "
        f"g is undecided on {100 * (alive.mean() - proven.mean()):.2f} % of the images",
        "agrees" if outside <= 0.05 * total else "differs",
        outside <= 0.05 * total,
    )
    made.section(
        "Convergence of the guarantee (Figure 1)",
        f"mnist5k-conv on MNIST test images, δ = {DELTA:g}: g is decided by proof or witness, a misclassified image "
        f"counts as not robust. For every tolerance the paper's number of samples, "
        f"{ESTIMATES} samples of that size (without replacement, seed 0).",
        markdown(
            (
                "tolerance",
                "samples",
                "estimates, proven to not broken",
                "standard deviation",
                "further away than the tolerance",
            ),
            rows,
        ),
        made.picture(
            "figure-1",
            figure,
            "Figure 1: estimates of R(g) against the tolerance; band: all images; line: samples needed",
        ),
    )


def cloud(made: Page, results: Path, name: str, title: str, keys: tuple[str, ...]) -> None:
    """Accuracy against R(g) and D(ḡ) over a grid of networks (Figures 2 to 4)."""
    rows: list[dict[str, Any]] = [dict(row) for row in read_csv(results / f"{name}.csv")]
    for row in rows:
        row |= {key: float(row[key]) for key in MEASURES}
    if len(rows) < 4:
        return
    keys = tuple(key for key in keys if rows[0].get(key) not in (None, ""))
    told = {}
    accuracy = np.array([row["accuracy"] for row in rows])
    for measure, label in (("robust", "R(g)"), ("change", "D(ḡ)")):
        found = rank_correlation(accuracy, trade_off.middles(rows, measure))
        told[label] = (
            found,
            "no correlation to tell" if found is None else f"{found[0]:+.2f} [{found[1]:+.2f}, {found[2]:+.2f}]",
        )
    paper, sign = {
        "mnist5k-grid": ("accuracy and robustness are negatively correlated for networks trained by SGD", -1),
        "mnist5k-imp": (
            "pruned networks show the same trade-off; the share that is pruned has no effect on robustness",
            -1,
        ),
        "mnist5k-bayes": ("accuracy and robustness are positively correlated for Bayesian networks", 1),
    }[name]
    first = told["R(g)"][0]
    if first is None:  # every network keeps every input: how far probabilities move still tells them apart
        first, sign = told["D(ḡ)"][0], -sign
    if len(rows) >= 8 and first is not None:
        sure = first[1] > 0 or first[2] < 0
        verdict = "refined" if not sure else "agrees" if np.sign(first[0]) == sign else "differs"
        extra = ""
        if name == "mnist5k-imp":
            pruned = rank_correlation(
                np.array([float(row["prune.share"]) for row in rows]), trade_off.middles(rows, "robust")
            )
            extra = (
                ""
                if pruned is None
                else f"; share pruned with R(g) {pruned[0]:+.2f} [{pruned[1]:+.2f}, {pruned[2]:+.2f}]"
            )
        made.claim(
            paper,
            f"Spearman of accuracy with R(g) {told['R(g)'][1]}, with D(ḡ) {told['D(ḡ)'][1]} ({len(rows)} "
            f"networks){extra}",
            verdict,
        )
    inside = all(row["robust_low"] <= row["proven"] <= row["not_broken"] <= row["robust_high"] for row in rows)
    made.claim(
        f"{title}: figures come with guarantees",
        f"every network's shares lie inside the limits for unseen inputs: {inside}",
        "agrees",
        inside,
    )
    cells = []
    for row in rows:
        robust = f"{span(row['proven'], row['not_broken'])} [{row['robust_low']:.3f}, {row['robust_high']:.3f}]"
        change = f"{span(row['witnessed'], row['bound'])} [{row['change_low']:.3f}, {row['change_high']:.3f}]"
        cells.append((*(row[key] for key in keys), f"{row['accuracy']:.4f}", robust, change))
    figure = trade_off.trade_off(rows, keys)
    made.section(
        f"Accuracy against robustness: {title}",
        f"{int(rows[0]['inputs'])} test inputs drawn at random, ε = 0.03. Proven to attacked, in brackets 95 % "
        f"limits for unseen inputs (Clopper–Pearson for R(g), Hoeffding for D(ḡ)).",
        markdown((*keys, "accuracy", "R(g)", "D(ḡ)"), cells),
        made.picture(
            f"cloud-{name}",
            figure,
            f"Accuracy against R(g) and D(ḡ), {title}; bars: guarantees; below: R(g) by hyper-parameter",
        ),
    )
