"""The tables of `radii stats classes`: robust recall, fairness, one-to-one radii, KS matrices, cost-weighted risk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from radii._check import number
from radii._files import read_bytes
from radii.errors import InputError
from radii.report.content import Content, Series
from radii.report.tables import Table
from radii.stats import Distribution
from radii.stats.classes import ks_matrix, nearest_targets, one_to_one, robust_recall
from radii.stats.fairness import disparity, gini, worst_class
from radii.stats.risk import cost_risk


def classes(content: Content, eps: float, confidence: float, costs: Path | None = None) -> Iterator[Table]:
    """Every table per class; what needs single targets or two splits is there where the results have them."""
    labelled = [one for one in content.series if np.unique(one.dist.label[one.dist.label >= 0]).size > 1]
    if not labelled:
        raise InputError("radii stats classes: expected inputs of two classes or more, got one or none")
    yield _recall(labelled, eps, confidence)
    yield _fairness(labelled, eps, confidence)
    for one in labelled:
        if one.pairs is not None:
            yield _one_to_one(one.name, one.pairs)
            yield _nearest(one.name, one.pairs)
    yield from _matrices(labelled)
    if costs is not None:
        yield _risk(labelled, costs, eps, confidence)


def _recall(series: list[Series], eps: float, confidence: float) -> Table:
    rows = []
    for one in series:
        found = robust_recall(one.dist, eps, confidence)
        rows += [(one.name, r.label, r.n, r.proven, r.not_broken, r.low, r.high) for r in found]
    note = f"At ε = {eps:g}; limits for unseen inputs hold for all classes of a network together ({confidence:g})."
    heads = ("network", "class", "inputs", "proven", "not broken", "unseen from", "to")
    return Table("Robust recall", heads, tuple(rows), note)


def _fairness(series: list[Series], eps: float, confidence: float) -> Table:
    rows: list[tuple[Any, ...]] = []
    for one in series:
        worst = worst_class(one.dist, eps, confidence)
        ends = (worst.proven, worst.not_broken, worst.low, worst.high)
        who = ", ".join(map(str, worst.candidates[0]))
        rows.append((one.name, f"recall of the worst class ({who})", *(float(end[0]) for end in ends)))
        measures = [disparity(one.dist, eps, confidence), gini(one.dist, "area", confidence=confidence)]
        if all(part.correct.any() for part in one.dist.by_class().values()):
            measures.append(gini(one.dist, "mean radius", confidence=confidence))
        rows += [(one.name, m.name, m.lower, m.upper, m.low, m.high) for m in measures]
    heads = ("network", "measure", "sample from", "to", "unseen from", "to (unseen)")
    return Table("Fairness", heads, tuple(rows), f"At ε = {eps:g}; definitions and failure modes: docs/fairness.md.")


def _one_to_one(name: str, pairs: Distribution) -> Table:
    rows = []
    for (label, target), part in one_to_one(pairs).items():
        found = part.summary()
        rows.append((label, target, found.n, found.lowest, found.mean_lower, found.mean_upper))
    heads = ("class", "target", "inputs", "lowest", "mean lower", "mean upper")
    return Table(f"{name}: one-to-one radii", heads, tuple(rows), "Correctly classified inputs with a known end.")


def _nearest(name: str, pairs: Distribution) -> Table:
    found = nearest_targets(pairs)
    rows = []
    for i, label in enumerate(found.labels):
        for j, target in enumerate(found.targets):
            if found.possible[i, j]:
                rows.append((label, target, int(found.sure[i, j]), int(found.possible[i, j]), int(found.inputs[i])))
    heads = ("class", "target", "surely nearest", "possibly nearest", "of inputs")
    return Table(f"{name}: confusion of nearest targets", heads, tuple(rows), "Gaps leave some targets possible.")


def _matrices(series: list[Series]) -> Iterator[Table]:
    """The KS matrix of every network that was measured on train and test."""
    sides: dict[str, dict[str, Any]] = {}
    for one in series:
        sides.setdefault(str(one.question["classifier"]), {}).setdefault(str(one.question.get("split")), one.dist)
    for name, splits in sides.items():
        if not {"train", "test"} <= set(splits):
            continue
        train, test = ({str(k): part for k, part in splits[side].by_class().items()} for side in ("train", "test"))
        both = [key for key in train if key in test]
        found = ks_matrix({key: train[key] for key in both}, {key: test[key] for key in both})
        rows = tuple(
            (label, *(None if d is None else f"{d:.3f}{'*' if p is not None and p <= 0.05 else ''}" for d, p in cells))
            for label, cells in zip(
                found.names, (zip(d, p, strict=True) for d, p in zip(found.statistic, found.p_value, strict=True))
            )
        )
        note = (
            "Train below the diagonal, test above it, train against test on it; * p ≤ 0.05 after Holm, gaps respected."
        )
        yield Table(f"{name}: KS statistics between classes", ("class", *found.names), rows, note)


def _risk(series: list[Series], path: Path, eps: float, confidence: float) -> Table:
    costs = read_costs(path)
    rows = []
    for one in series:
        found = cost_risk(one.pairs if one.pairs is not None else one.dist, costs, eps, confidence)
        rows.append((one.name, found.lower, found.upper, found.low, found.high))
    note = f"Mean cost of the dearest class within ε = {eps:g}; {confidence:g} confidence for unseen inputs."
    return Table(
        "Cost-weighted risk", ("network", "sample from", "to", "unseen from", "to (unseen)"), tuple(rows), note
    )


def read_costs(path: Path) -> list[list[float]]:
    """A matrix of costs from a text file: one line per true class, numbers with commas."""

    def fail(message: str) -> InputError:
        return InputError(f"--costs: {path}: {message}")

    kind = "a text file with one line of numbers per class"
    try:
        text = read_bytes(path, kind, fail, 2**24).decode("utf-8")
    except UnicodeDecodeError:
        raise fail(f"expected {kind}, got bytes that are not text") from None
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [[number(cell.strip(), "--costs", low=0.0) for cell in line.split(",")] for line in lines]
    if len({len(row) for row in rows}) != 1:
        raise InputError(f"--costs: expected as many numbers on every line as there are classes, got {path}")
    return rows
