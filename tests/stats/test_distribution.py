"""Distribution: both definitions, envelopes, absent ends, and every bad input in one clear line."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radii.errors import InputError
from radii.stats import Distribution
from radii.stats.quality import Quality

LOWER = [0.01, 0.03, math.nan, 0.05, math.nan, 0.2]
UPPER = [0.012, 0.06, 0.02, math.nan, math.nan, 0.3]
CORRECT = [1, 1, 1, 1, 1, 0]
LABEL = [0, 0, 1, 1, 2, 2]


@pytest.fixture
def dist() -> Distribution:
    return Distribution.from_arrays(lower=LOWER, upper=UPPER, label=LABEL, correct=CORRECT)


def test_robust_accuracy_is_the_interval_of_proven_and_not_broken(dist: Distribution) -> None:
    assert dist.robust_accuracy(0.03) == pytest.approx((2 / 6, 3 / 6))  # proven: rows 1, 3; open: row 4
    assert dist.robust_accuracy(0.03, among="correct") == pytest.approx((2 / 5, 3 / 5))
    low, high = dist.robust_accuracy([0.0, 0.02, 1.0])
    assert low == pytest.approx([5 / 6, 2 / 6, 0])
    assert high == pytest.approx([5 / 6, 3 / 6, 2 / 6])
    assert dist.robust_accuracy("8/255").low == dist.robust_accuracy(8 / 255).proven


def test_a_misclassified_input_has_radius_zero_whatever_its_ends_say(dist: Distribution) -> None:
    assert dist.robust_accuracy(0.1).proven == 0.0  # the last row claims 0.2 but is misclassified
    assert dist.status.tolist() == ["closed", "open", "open", "robust", "unsolved", "misclassified"]


def test_exact_radii_never_cross_the_envelopes() -> None:
    radii = np.round(np.linspace(0.01, 0.1, 10), 3)
    low, high = Distribution.from_arrays(lower=radii, upper=radii).robust_accuracy(radii)
    assert low == pytest.approx(high)
    assert low == pytest.approx(np.linspace(1, 0.1, 10))


def test_the_envelopes_bracket_the_truth_at_every_epsilon() -> None:
    rng = np.random.default_rng(0)
    truth = rng.lognormal(-3, 0.6, 400)
    lower = truth * rng.uniform(0.3, 1, 400)
    upper = truth * rng.uniform(1, 2, 400)
    lower[rng.random(400) < 0.2] = np.nan
    upper[rng.random(400) < 0.2] = np.nan
    eps = np.linspace(0, 0.5, 101)
    low, high = Distribution.from_arrays(lower=lower, upper=upper).robust_accuracy(eps)
    exact = np.mean(truth[:, None] > eps, axis=0)
    assert np.all(low <= exact)
    assert np.all(exact <= high)
    assert np.all(np.diff(low) <= 0)
    assert np.all(np.diff(high) <= 0)


def test_summary_gives_the_papers_quality_measures(dist: Distribution) -> None:
    summary = dist.summary()
    assert (summary.n, summary.correct, summary.closed, summary.open) == (6, 5, 1, 2)
    assert (summary.robust, summary.unsolved, summary.misclassified) == (1, 1, 1)
    assert summary.critical_share == pytest.approx(0.4)
    assert summary.mean_gap == pytest.approx((0.002 + 0.03) / 2)
    assert summary.lowest == 0.01
    assert summary.mean_lower == pytest.approx(0.03)
    assert summary.cpu_seconds is None
    assert ("cpu seconds", "-") in summary.table()


def test_quantiles_carry_intervals_and_absent_ends_stay_absent(dist: Distribution) -> None:
    median = dist.quantile(0.5)
    assert (median.lower, median.upper) == (0.0, 0.02)
    assert dist.quantile(0.95).upper is None
    assert dist.mean().upper is None
    assert dist.mean().lower == pytest.approx((0.01 + 0.03 + 0.05) / 6)


def test_by_class_and_by_target_split_the_rows(dist: Distribution) -> None:
    parts = dist.by_class()
    assert {key: len(part) for key, part in parts.items()} == {0: 2, 1: 2, 2: 2}
    one = Distribution.from_arrays(lower=LOWER, upper=UPPER, label=[9] * 6, target=[1, 2, 1, 2, 3, 3])
    assert sorted(one.by_target()) == [1, 2, 3]
    with pytest.raises(InputError, match="one row per input"):
        one.guarantee()


def test_to_frame_keeps_every_row_and_absent_ends(dist: Distribution) -> None:
    frame = dist.to_frame()
    assert len(frame) == 6
    assert frame["upper"].isna().sum() == 2


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"lower": []}, "at least one instance"),
        ({"lower": [0.1], "upper": [0.05]}, "contradict"),
        ({"lower": [-0.1]}, "at least 0"),
        ({"lower": [math.inf]}, "finite radius"),
        ({"lower": [[0.1]]}, "shape"),
        ({"lower": ["a"]}, "numbers"),
        ({"lower": [0.1, 0.2], "upper": [0.3]}, "expected 2 values"),
        ({"lower": [0.1], "correct": [2]}, "true or false"),
        ({"lower": [0.1], "label": [0.5]}, "whole numbers"),
        ({"lower": [0.1], "label": [math.nan]}, "row 0"),
        ({"lower": [0.1], "status": ["done"]}, "closed"),
        ({"lower": [0.1], "ids": ["a", "b"]}, "ids"),
        ({"lower": [0.1], "colour": "red"}, "colour"),
    ],
)
def test_bad_arrays_are_refused_in_one_line(arrays: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Distribution.from_arrays(**arrays)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("eps", [-0.1, math.nan, math.inf, "wide", [0.1, -1]])
def test_bad_epsilons_are_refused(dist: Distribution, eps: object) -> None:
    with pytest.raises(InputError, match="epsilon"):
        dist.robust_accuracy(eps)


def test_without_labels_or_correct_inputs_the_error_says_what_to_do() -> None:
    wrong = Distribution.from_arrays(lower=[math.nan] * 3, correct=[0, 0, 0])
    assert wrong.robust_accuracy(0.0) == (0.0, 0.0)
    with pytest.raises(InputError, match="use among='all'"):
        wrong.robust_accuracy(0.1, among="correct")
    with pytest.raises(InputError, match="label"):
        wrong.by_class()
    with pytest.raises(InputError, match="expected one of all, correct"):
        wrong.robust_accuracy(0.1, among="right")


DEGENERATE = {
    "all open": {"lower": [math.nan] * 4, "upper": [math.nan] * 4},
    "all misclassified": {"lower": [math.nan] * 4, "correct": [0] * 4},
    "one instance": {"lower": [0.1], "upper": [0.2]},
    "identical radii": {"lower": [0.1] * 5, "upper": [0.1] * 5},
    "infinite upper ends": {"lower": [0.1] * 5, "upper": [math.inf] * 5},
}


def numbers(result: object) -> list[float]:
    """Every number inside a result."""
    if isinstance(result, Quality):
        return [float(v) for v in result.as_dict().values() if v is not None]
    return np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in result]).tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(DEGENERATE))
def test_degenerate_data_never_give_nan(name: str) -> None:
    dist = Distribution.from_arrays(**DEGENERATE[name])  # type: ignore[arg-type]
    median = dist.quantile(0.5)
    results = [
        dist.summary(),
        dist.robust_accuracy([0.0, 0.1, 0.2]),
        dist.guarantee().at([0.0, 0.1]),
        dist.guarantee().curve(),
        dist.turnbull().at([0.0, 0.1]),
        [v for v in (median.lower, median.upper, median.low, median.high) if v is not None],
    ]
    for result in results:
        assert np.all(np.isfinite(numbers(result))), (name, result)
