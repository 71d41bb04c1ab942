"""Awkward data through every function: an answer without NaN, or one clear line that says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from radii.errors import InputError
from radii.stats import Distribution
from radii.stats.classes import ks_matrix, robust_recall
from radii.stats.correlation import consistency, correlations
from radii.stats.fairness import disparity, gini, worst_class
from radii.stats.goodness_of_fit import goodness
from radii.stats.jair_tests import ks_two_sample, lognormal_ks, lower_against_upper, welch
from radii.stats.networks import pairwise_tests, ranking
from radii.stats.risk import cost_risk

NAN = math.nan
AWKWARD: dict[str, dict[str, Any]] = {
    "all open": {"lower": [NAN] * 6, "upper": [NAN] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "all misclassified": {"lower": [NAN] * 6, "correct": [0] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "one instance": {"lower": [0.1], "upper": [0.2], "label": [0]},
    "identical radii": {"lower": [0.1] * 6, "upper": [0.1] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "identical intervals": {"lower": [0.1] * 6, "upper": [0.12] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "infinite upper ends": {"lower": [0.1, 0.2] * 3, "upper": [math.inf] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "radii of zero": {"lower": [0.0] * 6, "upper": [0.0] * 6, "label": [0, 0, 0, 1, 1, 1]},
    "one correct input": {"lower": [0.1] * 6, "upper": [0.2] * 6, "correct": [1] + [0] * 5, "label": [0] * 3 + [1] * 3},
    "classes of one": {"lower": [0.1, 0.2], "upper": [0.2, 0.3], "label": [0, 1]},
}
COSTS = [[0, 1], [2, 0]]

CALLS: dict[str, Callable[[Distribution], Any]] = {
    "summary": lambda d: d.summary(),
    "robust accuracy": lambda d: [d.robust_accuracy(e, a) for e in (0, 0.1) for a in ("all", "correct")],
    "guarantee": lambda d: [d.guarantee().at([0, 0.1]), d.guarantee().at_one(0.1), d.guarantee().curve()],
    "class guarantees": lambda d: [g.at(0.1) for g in d.class_guarantees().values()],
    "quantile": lambda d: [d.quantile(q) for q in (0, 0.5, 1)],
    "mean": lambda d: d.mean(),
    "turnbull": lambda d: d.turnbull().at([0, 0.1, 0.3]),
    "goodness": lambda d: goodness(d.ends("correct"), replicates=19),
    "compare with itself": lambda d: d.compare(d, permutations=99),
    "compare unpaired": lambda d: d.compare(d, permutations=99, paired=False),
    "pairwise tests": lambda d: pairwise_tests({"a": d, "b": d}, permutations=99),
    "ranking": lambda d: ranking({"a": d, "b": d}),
    "correlations": lambda d: correlations({"a": d, "b": d}),
    "consistency": lambda d: consistency({"a": d, "b": d}),
    "recall": lambda d: robust_recall(d, 0.1),
    "worst class": lambda d: worst_class(d, [0, 0.1]),
    "disparity": lambda d: disparity(d, 0.1),
    "gini of area": lambda d: gini(d),
    "gini of mean radius": lambda d: gini(d, "mean radius"),
    "guaranteed gini": lambda d: gini(d, method="bernstein"),
    "risk": lambda d: cost_risk(d, COSTS, 0.15),
    "ks matrix": lambda d: [ks_matrix({"a": d}, {"a": d}, m, permutations=99) for m in ("paper", "permutation")],
    "paper's tests": lambda d: [
        lognormal_ks(d.lower),
        ks_two_sample(d.lower, d.lower),
        welch(d.lower, d.lower),
        lower_against_upper(d.lower, d.upper),
    ],
}


def numbers(result: Any) -> Iterator[float]:
    """Every number anywhere inside a result."""
    if is_dataclass(result) and not isinstance(result, type):
        for field in fields(result):
            yield from numbers(getattr(result, field.name))
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from numbers(value)
    elif isinstance(result, np.ndarray):
        yield from np.ravel(result).astype(float).tolist()
    elif isinstance(result, (list, tuple)):
        for value in result:
            yield from numbers(value)
    elif isinstance(result, (int, float, np.number)):
        yield float(result)


@pytest.mark.parametrize("call", sorted(CALLS))
@pytest.mark.parametrize("data", sorted(AWKWARD))
def test_awkward_data_give_an_answer_or_one_clear_line(data: str, call: str) -> None:
    arrays = AWKWARD[data]
    dist = Distribution.from_arrays(**arrays, ids=range(len(arrays["lower"])), name=data)
    refusal = ""
    result = None
    try:
        result = CALLS[call](dist)
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert "expected" in refusal
        assert "\n" not in refusal
    found = list(numbers(result))
    assert not any(math.isnan(value) for value in found), result
    if not data.startswith("infinite"):
        assert all(math.isfinite(value) for value in found), result
