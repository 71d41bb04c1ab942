"""Rows over logits that stand for thresholds of probabilities: every point that gets there meets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import radii
from radii.decide import Budget
from radii.engine.budget import Meter
from radii.engine.native import Native
from radii.engine.probability import Box, Frame, ProbabilitySearch, _halves
from radii.engine.property_search import PropertySearch
from radii.engine.tuning import Probabilities
from radii.problem import Instance, Norm, Probability
from radii.problem.quantity import softmax

LINF, RULE = Norm.of("linf"), Probabilities()


def searched(seed: int = 0, classes: int = 4) -> ProbabilitySearch:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, classes))
    net = radii.load_classifier(module, input_shape=(2,))
    instance = Instance(np.array([0.4, 0.6], dtype=np.float32), 0)
    found: Any = PropertySearch(net, instance, Probability(0.5), LINF).reach(0.1, 0.01, Meter(Budget(seconds=10)))
    return found


@pytest.mark.parametrize("wide", [False, True])
def test_chords_hold_every_point_that_falls_so_low(wide: bool) -> None:
    """By a mean of the other logits; and case by case, by the largest of them."""
    rng, search, met = np.random.default_rng(0), searched(), 0
    for _ in range(40):
        center = rng.normal(0, 1.5, 4)
        logits = center + rng.normal(0, rng.uniform(0.1, 6.0 if wide else 2.0), (500, 4))
        frames = [Frame.mean(1, center, lambda rows, at=logits: ((at @ rows.T).min(0), (at @ rows.T).max(0)))]
        if wide:
            apart = [np.delete(logits - logits[:, [k]], k, axis=1) for k in range(4)]
            frames = [Frame.top(1, k, center, (apart[k].min(0), apart[k].max(0))) for k in (0, 2, 3)]
        end = float(rng.uniform(0.05, 0.9))
        clauses = []
        for frame in frames:
            boxes = [frame.box]
            for _ in range(3):
                at = frame.rows @ logits[int(rng.integers(500))]
                boxes = [half for box in boxes for half in _halves(box, at, RULE) or [box]]
            clauses += [search._chords(frame, box, 1.0 / end - 1.0) for box in boxes]
        low = logits[softmax(logits)[:, 1] <= end]
        assert all(any(clause.holds(point) for clause in clauses) for point in low)
        met += len(low)
    assert met > 1000


def test_boxes_are_split_where_an_input_met_the_bound() -> None:
    box = Box(np.array([-1.0, -3.0]), np.array([1.0, 3.0]))
    lower, upper = _halves(box, np.array([0.0, 0.5]), RULE)
    assert (lower.high[1], upper.low[1]) == (0.5, 0.5)
    assert (lower.below, upper.above) == ((1,), (1,))
    lower, _ = _halves(Box(np.array([-3.0]), np.array([3.0])), np.array([2.99]), RULE)
    assert lower.high[0] < 2.9  # never at an end: a half would be the box again
    lower, _ = _halves(Box(np.array([0.0, -20.0]), np.zeros(2)), np.array([0.0, -9.0]), RULE)
    assert lower.high[1] > -3.0  # an exponential that hardly counts is cut off where it begins to
    flat = np.array([0.3, -2.0])
    assert _halves(Box(flat, flat), flat, RULE) == []


def test_a_wide_ball_is_closed_by_cases() -> None:
    """Logits that move by ten and more: chords over a mean of them would take thousands of boxes."""
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 8))
    module[2].weight.data *= 30.0
    module[2].bias.data = torch.tensor([60.0, 20.0, 15.0, 10.0, 5.0, 0.0, -5.0, -10.0])
    net = radii.load_classifier(module, input_shape=(6,))
    instance = Instance(np.full(6, 0.5, dtype=np.float32), 0)
    asked = radii.StrongClassification(0.5, on="probability")
    found = Native().reach(net, [instance], asked, LINF, 0.4, Budget(nodes=4000), tolerance=0.05)[0]
    assert found.status == "closed", found


def test_ten_classes_that_move_together_are_closed_soon() -> None:
    """One output falls and nine barely move: the chords over their differences alone would take many boxes."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
    module[2].weight.data[1:] *= 0.1
    net = radii.load_classifier(module, input_shape=(8,))
    instance = Instance(np.full(8, 0.5, dtype=np.float32), 0)
    found = Native().reach(net, [instance], Probability(0.5), LINF, 0.3, Budget(nodes=3000), tolerance=0.02)[0]
    assert found.status == "closed"


def test_the_largest_logit_of_the_ball_is_known() -> None:
    search = searched()
    points = np.random.default_rng(0).uniform([0.3, 0.5], [0.5, 0.7], (200, 2)).astype(np.float32)
    assert np.abs(search.classifier(points)).max() <= search._largest
