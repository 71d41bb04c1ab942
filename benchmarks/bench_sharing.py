"""Whether nodes of several images should share batches: what that could save, and what a shared batch costs.

    python benchmarks/bench_sharing.py [--network NAME...] [--images 20] [--seconds 60] [--data FOLDER]

Every image has matrices of its own, so a shared batch is a batched product over images, padded to the largest of them.
`ceiling`: of the CPU seconds of a whole run, what would be saved if every batch cost a node what batches of 64 to 128
nodes cost. `shared`: float32 sweeps of k nodes of each image, image by image and as one batched product.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from common import DATA, ROOT, correct, keep, machine, network
from torch import Tensor

from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.nodes import Nodes, Problem, _forward, _lines_in_use, _Relaxation, _sweep
from radii.engine.tree import Tree
from radii.problem import LINF, Classification

NETWORKS = ("mnist-net_256x2", "mnist-net", "mnist_nn", "mnist_relu_3_50")
FULL = 64  # nodes from which a batch counts as full
NODES, TOGETHER = (2, 8, 32, 128), 8  # nodes per image, and images, in the comparison
SWEEPS = 20


class Watched:
    """Times every batch of nodes that trees bound, and keeps each image's first problem."""

    def __init__(self) -> None:
        self.batches: dict[bool, list[tuple[int, float]]] = defaultdict(list)
        self.problems: list[Problem] = []
        self._bound: Callable[..., Nodes] = Tree._bound

    def __enter__(self) -> Watched:
        def timed(tree: Tree, nodes: Nodes, steps: int) -> Nodes:
            begun = time.process_time()
            found = self._bound(tree, nodes, steps)
            self.batches[tree.measures].append((len(nodes), time.process_time() - begun))
            if tree.measures and tree.visited == len(nodes):
                self.problems.append(tree.problem)
            return found

        Tree._bound = timed
        return self

    def __exit__(self, *_: object) -> None:
        Tree._bound = self._bound


def ceiling(batches: list[tuple[int, float]]) -> tuple[float, float]:
    """CPU seconds of batches, and what they would be if all were as cheap a node as full ones."""
    full = [(n, s) for n, s in batches if n >= FULL]
    rate = sum(s for _, s in full) / max(1, sum(n for n, _ in full))
    return sum(s for _, s in batches), sum(min(s, n * rate) for n, s in batches)


def seconds_of(run: Callable[[], Any]) -> float:
    """CPU seconds of one run, the least of three rounds."""
    run()
    rounds = []
    for _ in range(3):
        begun = time.process_time()
        for _ in range(SWEEPS):
            run()
        rounds.append((time.process_time() - begun) / SWEEPS)
    return min(rounds)


def one_by_one(problems: list[Problem], count: int) -> Callable[[], Tensor]:
    """Sweeps back and forth for so many nodes of each image, as the engine makes them."""
    batches = []
    for problem in problems:
        roots = problem.roots()
        nodes = roots.pick(torch.arange(count) % len(roots))
        batches.append((problem, nodes, _Relaxation.of(nodes.low, nodes.high), *problem.fast.objectives_of(nodes)))

    def run() -> Tensor:
        constants = []
        for problem, nodes, relaxation, rows, charge in batches:
            sweep = _sweep(problem.net, problem.fast, nodes, relaxation, rows, charge)
            x = problem.fast.region.minimiser(sweep.a[None])[0]
            _forward(problem.net, problem.fast, _lines_in_use(sweep, relaxation), x)
            constants.append(sweep.c)
        return torch.stack(constants)

    return run


def together(problems: list[Problem], count: int) -> Callable[[], Tensor]:
    """The same sweeps for all images in one batched product; layers padded to the largest."""
    depth = max(len(p.net.blocks) for p in problems)
    sizes = [
        max(p.net.blocks[k][1] - p.net.blocks[k][0] if k < len(p.net.blocks) else 0 for p in problems)
        for k in range(depth)
    ]
    starts = [sum(sizes[:k]) for k in range(depth + 1)]
    n, d = starts[-1], problems[0].fast.neurons.a.shape[1]
    place = [
        torch.cat([starts[k] + torch.arange(j - i) for k, (i, j) in enumerate(p.net.blocks)] or [torch.empty(0).long()])
        for p in problems
    ]

    def padded(rows: list[Tensor], height: int) -> Tensor:
        out = torch.zeros((len(rows), height, n))
        for i, (row, at) in enumerate(zip(rows, place)):
            out[i][:, at] = row
        return out

    a, m = torch.zeros((len(problems), n, d)), torch.zeros((len(problems), n, n))
    b, charge, span = (torch.zeros((len(problems), n, 1)) for _ in range(3))
    nodes = []
    for i, (p, at) in enumerate(zip(problems, place)):
        side = p.fast
        a[i, at], b[i, at, 0], charge[i, at, 0], span[i, at, 0] = side.neurons.a, side.neurons.b, side.charge, side.span
        m[i, at[:, None], at[None]] = side.neurons.m
        roots = p.roots()
        nodes.append(roots.pick(torch.arange(count) % len(roots)))
    low, high, alpha, beta = (padded([getattr(k, f) for k in nodes], count) for f in ("low", "high", "alpha", "beta"))
    sign = padded([k.sign.float() for k in nodes], count)
    objectives = [p.fast.objectives.pick(k.objective) for p, k in zip(problems, nodes)]
    row_a, row_b = torch.stack([o.a for o in objectives]), torch.stack([o.b for o in objectives])
    row_m = padded([o.m for o in objectives], count)
    row_charge = torch.stack([p.fast.objective_charge[k.objective] for p, k in zip(problems, nodes)])
    down, up = (torch.stack([p.fast.region.box()[k][0] for p in problems])[:, None] for k in (0, 1))
    relaxation = _Relaxation.of(low, high)

    middle, half = 0.5 * (up - down), 0.5 * (up + down)

    def run() -> Tensor:
        floor, pull = relaxation.floor(alpha), beta * sign
        v, u = row_m.clone(), torch.empty_like(row_m)
        for first, last in reversed(list(pairwise(starts))):
            above = v[..., first:last].clamp_min(0.0)
            below = v[..., first:last] - above
            through = above.mul_(floor[..., first:last]).addcmul_(below, relaxation.steep[..., first:last])
            torch.sub(through, pull[..., first:last], out=u[..., first:last])
            if first:
                v[..., :first] += u[..., first:last] @ m[:, first:last, :first]
        line = torch.baddbmm(row_a, u, a)
        relaxed = (v.abs() * (relaxation.lift + span.mT)).sum(-1) + (pull.abs() @ span)[..., 0]
        c = row_b + (u @ b)[..., 0] + (v.clamp_max(0.0) * relaxation.lift).sum(-1)
        c = c - ((u.abs() @ charge)[..., 0] + row_charge + relaxed * 1e-5) * (1.0 + 2.0**-10)
        x = torch.addcmul(middle, torch.sign(line), half, value=-1.0)
        lower = (v * 1e30).clamp(0.0, 1.0)
        slope = torch.addcmul(relaxation.steep, lower, floor - relaxation.steep)
        offset = torch.addcmul(relaxation.lift, relaxation.lift, lower, value=-1.0)
        z = torch.baddbmm(b.mT, x, a.mT)
        y = torch.empty_like(z)
        for first, last in pairwise(starts):
            if first:
                z[..., first:last] += y[..., :first] @ m[:, first:last, :first].mT
            y[..., first:last] = torch.addcmul(offset[..., first:last], slope[..., first:last], z[..., first:last])
        return c

    return run


def main() -> None:
    """Prints a line per network and a line per batch size, and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds per image")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench_sharing.json")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for name in asked.network:
        classifier, instances = network(asked.data, name), correct(asked.data, name, asked.images)
        Native().measure(classifier, instances[:1], Classification(), LINF, Budget(None, nodes=100), tolerance=0.002)
        begun = time.process_time()
        with Watched() as seen:
            Native().measure(classifier, instances, Classification(), LINF, Budget(asked.seconds), tolerance=0.002)
        total = time.process_time() - begun
        spent, least = (sum(ends) for ends in zip(*(ceiling(batches) for batches in seen.batches.values())))
        row: dict[str, Any] = {"total": total, "in_batches": spent, "saved_at_most": (spent - least) / total}
        print(f"{name}: {total:.1f} CPU s, {spent:.1f} of them in batches; at most {row['saved_at_most']:.1%} to save")
        problems = [p for p in seen.problems if p.net.size][:TOGETHER]
        row["images"] = len(problems)
        row["sweeps"] = []
        for count in NODES:
            separate, joint = one_by_one(problems, count), together(problems, count)
            torch.testing.assert_close(separate(), joint(), rtol=1e-3, atol=1e-3)
            alone, shared = seconds_of(separate), seconds_of(joint)
            row["sweeps"].append([count, alone, shared])
            print(
                f"  {count:4} nodes of each of {len(problems)} images: {1e3 * alone:.2f} ms one by one,"
                f" {1e3 * shared:.2f} ms shared ({shared / alone:.2f})",
                flush=True,
            )
        keep(asked.out, name, row | {"machine": machine()})


if __name__ == "__main__":
    main()
