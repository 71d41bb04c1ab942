"""The engine on the published networks: closed share, gaps, CPU seconds and nodes, against a bar and against a peer.

    python benchmarks/bench_engine.py [--quick] [--bar] [--vibecheck] [--curves] [--growth] [--envelope]
                                      [--network NAME...] [--split SPLIT] [--images N] [--seconds S] [--workers N]
                                      [--data FOLDER]

Without a part named, all of them run. `--bar`: of every network the first correctly classified training images, which
constants may be tuned on, and those of test images 100 to 119 (100 to 109 of convolutional networks) that it gets
right, which nobody tunes on: the bar is for these. Both are printed, each row with its date and the share of the cores
that others took.
`--vibecheck`: the same images by binary search with vibecheck (scripts/setup_vibecheck.sh installs it), at the same
CPU seconds per image. `--curves`: mean gaps of deep networks over growing budgets. `--growth`: cost over images, width
and depth. `--envelope`: attack and linear bounds for the whole MNIST test set. CPU seconds, one thread per image,
`--workers` images at a time. Every figure is kept in docs/bench.json and written to docs/bench.md. A run of all parts
takes hours: one that was stopped goes on where it was, with the same sources and settings on the same kind of machine,
and begins anew otherwise. What vibecheck found does not depend on our sources: it is kept for every kind of machine as
long as its version and the budget are the same, unless `--vibecheck` asks for it. A run of some parts replaces those.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import pairwise
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_report import write_page
from common import (
    DATA,
    PLAIN_SECONDS,
    ROOT,
    Elsewhere,
    code,
    correct,
    keep,
    machine,
    mnist,
    network,
    peak_memory,
    published,
    unseen,
)

from radii.bounds.intermediate import bound_root
from radii.bounds.region import Region
from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.output_rows import lowered
from radii.models import Classifier
from radii.problem import LINF, Classification, Instance, Query, Radius, Status, Verdict
from radii.search.grid import Grid
from radii.verifiers.command import TEMPLATES, Command
from radii.verifiers.envelope import Envelope

# network: least closed share, most CPU seconds (median of closed), most mean relative gap; for test images
BAR: dict[str, tuple[float | None, float | None, float | None]] = {
    "mnist-net_256x2": (19 / 20, 0.5, None),
    "mnist-net": (1.0, 2.0, None),
    "mnist_relu_3_50": (1.0, 2.0, None),
    "mnist_nn": (18 / 20, 1.0, None),
    "mnist-net_256x4": (None, None, 0.14),
    "mnist_relu_9_100": (None, None, 0.30),
    "mnist_relu_6_200": (None, None, 0.50),
    "mnist_nn_fgsm_02": (None, None, 0.40),
    "convSmallRELU__DiffAI": (3 / 10, None, 0.20),
    "convSmallRELU__Point": (None, None, 0.07),
    "resnet_4b_standard": (None, None, 0.58),
    "plain_2x256": (1 / 2, None, 0.12),  # trained here, as for the growth of cost
    "plain_3x100": (None, None, None),
}
FIRST_TEST = 100  # position of the first test image of the bar
SPLITS = {"bar": "training", "bar_test": "test"}  # part of the kept figures: which images
HARD = {name for name, (_, _, gap) in BAR.items() if gap is not None}
MEMORY = 6 * 2**30
GRID, FINE_GRID = Grid.steps(0.001, 0.399, 0.002), Grid.steps(0.0005, 0.0995, 0.0005)  # the fine one for CIFAR-10
PEER = ROOT / ".venv-vibecheck" / "bin" / "vibecheck"
PEER_NETWORK, PEER_RATIO, PEER_SHARE = "mnist-net_256x2", 1 / 30, 1 / 4
DEEP = ("mnist-net_256x4", "mnist_relu_9_100", "mnist_relu_6_200", "convSmallRELU__DiffAI", "convSmallRELU__Point")
BUDGETS = (10.0, 30.0, 60.0, 120.0)


def main() -> int:
    """Run the parts that are asked for; 1 when a bar is missed."""
    options = arguments()
    if not options.data.is_dir():
        print(f"--data: expected the folder of the JAIR networks, got {options.data}", file=sys.stderr)
        return 2
    parts = {"bar": run_bar, "curves": run_curves, "growth": run_growth, "envelope": run_envelope}
    parts |= {"vibecheck": run_vibecheck}  # the longest, and the one that another run may have done
    named = [name for name in parts if getattr(options, name)]
    options.resumed = not named
    start_sitting(options, named)
    elsewhere = Elsewhere()
    with ProcessPoolExecutor(options.workers, get_context("spawn"), warm_up, (options.data,)) as options.pool:
        missed = []
        for name in named or parts:
            missed += [] if parts[name](options) else [name]
            here = machine()
            keep(options.out, "measured", {name: {"date": here["date"], "commit": here["commit"]}})
            end_sitting(options, elsewhere, whole=False)
    peak = end_sitting(options, elsewhere, whole=not named).get("peak_memory", 0)
    write_page(options.out, options.page)
    print(f"peak memory of a process {peak / 2**30:.2f} GiB; figures in {options.out}, table in {options.page}")
    return 1 if missed else 0


def start_sitting(options: argparse.Namespace, named: list[str]) -> None:
    """Goes on with the run in the file if it was stopped and nothing has changed since, else begins anew."""
    here = machine()
    same = {k: getattr(options, k) for k in ("quick", "seconds", "workers", "images", "network")}
    same |= {"code": code(), "processor": here["processor"], "torch": here["torch"]}
    known = keep(options.out, "run", {})["run"]
    if not named and (known.get("same") != same or known.get("whole") or known.get("parts")):
        peer = keep(options.out, "peer", {})["peer"]
        options.out.unlink()
        keep(options.out, "peer", peer)
        known = {}
    sittings = [*known.get("sittings", ()), {"commit": here["commit"], "date": here["date"]}]
    keep(options.out, "run", {"machine": here, "same": same, "parts": named, "sittings": sittings})


def end_sitting(options: argparse.Namespace, elsewhere: Elsewhere, whole: bool) -> dict[str, Any]:
    """Keeps how much of the cores others took so far, and whether all parts are there; gives all that is kept."""
    run = keep(options.out, "run", {})["run"]
    run["sittings"][-1]["elsewhere"] = elsewhere.share()
    kept_now: dict[str, Any] = keep(options.out, "run", {"sittings": run["sittings"], "whole": whole})["run"]
    return kept_now


def there(options: argparse.Namespace, part: str, name: str) -> Any:
    """What an earlier sitting of this run kept of a part; None where it has to be measured."""
    return keep(options.out, part, {})[part].get(name) if options.resumed else None


def warm_up(data: Path) -> None:
    """Loads what is loaded on first use and compiles the kernels, so that no image pays for it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    instances = correct(data, PEER_NETWORK, 1)
    classifier = network(data, PEER_NETWORK)
    Native().measure(classifier, instances, Classification(), LINF, Budget(None, nodes=100), tolerance=0.002)


def spread(
    work: Callable[..., list[Any]], name: str, instances: list[Instance], options: argparse.Namespace, size: int
) -> list[Any]:
    """`work(data, name, part, seconds)` on parts of the instances, in processes of their own; all results in order."""
    parts = [instances[k : k + size] for k in range(0, len(instances), size)]
    found = in_processes(options, work, [(options.data, name, part, options.seconds) for part in parts])
    return [result for results in found for result in results]


def in_processes(options: argparse.Namespace, work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
    """What every call gives, in order and as soon as it is there; the most memory of a process is kept."""
    jobs = [options.pool.submit(watched, work, *call) for call in calls]
    for job in jobs:
        result, peak = job.result()
        known = keep(options.out, "run", {})["run"].get("peak_memory", 0)
        keep(options.out, "run", {"peak_memory": max(known, peak)})
        yield result


def watched(work: Callable[..., Any], *call: Any) -> tuple[Any, int]:
    """What a call gives, and the most memory its process has held."""
    return work(*call), peak_memory()


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the images")
    for part in ("bar", "vibecheck", "curves", "growth", "envelope"):
        parser.add_argument(f"--{part}", action="store_true", help=f"run this part (all, when none is named): {part}")
    parser.add_argument("--network", nargs="+", choices=list(BAR), metavar="NAME", help=f"of {', '.join(BAR)}")
    parser.add_argument("--split", choices=list(SPLITS.values()), help="of the bar: these images alone")
    parser.add_argument("--images", type=int, help="images per network, the first ones, of training and of test images")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds per image")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="images at a time")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "bench.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "bench.md")
    return parser.parse_args()


def image_count(name: str, options: argparse.Namespace) -> int:
    """How many images of a network are tried."""
    return options.images or (max(1, full_count(name) // 10) if options.quick else full_count(name))


def full_count(name: str) -> int:
    """How many images of a network a whole run tries."""
    return 10 if name.startswith(("conv", "resnet")) else 20


def measure(name: str, instances: list[Instance], options: argparse.Namespace) -> list[Radius]:
    """Radii by direct search within the budget, several images at a time."""
    together = 1 if name in HARD else 5  # what takes the whole budget leaves no core idle; the rest shares attacks
    found: list[Radius] = spread(measure_part, name, instances, options, together)
    return found


def measure_part(data: Path, name: str, instances: list[Instance], seconds: float) -> list[Radius]:
    """Radii of some images, with one line per image on the terminal."""
    tolerance = "5%" if name.startswith("resnet") else 0.002  # 1/1020 would call [.0005, .0012] closed

    def line(at: int, radius: Radius) -> None:
        print(
            f"  {name} image {instances[at].index}: [{_end(radius.lower)}, {_end(radius.upper)}] {radius.status}"
            f" {radius.cost.cpu_seconds:.2f} s {radius.cost.nodes} nodes",
            file=sys.stderr,
            flush=True,
        )

    budget = Budget(seconds, MEMORY)
    return Native().measure(
        network(data, name), instances, Classification(), LINF, budget, tolerance=tolerance, progress=line
    )


def run_bar(options: argparse.Namespace) -> bool:
    """Two lines per network, training and test images; whether every bar is met on test images."""
    good = True
    print(
        f"{'network':24}{'images':>10}{'closed':>9}{'gap':>7}{'median':>8}{'CPU s':>8}{'nodes':>9}{'published s':>13}"
        f"{'date':>12}{'others':>8}  bar"
    )
    for name in options.network or BAR:
        for part, split in SPLITS.items():
            if options.split not in (None, split):
                continue
            row = there(options, part, name) or bar_row(name, part, options)
            write_page(options.out, options.page)
            print(
                f"{name:24}{split:>10}{row['closed']:>5}/{row['images']:<3}{row['mean_gap']:7.3f}"
                f"{row['median_gap']:8.3f}{_number(row['cpu_closed']):>8}{row['nodes']:9}"
                f"{_number(row['published_seconds'], 0):>13}{row['date']:>12}{row['elsewhere']:8.1%}  {row['verdict']}",
                flush=True,
            )
            good = good and (part == "bar" or row["verdict"] != "missed")
    return good


def bar_row(name: str, part: str, options: argparse.Namespace) -> dict[str, Any]:
    """What one network's training or test images say, with the day and what others took of the cores meanwhile."""
    count = image_count(name, options)
    test = part == "bar_test"
    if test:
        instances = unseen(options.data, name, FIRST_TEST, full_count(name))[:count]
    else:
        instances = correct(options.data, name, count)
    elsewhere = Elsewhere()
    if name.startswith("plain"):
        options = argparse.Namespace(**{**vars(options), "seconds": min(options.seconds, PLAIN_SECONDS)})
    found = measure(name, instances, options)
    rows = {} if test or name.startswith("resnet") else published(options.data, name)  # of training images alone
    row = summary(name, instances, found, rows, options.seconds)
    here = machine()
    row |= {"date": here["date"], "commit": here["commit"], "elsewhere": elsewhere.share()}
    keep(options.out, part, {name: row})
    return row


def relative_gap(radius: Radius) -> float:
    """(upper − lower) / upper; 1 when an end is absent."""
    return gap_of(radius.lower, radius.upper)


def gap_of(lower: float | None, upper: float | None) -> float:
    """(upper − lower) / upper; 1 when an end is absent."""
    return 1.0 if lower is None or not upper else (upper - lower) / upper


def summary(
    name: str, instances: list[Instance], radii: list[Radius], rows: dict[int, dict[str, float]], seconds: float
) -> dict[str, Any]:
    """What one network's radii say, beside the published rows of the same images."""
    gaps = [relative_gap(r) for r in radii]
    closed = [r for r in radii if r.status is Status.CLOSED]
    cpu = float(np.median([r.cost.cpu_seconds for r in closed])) if closed else None
    share, most, gap = BAR[name]
    checks = [
        share is None or len(closed) >= round(share * len(radii), 6) - 1e-9,
        most is None or (cpu is not None and cpu <= most),
        gap is None or float(np.mean(gaps)) <= gap,
    ]
    beside = [(rows[i.index], r) for i, r in zip(instances, radii) if i.index in rows]
    apart = [i.index for i, r in zip(instances, radii) if i.index in rows and not overlap(rows[i.index], r)]
    return {
        "images": len(radii),
        "closed": len(closed),
        "mean_gap": float(np.mean(gaps)),
        "median_gap": float(np.median(gaps)),
        "cpu_closed": cpu,
        "cpu_total": sum(r.cost.cpu_seconds for r in radii),
        "nodes": sum(r.cost.nodes for r in radii),
        "seconds": seconds,
        "published_rows": len(beside),
        "published_seconds": sum(p["seconds"] for p, _ in beside) if beside else None,
        "same_cpu": sum(r.cost.cpu_seconds for _, r in beside) if beside else None,
        "not_overlapping": apart,
        "goal": goal(name),
        "verdict": "met" if all(checks) else "missed",
        "radii": [[i.index, r.lower, r.upper, r.cost.cpu_seconds, r.cost.nodes] for i, r in zip(instances, radii)],
    }


def goal(name: str) -> str:
    """The bar of a network in words."""
    share, most, gap = BAR[name]
    parts = [f"closed ≥ {share:.0%}"] if share is not None else []
    parts += [f"median ≤ {most:g} s"] if most is not None else []
    parts += [f"gap ≤ {gap:.2f}"] if gap is not None else []
    return ", ".join(parts) or "–"


def overlap(row: dict[str, float], radius: Radius) -> bool:
    """Whether a published interval and ours can both hold."""
    return (radius.lower is None or radius.lower < row["upper"]) and (
        radius.upper is None or radius.upper > row["lower"] - 1e-6
    )


def run_vibecheck(options: argparse.Namespace) -> bool:
    """The same images by direct search and by binary search with vibecheck; whether ours costs a thirtieth at most.

    vibecheck keeps its own time by the clock, so other work on the machine is unkind to it: how much there was is kept.
    """
    if not PEER.is_file():
        print("vibecheck is left out: scripts/setup_vibecheck.sh installs it")
        return True
    chosen = [name for name in options.network or BAR if not name.startswith("plain")]
    asked = {name: correct(options.data, name, image_count(name, options)) for name in chosen}
    for name, instances in asked.items():
        set_beside(name, instances, peer_rows(name, options), options)
    good = True
    for name, instances in asked.items():
        peer = peer_rows(name, options)
        todo = [i for i in instances if str(i.index) not in peer["rows"]]
        calls = [(options.data, name, instance, options.seconds) for instance in todo]
        elsewhere = Elsewhere()
        for instance, (lower, upper, spent, queries) in zip(todo, in_processes(options, search_image, calls)):
            peer["elsewhere"] = max(peer["elsewhere"], elsewhere.share())
            peer["rows"][str(instance.index)] = [lower, upper, spent]
            keep_peer(name, peer, options)
            print(
                f"{name} image {instance.index}: vibecheck [{_end(lower)}, {_end(upper)}] {spent:.1f} s,"
                f" {queries} queries",
                flush=True,
            )
        result = set_beside(name, instances, peer, options)
        print(
            f"{name}: radii {result['ours']:.1f} CPU s, gap {result['gaps'][0]:.3f};"
            f" vibecheck {result['peer']:.1f} CPU s, gap {result['gaps'][1]:.3f};"
            f" 1/{result['peer'] / max(result['ours'], 1e-9):.0f} of the cost  {result['verdict']}",
            flush=True,
        )
        good = good and result["verdict"] == "met"
    return good


def set_beside(
    name: str, instances: list[Instance], peer: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Sets ours beside vibecheck's on those of a network's images that it has done, and writes the page."""
    done = [i for i in instances if str(i.index) in peer["rows"]]
    if not done:
        return {}
    ours = kept(name, done, options) or [(r.lower, r.upper, r.cost.cpu_seconds) for r in measure(name, done, options)]
    rows = [[i.index, *mine, *peer["rows"][str(i.index)]] for i, mine in zip(done, ours)]
    result = compare(name, rows, options.seconds) | {k: peer[k] for k in ("date", "version", "elsewhere")}
    keep(options.out, "vibecheck", {name: result})
    write_page(options.out, options.page)
    return result


def peer_rows(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What vibecheck is known to find on a network's images; nothing when it was asked for anew or has changed."""
    here = machine()
    same = {"version": peer_version(), "seconds": options.seconds}
    known: dict[str, Any] = keep(options.out, "peer", {})["peer"].get(here["processor"], {}).get(name, {})
    if options.vibecheck or {k: known.get(k) for k in same} != same:
        known = same | {"date": here["date"], "elsewhere": 0.0, "rows": {}}
    return known


def keep_peer(name: str, rows: dict[str, Any], options: argparse.Namespace) -> None:
    """Keeps what vibecheck found on a network's images, beside what it found on other kinds of machine."""
    processor = machine()["processor"]
    known = keep(options.out, "peer", {})["peer"].get(processor, {})
    keep(options.out, "peer", {processor: known | {name: rows}})


@cache
def peer_version() -> str:
    """The version of vibecheck that is installed."""
    ask = "from importlib.metadata import version; print(version('vibecheck-nn'))"
    return subprocess.run([PEER.parent / "python", "-c", ask], capture_output=True, text=True).stdout.strip()


def compare(name: str, rows: list[list[Any]], seconds: float) -> dict[str, Any]:
    """What both took on the same images: a thirtieth of the cost is asked on one network, a smaller gap on the rest."""
    mine, theirs = sum(r[3] for r in rows), sum(r[6] for r in rows)
    sides = ([r[1:3] for r in rows], [r[4:6] for r in rows])
    gaps = [float(np.mean([gap_of(*ends) for ends in side])) for side in sides]
    met = mine <= PEER_RATIO * theirs if name == PEER_NETWORK else gaps[0] < gaps[1]
    verdict = "met" if met else "missed"
    return {"ours": mine, "peer": theirs, "gaps": gaps, "verdict": verdict, "seconds": seconds, "rows": rows}


def kept(
    name: str, instances: list[Instance], options: argparse.Namespace
) -> list[tuple[float | None, float | None, float]] | None:
    """Ends and CPU seconds of these images from the bar's part of the same run; None when some are missing."""
    row = keep(options.out, "bar", {})["bar"].get(name)
    if row is None or row["seconds"] != options.seconds:
        return None
    known = {index: (low, high, cpu) for index, low, high, cpu, _ in row["radii"]}
    found = [known.get(i.index) for i in instances]
    return None if None in found else [f for f in found if f is not None]


def run_curves(options: argparse.Namespace) -> bool:
    """Mean gaps of deep networks over growing budgets; whether each budget's is below the one before."""
    good = True
    for name in options.network or DEEP:
        row = there(options, "curves", name)
        if row is None:
            instances = correct(options.data, name, options.images or (1 if options.quick else 3))
            row = {"images": len(instances), "gaps": []}
            for seconds in BUDGETS[:2] if options.quick else BUDGETS:
                asked = argparse.Namespace(**{**vars(options), "seconds": seconds})
                ends = kept(name, instances, asked) or [
                    (r.lower, r.upper, r.cost.cpu_seconds) for r in measure(name, instances, asked)
                ]
                row["gaps"].append([seconds, float(np.mean([gap_of(low, high) for low, high, _ in ends]))])
            keep(options.out, "curves", {name: row})
        print(f"{name}: " + ", ".join(f"{gap:.3f} at {seconds:g} s" for seconds, gap in row["gaps"]), flush=True)
        good = good and all(after[1] <= before[1] for before, after in pairwise(row["gaps"]))
    return good


def search_image(
    data: Path, name: str, instance: Instance, seconds: float
) -> tuple[float | None, float | None, float, int]:
    """Binary search over the grid with vibecheck until an image's seconds are used up: ends, seconds and queries."""
    peer = Command(TEMPLATES["vibecheck"].replace("vibecheck", shlex.quote(str(PEER)), 1), name="vibecheck")
    grid = FINE_GRID if name.startswith("resnet") else GRID
    return search_with(peer, network(data, name), instance, seconds, grid)


def search_with(
    peer: Command, classifier: Classifier, instance: Instance, seconds: float, grid: Grid
) -> tuple[float | None, float | None, float, int]:
    """One image's ends, CPU seconds and queries.

    Kind to the peer: no query may use up more than its share of the budget, and where one has no answer the search
    goes on below it for the lower end first, then above it for the upper one.
    """
    answers: dict[int, Verdict] = {}
    robust, broken, spent = -1, len(grid), 0.0
    for beyond_unknown in (Verdict.BROKEN, Verdict.ROBUST):
        low, high = robust, broken
        while high - low > 1 and spent < seconds:
            middle = (low + high) // 2
            if middle not in answers:
                limit = max(1.0, min(seconds - spent, PEER_SHARE * seconds))
                (answer,) = peer.decide(classifier, [Query(instance, grid[middle])], Budget(limit, MEMORY))
                answers[middle], spent = answer.verdict, spent + answer.cpu_seconds
            verdict = answers[middle]
            robust = max(robust, middle) if verdict is Verdict.ROBUST else robust
            broken = min(broken, middle) if verdict is Verdict.BROKEN else broken
            if (beyond_unknown if verdict is Verdict.UNKNOWN else verdict) is Verdict.BROKEN:
                high = middle
            else:
                low = middle
    lower, upper = grid[robust] if robust >= 0 else None, grid[broken] if broken < len(grid) else None
    return lower, upper, spent, len(answers)


def run_growth(options: argparse.Namespace) -> bool:
    """CPU seconds over the number of images, the width and the depth of networks."""
    from bench_growth import depths, widths

    if there(options, "growth", "depth") is not None:
        return True
    limit, images = min(options.seconds, 10.0), 3 if options.quick else 10
    counts = (1, 10) if options.quick else (1, 10, 100)
    shapes = [("width", size, hidden) for size, hidden in widths(options.quick)]
    shapes += [("depth", size, hidden) for size, hidden in depths(options.quick)]
    found: dict[str, Any] = {"seconds": limit, "images": [], "width": [], "depth": [], "neurons": []}
    for count, row in zip(counts, in_processes(options, grow_images, [(options.data, n, limit) for n in counts])):
        found["images"].append([count, *row])
    calls = [(options.data, hidden, images, limit) for _, _, hidden in shapes]
    for (axis, size, _), (row, neurons) in zip(shapes, in_processes(options, grow_network, calls)):
        found[axis].append([size, *row])
        found["neurons"] += neurons
    for axis in ("images", "width", "depth"):
        for size, cpu, closed, gap, nodes in found[axis]:
            print(f"{axis:7}{size:5} {cpu:8.2f} CPU s per image  closed {closed:.2f}  gap {gap:.3f}  {nodes:.0f} nodes")
    keep(options.out, "growth", found)
    return True


def grow_images(data: Path, count: int, limit: float) -> list[float]:
    """What so many images of one network cost at once."""
    return cost(measure_within(network(data, PEER_NETWORK), correct(data, PEER_NETWORK, count), limit))


def grow_network(
    data: Path, hidden: tuple[int, ...], images: int, limit: float
) -> tuple[list[float], list[list[float]]]:
    """What a network of this shape costs; its images' undecided neurons, seconds and whether they are closed."""
    from bench_growth import trained

    train = mnist(data, "train")
    net = trained(train, hidden)
    right = np.flatnonzero(net.predict(train.x[:200].reshape(200, -1)) == train.y[:200])[:images]
    instances = [Instance(train.x[i].reshape(net.input_shape), int(train.y[i]), int(i)) for i in right]
    radii = measure_within(net, instances, limit)
    neurons = [[undecided(net, i, r), r.cost.cpu_seconds, r.status is Status.CLOSED] for i, r in zip(instances, radii)]
    return cost(radii), neurons


def measure_within(classifier: Classifier, instances: list[Instance], seconds: float) -> list[Radius]:
    """Radii within some CPU seconds per image, in this process."""
    budget = Budget(seconds, MEMORY)
    return Native().measure(classifier, instances, Classification(), LINF, budget, tolerance=0.002, limit=0.5)


def undecided(classifier: Classifier, instance: Instance, radius: Radius) -> int:
    """How many neurons linear bounds leave undecided on the ball of the upper end."""
    center = torch.from_numpy(instance.x.reshape(1, -1).copy())
    size = torch.tensor([radius.upper or 0.5], dtype=torch.float64)
    graph, _ = lowered(classifier)
    return bound_root(graph, Region.around(center, size, LINF, classifier.domain)).undecided


def cost(radii: list[Radius]) -> list[float]:
    """CPU seconds per image, closed share, mean relative gap and nodes per image."""
    return [
        float(np.mean([r.cost.cpu_seconds for r in radii])),
        float(np.mean([r.status is Status.CLOSED for r in radii])),
        float(np.mean([relative_gap(r) for r in radii])),
        float(np.mean([r.cost.nodes for r in radii])),
    ]


def run_envelope(options: argparse.Namespace) -> bool:
    """Attack from above and linear bounds from below for the whole test set; images per second."""
    name = (options.network or [PEER_NETWORK])[0]
    if there(options, "envelope", name) is not None:
        return True
    count = options.images or (1000 if options.quick else len(mnist(options.data, "test")))
    started, cpu = time.perf_counter(), 0.0
    radii: list[Radius] = []
    calls = [(options.data, name, start, min(start + 250, count)) for start in range(0, count, 250)]
    for part, spent in in_processes(options, envelope_part, calls):
        radii, cpu = radii + part, cpu + spent
        rate = len(radii) / (time.perf_counter() - started)
        print(f"  {len(radii)} of {count} images, {rate:.1f} a second", file=sys.stderr, flush=True)
    right = [r for r in radii if not r.misclassified]
    result = {
        "images": len(radii),
        "cpu_seconds": cpu,
        "wall_seconds": time.perf_counter() - started,
        "wrong": len(radii) - len(right),
        "with_lower": sum(r.lower is not None for r in right),
        "with_upper": sum(r.upper is not None for r in right),
        "closed": sum(r.status is Status.CLOSED for r in right),
        "median_ratio": float(np.median([(r.lower or 0.0) / r.upper for r in right if r.upper])),
        "robust_accuracy": [
            [e, float(np.mean([(r.lower or 0.0) >= e for r in radii])), float(np.mean([_holds(r, e) for r in radii]))]
            for e in (0.005, 0.01, 0.02, 0.03, 0.05)
        ],
    }
    keep(options.out, "envelope", {name: result})
    print(
        f"{name}: {len(radii)} images in {result['cpu_seconds']:.0f} CPU s ({result['wall_seconds']:.0f} s),"
        f" {len(radii) / result['wall_seconds']:.1f} a second; median lower/upper {result['median_ratio']:.2f}"
    )
    for epsilon, low, high in result["robust_accuracy"]:
        print(f"  robust accuracy at {epsilon}: between {low:.4f} and {high:.4f}")
    return True


def envelope_part(data: Path, name: str, start: int, stop: int) -> tuple[list[Radius], float]:
    """Radii of some test images by attack and linear bounds, and their CPU seconds."""
    classifier, cpu = network(data, name), time.process_time()
    batch = [Instance(i.x.reshape(classifier.input_shape), i.label, i.index) for i in mnist(data, "test")[start:stop]]
    radii = Envelope().measure(classifier, batch, Classification(), LINF, Budget(), tolerance=0.002)
    return radii, time.process_time() - cpu


def _end_with_parent() -> None:
    """Ends this process when the benchmark is killed: nobody waits for its image any more."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _holds(radius: Radius, epsilon: float) -> bool:
    """Whether nothing says that an image is not robust at ε."""
    return not radius.misclassified and (radius.upper is None or radius.upper > epsilon)


def _end(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    raise SystemExit(main())
