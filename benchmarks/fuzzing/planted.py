"""Networks whose radii are known by construction: linear ones, and one narrow spike behind two to six layers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fuzzing.build import Array, Builder, Network
from fuzzing.recipe import Recipe, dense


def linear_network(rng: np.random.Generator) -> tuple[Network, str]:
    """One or two affine layers without an activation, of any profile of weights."""
    recipe = Recipe(rng, True)
    most = 13 if recipe.weights.profile == "brink" else 7
    recipe.b = Builder((int(rng.integers(1, most)),), recipe.b.opset, recipe.double, recipe.b.single)
    if recipe.coin(0.3):
        dense(recipe, int(rng.integers(1, 5)))
    dense(recipe, int(rng.integers(2, 5)))
    return recipe.b.network(), recipe.weights.profile


def lowest_linear(slope: list, room: list, radius: Fraction, norm: str) -> list:
    """The offset in a ball that makes slope · offset least, `room` = (down, up) of each coordinate.

    In whatever numbers it is given: fractions for L∞ and L1, floats for L2.
    """
    gain = [abs(s) for s in slope]
    side = [r[0] if s > 0 else r[1] for s, r in zip(slope, room)]
    if norm == "linf":
        step = [min(radius, s) for s in side]
    elif norm == "l1":
        left, step = radius, [radius * 0] * len(slope)
        for i in sorted(range(len(slope)), key=lambda k: -gain[k]):
            step[i] = min(left, side[i])
            left -= step[i]
    else:
        step = _round(np.array([float(g) for g in gain]), np.array([float(s) for s in side]), float(radius))
    return [-t if s > 0 else t if s < 0 else t * 0 for s, t in zip(slope, step)]


def _round(gain: Array, side: Array, radius: float) -> list:
    """The most of gain · step for |step|₂ ≤ radius and step ≤ side: in the gain's direction, cut off at the sides."""
    step, free, left = np.zeros(len(gain)), gain > 0, radius * radius
    while free.any() and left > 0:
        unit = gain[free] / gain[free].max()
        found = np.zeros(len(gain))
        found[free] = unit * math.sqrt(left) / math.sqrt(float(unit @ unit))
        over = free & (found > side)
        if not over.any():
            step[free] = found[free]
            break
        step[over] = side[over]
        free &= ~over
        left = radius * radius - float(step @ step)
    return [float(v) for v in step]


class Spike:
    """A network that is wrong only where |x − place|₁ ≤ size: its radius anywhere is the distance to that diamond.

    All weights are whole numbers or powers of two. Between the input and the spike the values go through layers of
    relu(A z), relu(−A z) with whole matrices A of determinant 1, which the next layer undoes.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        size, self.hidden = int(rng.integers(1, 5)), int(rng.integers(2, 7))
        width = 2.0 ** -int(rng.integers(1, 11))
        share = int(rng.integers(1, 8)) / 8
        height = 2.0 ** int(rng.integers(0, 5))
        self.place = rng.integers(4, 61, size) / 64
        self.size = width * (1 - share)
        b = Builder((size,), int(rng.integers(8, 21)))
        both, back = np.concatenate([np.eye(size), -np.eye(size)]), np.concatenate([np.eye(size), -np.eye(size)], 1)
        mixed, first = np.eye(size), True
        for depth in range(self.hidden - 1):
            mix = np.rint(np.linalg.inv(mixed)) if depth == self.hidden - 2 else _whole(rng, size)
            mixed = mix @ mixed
            weight = both @ mix if first else both @ mix @ back
            bias = -(weight @ self.place) if first else np.zeros(2 * size)
            _gemm(b, weight, bias).relu()
            first = False
        # Beside the spike a second neuron, which every output has the same share of: the order does not change.
        weight = np.stack([-np.ones(2 * size), rng.integers(0, 3, 2 * size) / 4])
        _gemm(b, weight, np.array([width, 0.0])).relu()
        classes = int(rng.integers(2, 4))
        last = np.full((classes, 2), [0.0, float(rng.integers(-2, 3)) / 2])
        last[1, 0] = height
        bias = np.array([height * width * share, 0.0, -1.0][:classes])
        self.network: Network = _gemm(b, last, bias).network()

    def distance(self, x: Array, norm: str) -> float:
        """How far x is from where the network is wrong."""
        step = self._steps(np.abs(x - self.place), self.size)
        return float(np.linalg.norm(step, {"linf": np.inf, "l1": 1, "l2": 2}[norm]))

    def nearest(self, x: Array) -> Array:
        """A point where the network is wrong, hardly farther away than the nearest one."""
        gap = self.place - x
        return x + np.sign(gap) * self._steps(np.abs(gap), self.size * (1 - 1e-6))

    def _steps(self, gap: Array, size: float) -> Array:
        """min(gap, t) with the t that leaves a rest of size: nearest in L∞ and L2; in L1 every such step is."""
        low, high = 0.0, float(gap.max())
        if gap.sum() <= size:
            return np.zeros(len(gap))
        order = np.sort(gap)[::-1]
        for count in range(1, len(gap) + 1):
            high = (order[:count].sum() - size) / count
            if count == len(gap) or high >= order[count]:
                break
        return np.minimum(gap, max(low, high))


def _gemm(b: Builder, weight: Array, bias: Array) -> Builder:
    names = b.node("Gemm", [b.at, b.constant(weight), b.constant(bias)], transB=1)
    return b.matrix(names, b.rounded(weight), b.rounded(bias), (len(bias),))


def _whole(rng: np.random.Generator, size: int) -> Array:
    """A matrix of whole numbers with determinant 1."""
    low = np.tril(rng.integers(-1, 2, (size, size)), -1) + np.eye(size)
    return (low @ (np.triu(rng.integers(-1, 2, (size, size)), 1) + np.eye(size)))[rng.permutation(size)]
