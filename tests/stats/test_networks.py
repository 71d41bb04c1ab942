"""Several networks: comparison, crossings, ranking, correlations, consistency, cost and portfolios."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from radii.errors import InputError
from radii.stats import Distribution
from radii.stats._arrays import radius_ends
from radii.stats.correlation import consistency, correlations
from radii.stats.cost import cactus, contributions, par
from radii.stats.curves import crossings, dominance, stretches
from radii.stats.jair_tests import (
    lognormal_ks,
    lower_against_upper,
    sample_size_effect,
    spearman,
    welch,
)
from radii.stats.networks import pairwise_tests, ranking


def network(name: str, location: float, seed: int, n: int = 150, spread: float = 0.4) -> Distribution:
    base = np.random.default_rng(0).normal(0, 0.3, n)
    rng = np.random.default_rng(seed)
    low = np.floor(np.exp(location + base + rng.normal(0, spread, n)) / 0.002) * 0.002
    return Distribution.from_arrays(
        lower=low, upper=low + 0.002, correct=rng.random(n) < 0.95, ids=[f"i{k}" for k in range(n)], name=name
    )


NETS = {name: network(name, loc, k + 10) for k, (name, loc) in enumerate([("a", -3.0), ("b", -3.0), ("c", -2.2)])}


def test_the_papers_example_crosses_between_its_two_epsilons() -> None:
    """net leads at 0.012 (100 % against 93 %), relu_4_1024 at 0.04 (66 % against 49 %)."""
    net = radius_ends(np.concatenate([np.full(51, 0.02), np.full(49, 0.05)]))
    relu = radius_ends(np.concatenate([np.full(7, 0.005), np.full(27, 0.03), np.full(66, 0.09)]))
    (cross,) = crossings(stretches(net, relu))
    assert (cross.leader_before, cross.leader_after) == ("a", "b")
    assert 0.012 < cross.before < cross.after < 0.04
    assert dominance(net, relu).sample == "no"


def test_dominance_in_the_sample_and_behind_gaps() -> None:
    low, high = radius_ends([0.1, 0.2, 0.3]), radius_ends([0.2, 0.3, 0.4])
    assert dominance(high, low).sample == "yes"
    assert dominance(low, high).sample == "no"
    assert dominance(radius_ends([0.1] * 3, [0.5] * 3), low).sample == "gaps hide it"
    strong, weak = radius_ends(np.full(300, 0.3)), radius_ends(np.full(300, 0.1))
    assert dominance(weak, strong).unseen == "refuted"
    assert dominance(strong, weak).unseen.startswith("not refuted")


def test_compare_pairs_by_ids_and_says_what_may_be_said() -> None:
    found = NETS["c"].compare(NETS["a"], permutations=999)
    assert found.paired
    assert found.test.decision() == "different"
    assert found.cliffs_delta.low > 0
    assert found.area_difference.low > 0
    assert "the radii differ" in found.statement()
    assert NETS["a"].compare(NETS["b"], paired=False, permutations=999, among="correct").n[0] < 150


def test_compare_uses_only_shared_inputs() -> None:
    part = NETS["a"].select(np.arange(40))
    assert part.compare(NETS["b"], permutations=99).n == (40, 40)
    other = Distribution.from_arrays(lower=[0.1], ids=["elsewhere"])
    with pytest.raises(InputError, match="none in common"):
        part.compare(other)
    with pytest.raises(InputError, match="ids"):
        part.compare(Distribution.from_arrays(lower=[0.1]), paired=True)
    twice = Distribution.from_arrays(lower=[0.1, 0.2], ids=["i0", "i0"])
    with pytest.raises(InputError, match="repeated ids"):
        part.compare(twice)


@pytest.mark.parametrize("kind", ["paired", "two-sample"])
def test_pairwise_tests_find_the_better_network_after_holm(kind: str) -> None:
    found = {(row.a, row.b): row for row in pairwise_tests(NETS, kind, permutations=999)}
    assert found["a", "b"].holm_p_high > 0.05
    assert found["a", "c"].holm_p_high <= 0.05
    assert found["b", "c"].holm_p_high <= 0.05
    assert all(row.holm_p_value >= row.test.p_value for row in found.values())
    with pytest.raises(InputError, match="two networks"):
        pairwise_tests({"a": NETS["a"]})


def test_ranking_gives_the_ranks_that_remain_possible() -> None:
    rows = {row.name: row for row in ranking(NETS)}
    assert (rows["c"].best_rank, rows["c"].worst_rank) == (1, 1)
    assert (rows["a"].best_rank, rows["a"].worst_rank) == (2, 3)
    for row in rows.values():
        assert row.low <= row.area[0] <= row.area[1] <= row.high


@pytest.mark.parametrize("n", [20, 100])
def test_ranking_rarely_puts_an_equal_network_behind_and_its_areas_cover(n: int) -> None:
    runs, cap, wrong, hits = 300, 0.3, 0, 0
    eps = np.linspace(0, cap, 5001)
    truth = 0.95 * stats.norm.sf((np.log(np.maximum(eps, 1e-12)) + 3) / 0.5).mean()
    rng = np.random.default_rng(n)
    for _ in range(runs):
        pair = {}
        for name in "ab":
            low = np.floor(rng.lognormal(-3, 0.5, n) / 0.002) * 0.002
            right = rng.random(n) < 0.95
            pair[name] = Distribution.from_arrays(lower=low, upper=low + 0.002, correct=right, ids=range(n))
        rows = ranking(pair, limit=cap)
        wrong += any(row.best_rank == row.worst_rank for row in rows)
        hits += rows[0].low <= truth <= rows[0].high and rows[1].low <= truth <= rows[1].high
    assert wrong <= 0.06 * runs
    assert hits >= 0.945**2 * runs


def test_correlations_match_scipy_and_their_intervals_cover() -> None:
    a, b = NETS["a"], NETS["b"]
    first = correlations(NETS)[0]
    both = a.correct & b.correct
    assert first.lower_ends == pytest.approx(stats.spearmanr(a.lower[both], b.lower[both]).statistic)
    assert first.n == both.sum()
    rng = np.random.default_rng(0)
    rho, hits = 0.6, 0
    truth = 6 / np.pi * np.arcsin(rho / 2)
    for _ in range(200):
        z = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], 60)
        pair = {
            str(k): Distribution.from_arrays(lower=np.exp(z[:, k]), upper=np.exp(z[:, k]), ids=range(60))
            for k in (0, 1)
        }
        (found,) = correlations(pair)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert hits >= 0.945 * 200


def test_constant_radii_have_no_correlation_and_say_why() -> None:
    flat = Distribution.from_arrays(lower=[0.1] * 5, upper=[0.1] * 5, ids=range(5))
    (found,) = correlations({"a": flat, "b": flat})
    assert found.value is None
    assert "constant" in found.reason


def test_consistency_names_the_inputs_that_networks_agree_on() -> None:
    radii = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.4, 0.3, 0.2]])
    nets = {str(k): Distribution.from_arrays(lower=r, upper=r, ids=["p", "q", "r", "s"]) for k, r in enumerate(radii)}
    alike, unlike = consistency(nets, 2)
    assert [one.id for one in alike] == ["p", "r"]
    assert {one.id for one in unlike} == {"q", "s"}


def test_the_papers_tests_are_plain_labelled_and_invalid_where_it_says_so() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.lognormal(-3, 0.5, 80), rng.lognormal(-2.5, 0.5, 90)
    assert lognormal_ks(x).verdict() == "passed"
    assert lognormal_ks(x).label == "as in the paper"
    assert lognormal_ks([0.0, 0.1, 0.2]).verdict() == "invalid"
    assert "0" in lognormal_ks([0.0, 0.1, 0.2]).reason
    assert lognormal_ks([0.1] * 5).verdict() == "invalid"
    assert lognormal_ks([]).verdict() == "invalid"
    assert welch(x, y).p_value == pytest.approx(stats.ttest_ind(x, y, equal_var=False).pvalue)
    assert welch([0.1, 0.1], [0.2, 0.2]).verdict() == "invalid"
    assert spearman([0.1, np.nan, 0.3, 0.4, 0.2], [0.1, 0.5, 0.4, 0.3, 0.2]).n == (4,)
    assert spearman([0.1] * 4, [0.2] * 4).verdict() == "invalid"
    assert lower_against_upper(x, x + 0.002).ks_test.verdict() == "passed"
    effect = sample_size_effect(x, y)
    assert effect is not None
    assert effect.mean[0] == pytest.approx(x.mean())
    assert sample_size_effect([], y) is None


def test_cactus_par_and_portfolio() -> None:
    fast, slow = [1.0, 2.0, np.nan, 9.0], [5.0, 6.0, 3.0, np.inf]
    plot = cactus(fast)
    assert plot.seconds.tolist() == [1.0, 2.0, 9.0]
    assert plot.total.tolist() == [1.0, 3.0, 12.0]
    assert plot.share(2.0) == 0.5
    assert par(fast, timeout=8) == pytest.approx((1 + 2 + 16 + 16) / 4)
    assert par(fast, [1, 0, 0, 1], timeout=10, factor=10) == pytest.approx((1 + 100 + 100 + 9) / 4)
    rows = {row.name: row for row in contributions({"fast": fast, "slow": slow}, timeout=10)}
    assert (rows["fast"].marginal, rows["slow"].marginal) == (1, 1)
    assert rows["fast"].shapley + rows["slow"].shapley == pytest.approx(4)
    assert rows["slow"].par_loss == pytest.approx((20 - 3) / 4)
    with pytest.raises(InputError, match="same instances"):
        contributions({"a": [1.0], "b": [1.0, 2.0]}, timeout=10)
    with pytest.raises(InputError, match="seconds"):
        cactus([-1.0])
