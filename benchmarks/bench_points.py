"""Random points inside proven balls: 10,000 for every radius of a sample of runs over all operators and norms.

    python benchmarks/bench_points.py [--networks 4] [--seconds 5] [--points 10000]

Every point is evaluated in float64 on the graph. One line per run; the last line says how many points broke a proof,
and the exit code is 1 if any did.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from torch import Tensor, nn

from radii.decide import Budget
from radii.engine.native import Native
from radii.models import load_classifier
from radii.models.classifier import Classifier
from radii.problem import L1, L2, LINF, Classification, Instance, Norm
from radii.testing import KINDS, random_instance, random_network

INPUTS = 6


class Gate(nn.Module):
    """a(x) · sigmoid(b(x)), then a square."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(INPUTS, 8), nn.Linear(INPUTS, 8), nn.Linear(8, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        z = self.c(self.a(x) * torch.sigmoid(self.b(x)))
        return self.d(z * z)


def smooth(seed: int) -> list[Classifier]:
    """Networks with Tanh, Sigmoid and products of branches."""
    torch.manual_seed(seed)
    built = []
    for name, act in (("tanh", nn.Tanh), ("sigmoid", nn.Sigmoid)):
        layers = [nn.Linear(INPUTS, 10), act(), nn.Linear(10, 10), act(), nn.Linear(10, 3)]
        built.append((name, nn.Sequential(*layers)))
    built.append(("gate", Gate()))
    for _, module in built:
        for parameter in module.parameters():
            parameter.data *= 2.5
    return [load_classifier(module, input_shape=(INPUTS,), name=f"{name}-{seed}") for name, module in built]


def points(instance: Instance, radius: float, norm: Norm, count: int, seed: int) -> np.ndarray:
    """Points of the ball ∩ [0, 1], most of them on its surface."""
    rng = np.random.default_rng(seed)
    x = instance.x.astype(np.float64).ravel()
    if norm == LINF:
        steps = np.where(rng.random((count, x.size)) < 0.5, -1.0, 1.0)
        steps[count // 2 :] *= rng.random((count - count // 2, x.size))
    else:
        steps = rng.normal(size=(count, x.size)) * (rng.random((count, x.size)) < 0.5)
        steps /= np.linalg.norm(steps, ord=norm.order, axis=1, keepdims=True).clip(1e-12)
    steps[::4] *= rng.random((len(steps[::4]), 1))
    return np.clip(x + steps * (radius * (1 - 1e-12)), 0.0, 1.0)


def broken(network: Classifier, x: np.ndarray, label: int) -> int:
    """How many of these points another class reaches."""
    with torch.no_grad():
        outputs = network.graph(torch.from_numpy(x).reshape(-1, *network.input_shape)).flatten(1).numpy()
    return int((outputs[:, label] <= np.delete(outputs, label, axis=1).max(1)).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=4, help="seeds a kind")
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds per radius")
    parser.add_argument("--points", type=int, default=10_000)
    asked = parser.parse_args()
    total = bad = runs = 0
    for seed in range(asked.networks):
        for network in [*(random_network(seed, kind) for kind in KINDS), *smooth(seed)]:
            instance = random_instance(network, seed)
            for norm in (LINF, L2, L1):
                budget = Budget(seconds=asked.seconds)
                verifier = Native(effort="fast")
                radius = verifier.measure(network, [instance], Classification(), norm, budget, tolerance=1e-3)[0]
                if not radius.lower:
                    continue
                found = broken(network, points(instance, radius.lower, norm, asked.points, seed), instance.label)
                runs, total, bad = runs + 1, total + asked.points, bad + found
                print(
                    f"{network.name:16} {norm!s:5} {radius.status!s:8} lower {radius.lower:.5f}  broken {found}",
                    flush=True,
                )
    print(f"{runs} runs, {total} points inside proven balls, {bad} of them broken")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
