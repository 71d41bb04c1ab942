"""Random networks of every operator that the importer knows, small enough for exact oracles."""

from __future__ import annotations

import math

import numpy as np

from fuzzing.build import Constant, Network
from fuzzing.flat import FLAT
from fuzzing.recipe import Recipe, dense, flatten
from fuzzing.spatial import IMAGE, normalised

WIDEST = 8  # values of a layer


def random_network(rng: np.random.Generator, deployed: bool, softmax: bool = False) -> tuple[Network, str]:
    """A network of two to four classes, and the profile of its weights; it may end in a softmax if that is allowed."""
    recipe = Recipe(rng, deployed)
    for _ in range(int(rng.integers(1, 6))):
        table = (*FLAT, normalised) if recipe.flat else IMAGE
        table[int(rng.integers(len(table)))](recipe)
        if math.prod(recipe.b.shape) > WIDEST:
            shrink(recipe)
    if not recipe.flat:
        flatten(recipe)
    dense(recipe, int(rng.integers(2, 5)))
    end(recipe, softmax)
    return recipe.b.network(), recipe.weights.profile


def shrink(r: Recipe) -> None:
    """Back to a few values."""
    if not r.flat:
        flatten(r)
    dense(r, int(r.rng.integers(2, 5)))


def end(r: Recipe, softmax: bool) -> None:
    """What may follow the last layer: mostly nothing."""
    kind = 0.2 if r.raised else r.rng.random()
    if kind < 0.06:
        r.b.relu()
    elif kind < 0.1 and not r.double:
        r.b.clip(-1.0 * r.weights.scale, 1.0 * r.weights.scale)
    elif kind < 0.13 and not r.deployed:
        r.b.curve("Sigmoid" if r.coin() else "Tanh")
    elif kind < 0.3:
        c = r.b.rounded(10.0 ** r.rng.uniform(1, 4) * r.weights.scale)
        k = Constant(c)
        r.b.step(r.b.node("Add", [r.b.at, r.b.constant(c)]), lambda v: v + k.of(v))
    elif kind < 0.36 and softmax:
        # It keeps the order of the outputs, and more is not asked of it: the steps leave the logits as they are.
        names = r.b.node("Softmax" if r.coin() else "LogSoftmax", [r.b.at], axis=1)
        r.b.step(names, lambda v: v)
