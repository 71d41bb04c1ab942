"""Per class: recall, one-to-one, KS matrices, nearest targets, fairness and its coverage, cost-weighted risk."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from radii.errors import InputError
from radii.stats import Distribution
from radii.stats.classes import ks_matrix, nearest_targets, one_to_one, robust_recall
from radii.stats.fairness import disparity, gini, gini_range, normalised_gini, spread_range, worst_class
from radii.stats.risk import cost_matrix, cost_risk


def classes(seed: int = 0, n: int = 80, k: int = 4, slope: float = 0.3) -> Distribution:
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(k), n)
    truth = rng.lognormal(-3 + slope * label, 0.4)
    low = np.floor(truth / 0.002) * 0.002
    return Distribution.from_arrays(
        lower=low, upper=low + 0.002, label=label, correct=rng.random(n * k) < 0.9, ids=np.arange(n * k)
    )


def targeted() -> Distribution:
    """Two inputs of class 0 and one of class 1, towards every other of three classes."""
    return Distribution.from_arrays(
        lower=[0.1, 0.3, 0.2, 0.2, 0.05, 0.4],
        upper=[0.12, 0.32, 0.4, 0.3, 0.06, 0.5],
        label=[0, 0, 0, 0, 1, 1],
        target=[1, 2, 1, 2, 0, 2],
        ids=["a", "a", "b", "b", "c", "c"],
    )


def test_robust_recall_of_every_class() -> None:
    dist = classes()
    rows = robust_recall(dist, 0.05)
    assert [row.label for row in rows] == [0, 1, 2, 3]
    for row, part in zip(rows, dist.by_class().values()):
        assert (row.proven, row.not_broken) == part.robust_accuracy(0.05)
        assert row.low <= row.proven <= row.not_broken <= row.high


def test_one_to_one_splits_by_original_and_target() -> None:
    parts = one_to_one(targeted())
    assert sorted(parts) == [(0, 1), (0, 2), (1, 0), (1, 2)]
    with pytest.raises(InputError, match="target"):
        one_to_one(classes())


def test_the_ks_matrix_has_the_papers_layout() -> None:
    train = {str(k): part for k, part in classes(0).by_class().items()}
    test = {str(k): part for k, part in classes(1).by_class().items()}
    plain = ks_matrix(train, test, method="paper")
    below = stats.ks_2samp(train["2"].lower[train["2"].correct], train["1"].lower[train["1"].correct])
    above = stats.ks_2samp(test["1"].lower[test["1"].correct], test["2"].lower[test["2"].correct])
    across = stats.ks_2samp(train["3"].lower[train["3"].correct], test["3"].lower[test["3"].correct])
    assert plain.statistic[2][1] == pytest.approx(below.statistic)
    assert plain.statistic[1][2] == pytest.approx(above.statistic)
    assert plain.p_value[3][3] == pytest.approx(across.pvalue)
    sound = ks_matrix(train, test, permutations=999)
    assert sound.significant()[3][0]
    assert not sound.significant()[0][0]
    with pytest.raises(InputError, match="same names"):
        ks_matrix(train, {"0": test["0"]})


def test_a_class_without_correct_inputs_leaves_its_cells_empty() -> None:
    wrong = Distribution.from_arrays(lower=[0.1, 0.1], correct=[0, 0])
    right = Distribution.from_arrays(lower=[0.1, 0.2], upper=[0.2, 0.3])
    for method in ("paper", "permutation"):
        found = ks_matrix({"a": wrong, "b": right}, {"a": wrong, "b": right}, method=method, permutations=99)
        assert found.statistic[0] == (None, None)
        assert found.p_value[1][1] == 1.0


def test_nearest_targets_count_what_is_sure_and_what_is_possible() -> None:
    found = nearest_targets(targeted())
    assert found.labels == (0, 1)
    assert found.targets == (0, 1, 2)
    assert found.sure.tolist() == [[0, 1, 0], [1, 0, 0]]  # "a" is sure, "b" may be either
    assert found.possible.tolist() == [[0, 2, 1], [1, 0, 0]]
    assert found.inputs.tolist() == [2, 1]
    with pytest.raises(InputError, match="ids"):
        nearest_targets(classes())


def test_worst_class_disparity_and_gini_see_the_weak_class() -> None:
    dist = classes(n=200, slope=0.5)
    worst = worst_class(dist, [0.03, 0.06])
    assert worst.candidates == ((0,), (0,))
    assert np.all(worst.low <= worst.proven)
    assert np.all(worst.not_broken <= worst.high)
    gap = disparity(dist, 0.06)
    assert 0 < gap.low <= gap.lower <= gap.upper <= gap.high <= 1
    for of in ("area", "mean radius"):
        unequal = gini(dist, of)
        assert unequal.low <= unequal.lower <= unequal.upper <= unequal.high
        assert unequal.low > 0.1
        assert gini(classes(n=200, slope=0.0), of).upper < 0.1


def test_normalised_gini_has_its_properties() -> None:
    assert normalised_gini([1, 1, 1]) == 0
    assert normalised_gini([0, 0, 5]) == pytest.approx(1)
    assert normalised_gini([1, 2, 4]) == pytest.approx(normalised_gini([10, 40, 20]))
    assert normalised_gini([0, 0]) == 0


@pytest.mark.parametrize("seed", range(30))
def test_the_range_of_the_gini_over_a_box_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    low = rng.random(k)
    high = low + rng.random(k) * 0.5
    least, greatest = gini_range(low, high)
    corners = [normalised_gini(corner) for corner in product(*zip(low, high))]
    assert greatest == pytest.approx(max(corners))
    inside = [normalised_gini(rng.uniform(low, high)) for _ in range(2000)]
    assert least <= min(inside) + 1e-12
    assert max(inside) <= greatest + 1e-12
    floor = [normalised_gini(np.clip(c, low, high)) for c in np.linspace(low.min(), high.max(), 2001)]
    assert least == pytest.approx(min(floor), abs=1e-3)


def test_the_spread_over_a_box() -> None:
    assert spread_range(np.array([0.1, 0.5]), np.array([0.2, 0.6])) == pytest.approx((0.3, 0.5))
    assert spread_range(np.array([0.1, 0.15]), np.array([0.3, 0.4])) == pytest.approx((0.0, 0.3))


@pytest.mark.parametrize("n", [20, 100])
def test_fairness_intervals_cover(n: int) -> None:
    """Truth from the model: areas and recalls of log-normal classes of which nine tenths are classified correctly."""
    rng = np.random.default_rng(n)
    k, runs, cap, eps = 5, 200, 0.2, 0.05
    location = -3 + 0.25 * np.arange(k)
    grid = np.linspace(0, cap, 4001)
    curve = 0.9 * stats.norm.sf((np.log(np.maximum(grid, 1e-12))[None, :] - location[:, None]) / 0.5)
    true_gini = normalised_gini(curve.mean(axis=1))
    recall = 0.9 * stats.norm.sf((np.log(eps) - location) / 0.5)
    true_gap = recall.max() - recall.min()
    hits = np.zeros(3)
    for _ in range(runs):
        label = np.repeat(np.arange(k), n)
        truth = rng.lognormal(location[label], 0.5)
        low = np.floor(truth / 0.002) * 0.002
        dist = Distribution.from_arrays(
            lower=low, upper=low + 0.002, label=label, correct=rng.random(n * k) < 0.9, ids=np.arange(n * k)
        )
        for m, measure in enumerate(
            (gini(dist, limit=cap), gini(dist, limit=cap, method="bernstein"), disparity(dist, eps))
        ):
            hits[m] += measure.low <= (true_gap if m == 2 else true_gini) <= measure.high
    assert np.all(hits >= 0.945 * runs)


def test_one_class_is_not_enough_for_fairness() -> None:
    alone = Distribution.from_arrays(lower=[0.1, 0.2], label=[3, 3])
    for measure in (lambda: gini(alone), lambda: disparity(alone, 0.1)):
        with pytest.raises(InputError, match="two classes"):
            measure()


def test_cost_weighted_risk_takes_the_dearest_reachable_class() -> None:
    costs = [[0, 1, 10], [5, 0, 2], [1, 1, 0]]
    risk = cost_risk(targeted(), costs, 0.35)
    # a: class 1 broken (1), class 2 broken (10). b: class 2 broken (10), class 1 open. c: class 0 broken (5)
    assert (risk.lower, risk.upper) == pytest.approx(((10 + 10 + 5) / 3, (10 + 10 + 5) / 3))
    early = cost_risk(targeted(), costs, 0.25)
    # a: 1. b: both open (0 to 10). c: 5
    assert (early.lower, early.upper) == pytest.approx((6 / 3, 16 / 3))
    assert early.low <= early.lower <= early.upper <= early.high
    assert cost_risk(targeted(), costs, 0.01).upper == 0


def test_untargeted_radii_bound_the_cost_by_the_cheapest_and_dearest_class() -> None:
    dist = Distribution.from_arrays(lower=[0.1, 0.1, 0.3], upper=[0.2, 0.2, 0.4], label=[0, 1, 0], correct=[1, 0, 1])
    risk = cost_risk(dist, [[0, 1, 10], [5, 0, 2], [1, 1, 0]], 0.25)
    assert (risk.lower, risk.upper) == pytest.approx(((1 + 2) / 3, (10 + 5) / 3))
    assert risk.per_class[1] == (2.0, 5.0)


@pytest.mark.parametrize("costs", [[[0, 1]], [[1, 0], [0, 0]], [[0, -1], [1, 0]], [[0, np.nan], [1, 0]], 3])
def test_bad_cost_matrices_are_refused(costs: object) -> None:
    with pytest.raises(InputError, match="square matrix"):
        cost_matrix(costs)


def test_costs_must_cover_every_class() -> None:
    with pytest.raises(InputError, match="below 2"):
        cost_risk(targeted(), [[0, 1], [1, 0]], 0.1)
