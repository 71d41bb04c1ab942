"""docs/bench.md from the figures that bench_engine kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_pictures import curves, growth
from common import PLAIN_SECONDS, markdown


def write_page(figures: Path, page: Path) -> None:
    """Writes the page; parts that were not run are left out."""
    known = json.loads(figures.read_text())
    parts = [_head(known["run"])]
    if known.get("bar") or known.get("bar_test"):
        parts.append(_bar(known.get("bar", {}), known.get("bar_test", {})))
    others = {"vibecheck": _peer, "curves": _curves, "growth": _growth, "envelope": _envelope}
    when = known.get("measured", {})
    parts += [show(known[name]) + _dated(when.get(name)) for name, show in others.items() if known.get(name)]
    for name, draw in (("curves", curves), ("growth", growth)):
        if known.get(name):
            draw(known[name], page.parent / "pictures" / f"bench-{name}.png")
    page.write_text("\n\n".join(parts) + "\n")


def _head(run: dict[str, Any]) -> str:
    it = run["machine"]
    held = f" Peak memory of a process {run['peak_memory'] / 2**30:.1f} GiB." if "peak_memory" in run else ""
    return (
        "# Benchmark of the engine\n\n"
        "Written by `make bench` (`benchmarks/bench_engine.py`; `BENCH=quick` for a tenth of the images). CPU seconds"
        f" on one thread per image, {run['same']['workers']} images at a time, of {it['processor']},"
        f" {it['cores']} cores, {it['system']}, Python {it['python']},"
        f" torch {it['torch']}, {it['date']}.{held} Kernels are compiled"
        f" before the clock starts. {_whole(run)} Every figure, image by image, is in [bench.json](bench.json)."
    )


def _whole(run: dict[str, Any]) -> str:
    """Whether one run gave all figures, with which code, in how many sittings and how quiet the machine was."""
    if run.get("parts"):
        return f"The last run, {_sitting(run['sittings'][-1])}, was of some parts only: {', '.join(run['parts'])}."
    rest = "" if run.get("whole") else " It has not ended yet."
    if len(run["sittings"]) == 1:
        return f"All parts come from one run, {_sitting(run['sittings'][0])}.{rest}"
    return (
        f"All parts come from one run of the same sources ({run['same']['code']}) that was stopped and went on:"
        f" {'; '.join(_sitting(s) for s in run['sittings'])}.{rest}"
    )


def _sitting(it: dict[str, Any]) -> str:
    """When, of which commit, and how much of the cores was not for it."""
    code = f", commit {it['commit']}" if it.get("commit") else ""
    others = f", other programs on {it['elsewhere']:.1%} of the cores" if "elsewhere" in it else ""
    return f"{it['date']}{code}{others}"


def _dated(it: dict[str, Any] | None) -> str:
    """When a part was measured, and of which code."""
    return f"\n\n*Measured {_sitting(it)}.*" if it else ""


def _bar(rows: dict[str, Any], test: dict[str, Any]) -> str:
    header = ["network", "images", "closed", "gap: mean", "median", "CPU s (median of closed)", "nodes", "published s",
              "CPU s, same images", "bar", "", "date", "commit", "others"]  # fmt: skip
    order = [*rows, *(name for name in test if name not in rows)]
    each = [*rows.values(), *test.values()]
    table = [
        [
            name,
            split,
            f"{r['closed']} of {r['images']}",
            f"{r['mean_gap']:.3f}",
            f"{r['median_gap']:.3f}",
            _number(r["cpu_closed"], 2),
            str(r["nodes"]),
            _number(r["published_seconds"], 0) + (f" ({r['published_rows']} rows)" if r["published_rows"] else ""),
            _number(r["same_cpu"], 1),
            *((r["goal"], r["verdict"]) if split == "test" else ("–", "–")),
            r.get("date", "–"),
            r.get("commit") or "–",
            f"{r['elsewhere']:.1%}" if "elsewhere" in r else "–",
        ]
        for name in order
        for split, r in (("training", rows.get(name)), ("test", test.get(name)))
        if r is not None
    ]
    apart = {n: rows[n]["not_overlapping"] for n in rows if rows[n]["not_overlapping"]}
    note = "Every interval overlaps the published one of the same image."
    if apart:
        note = "Intervals that do not overlap the published ones (images): " + ", ".join(
            f"{n} {v}" for n, v in apart.items()
        )
    seconds = " or ".join(sorted({f"{r['seconds']:g}" for r in each}))
    return (
        "## The published networks\n\nThe first correctly classified training images, which constants may be tuned on,"
        " and those of test images 100 to 119 (100 to 109 of convolutional networks) that are classified correctly,"
        f" which nobody tunes on: the bar is for these. {seconds} CPU seconds per image,"
        " tolerance 0.002 (5 % of the upper end for CIFAR-10). Networks called plain are trained for this on 10,000"
        f" images and get {PLAIN_SECONDS:g} CPU seconds. The gap is (upper − lower) / upper. Published seconds are"
        " the wall time that the JAIR paper reports, on other hardware, for those of the images whose row has"
        " status `ok`; the column after it is ours for the same images. Each row has its date, its code and the share"
        f" of the cores that other programs took meanwhile.\n\n{markdown(header, table)}\n\n{note}"
    )


def _peer(results: dict[str, Any]) -> str:
    header = ["network", "images", "gap: radii", "vibecheck", "CPU s: radii", "vibecheck", "ratio"]
    table = [
        [
            name,
            str(len(r["rows"])),
            f"{r['gaps'][0]:.3f}",
            f"{r['gaps'][1]:.3f}",
            f"{r['ours']:.1f}",
            f"{r['peer']:.1f}",
            f"1/{r['peer'] / max(r['ours'], 1e-9):.1f}",
        ]
        for name, r in results.items()
    ]
    seconds = " or ".join(sorted({f"{r['seconds']:g}" for r in results.values()}))
    dated = ", ".join(sorted({f"vibecheck-nn {r['version']}, {r['date']}," for r in results.values()})).rstrip(",")
    busy = max(r["elsewhere"] for r in results.values())
    return (
        f"## Beside vibecheck\n\nThe same images, {seconds} CPU seconds per image. vibecheck by binary search over"
        " 0.001 … 0.399 in steps of 0.002 (CIFAR-10: 0.0005 … 0.0995 in steps of 0.0005), one process per query; a"
        " query may use a quarter of the image's budget, and where it has no answer the search goes on below it, then"
        " above."
        " A grid step is also what it can leave open at best. Its part does not depend on our sources and is kept from"
        f" run to run: {dated} on the same kind of machine, with other programs on {busy:.1%} of the cores at most.\n\n"
        + markdown(header, table)
    )


def _curves(results: dict[str, Any]) -> str:
    budgets = sorted({seconds for r in results.values() for seconds, _ in r["gaps"]})
    table = []
    for name, r in results.items():
        gaps = dict(map(tuple, r["gaps"]))
        table.append([name, str(r["images"]), *(_number(gaps.get(s), 3) for s in budgets)])
    header = ["network", "images", *(f"{s:g} s" for s in budgets)]
    picture = "![Mean gaps over CPU seconds](pictures/bench-curves.png)"
    return f"## Gaps over time\n\nMean gap by CPU seconds per image.\n\n{markdown(header, table)}\n\n{picture}"


def _growth(found: dict[str, Any]) -> str:
    names = {"images": "images at once", "width": "width (2 hidden layers)", "depth": "hidden layers (50 wide)"}
    table = [
        [names[axis], str(size), f"{cpu:.2f}", f"{closed:.2f}", f"{gap:.3f}", f"{nodes:.0f}"]
        for axis in names
        for size, cpu, closed, gap, nodes in found[axis]
    ]
    header = ["what grows", "", "CPU s per image", "closed", "mean gap", "nodes per image"]
    return (
        f"## Growth of cost\n\nAt most {found['seconds']:g} CPU seconds per image. Images: mnist-net_256x2. Width and"
        f" depth: networks trained for this on 10,000 images.\n\n{markdown(header, table)}\n\n"
        "![CPU seconds over width, depth and undecided neurons](pictures/bench-growth.png)\n\n"
        "Each point on the right is one image of these networks; the line is the budget."
    )


def _envelope(results: dict[str, Any]) -> str:
    blocks = []
    for name, r in results.items():
        rate = r["images"] / r["wall_seconds"]
        table = [[f"{e:g}", f"{low:.4f}", f"{high:.4f}"] for e, low, high in r["robust_accuracy"]]
        blocks.append(
            f"{name}: {r['images']} test images in {r['cpu_seconds']:.0f} CPU s, {rate:.1f} a second by the"
            f" clock; {r['wrong']}"
            f" misclassified, {r['with_upper']} with an upper and {r['with_lower']} with a lower end, {r['closed']}"
            f" closed, median lower/upper {r['median_ratio']:.2f}.\n\n"
            + markdown(["ε", "robust accuracy, proven", "not refuted"], table)
        )
    return (
        "## The whole test set\n\nAttack from above, linear bounds from below, no branching (`verifier: envelope`), all"
        " workers at once.\n\n" + "\n\n".join(blocks)
    )


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
