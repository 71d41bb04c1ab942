"""Every figure draws what the data say, also for few radii, absent ends and hostile names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filled import HOSTILE

from radii.errors import InputError
from radii.report import figures
from radii.report.distribution import Distribution
from radii.stats.classes import ks_matrix, nearest_targets
from radii.stats.correlation import correlations


def some(name: str, n: int = 60, shift: float = 0.0) -> Distribution:
    rng = np.random.default_rng(n + int(10 * shift))
    lower = rng.lognormal(-3.4 + shift, 0.5, n)
    upper = np.where(rng.random(n) < 0.1, np.nan, lower + 0.0015)
    seconds = rng.lognormal(0, 1, n)
    return Distribution.from_arrays(
        lower=lower,
        upper=upper,
        label=np.arange(n) % 10,
        correct=rng.random(n) > 0.05,
        ids=np.arange(n),
        cpu_seconds=seconds,
        name=name,
    )


@pytest.mark.parametrize("n", [1, 2, 60])
def test_figures_of_any_size_draw(n: int, tmp_path: Path) -> None:
    pair = [some(HOSTILE, n), some("b", n, 0.4)]
    drawn = [
        figures.robust_accuracy_curve(pair, confidence=0.95, reference=[0.02]),
        figures.ecdf(pair, among="all"),
        figures.instance_scatter(pair),
        figures.paired_scatter(*pair),
        figures.class_boxes(pair[0]),
        figures.split_boxes({"a": pair[0]}, {"b": pair[1]}),
        figures.time_cdf(pair),
        figures.histogram(pair),
        figures.trade_off(pair, 0.02),
        figures.guarantee_convergence(pair[0], 0.02),
    ]
    for axes in drawn:
        figure = axes.get_figure(root=True)
        assert figure is not None
        assert figures.save(figure, tmp_path / "one.png").stat().st_size > 1000


def test_the_curve_is_the_robust_accuracy() -> None:
    dist = some("net")
    line = figures.robust_accuracy_curve(dist).get_lines()[0]
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    assert np.array_equal(y, dist.robust_accuracy(x).proven)


def test_a_network_keeps_its_look() -> None:
    style = figures.looks(["a", "b", "c"])
    alone = figures.robust_accuracy_curve(some("b"), looks=style)
    assert alone.get_lines()[0].get_color() == style["b"].colour
    assert len(set(figures.looks(map(str, range(28))).values())) == 28


def test_what_cannot_be_drawn_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="at least three radii"):
        figures.lognormal_fit(some("one", 1))
    with pytest.raises(InputError, match="target: all"):
        figures.target_boxes(some("untargeted"))
    with pytest.raises(InputError, match="at least one distribution"):
        figures.ecdf([])


def one_to_one(classes: int, each: int) -> Distribution:
    rng = np.random.default_rng(classes)
    rows = [(a, b, f"{a}-{i}") for a in range(classes) for i in range(each) for b in range(classes) if a != b]
    label, target, ids = (list(column) for column in zip(*rows, strict=True))
    lower = rng.lognormal(-3.4, 0.4, len(rows))
    return Distribution.from_arrays(lower=lower, upper=lower * 1.05, label=label, target=target, ids=ids, name="pairs")


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_heat_maps_show_the_statistics(tmp_path: Path) -> None:
    dists = {name: some(name, 60, shift) for name, shift in (("a", 0.0), ("b", 0.4), (HOSTILE, 0.8))}
    found = correlations(dists)
    axes = figures.spearman_heat_map(found)
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert shown[0, 1] == shown[1, 0] == found[0].value
    assert texts(axes)[1] == f"{found[0].value:.2f}"
    matrix = ks_matrix(dists, dists, method="paper")
    axes = figures.ks_heat_map(matrix)
    assert np.array_equal(np.ma.filled(axes.images[0].get_array()), np.array(matrix.statistic, dtype=float))
    assert sum(text.endswith("*") for text in texts(axes)) == sum(map(sum, matrix.significant()))
    nearest = nearest_targets(one_to_one(4, 3))
    axes = figures.target_heat_map(nearest, class_names=("one", "two", "three", "<four>"))
    assert np.isnan(np.ma.filled(axes.images[0].get_array(), np.nan)).sum() == 4
    assert "0" not in texts(axes)
    figures.save(axes.get_figure(root=True), tmp_path / "map.pdf")


def test_43_classes_fit_on_a_page() -> None:
    pairs = one_to_one(43, 1)
    names = [f"a sign with quite a long name {k}" for k in range(43)]
    for axes in (figures.target_heat_map(nearest_targets(pairs), class_names=names), figures.target_boxes(pairs)):
        figure = axes.get_figure(root=True)
        figure.canvas.draw()
        assert max(figure.get_size_inches()) <= 11.0
        boxes = [tick.get_window_extent() for tick in axes.get_yticklabels()]
        assert all(box.x0 >= -1 for box in boxes)


def test_boxes_of_networks_gaps_and_two_splits() -> None:
    a, b = some("a"), some("b", 60, 0.4)
    gaps = figures.network_boxes([a, b], end="gap")
    assert gaps.get_ylabel() == "verification gap (ε)"
    medians = [line.get_ydata()[0] for line in gaps.get_lines() if line.get_linewidth() == 2]
    assert medians == pytest.approx([0.0015, 0.0015])
    both = figures.class_boxes(a, test=b.select(b.label < 9))
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["train", "test"]
    assert both.get_xticklabels()[9].get_text().endswith("+0)")
    with pytest.raises(InputError, match="end: expected one of"):
        figures.network_boxes(a, end="middle")


def test_absent_ends_are_drawn_as_absent() -> None:
    dist = Distribution.from_arrays(lower=[np.nan, 0.02, 0.03], upper=[0.05, np.nan, 0.04])
    lines = {line.get_marker(): line for line in figures.instance_scatter(dist).get_lines() if len(line.get_xdata())}
    assert lines["v"].get_ydata().tolist() == [0.05]
    assert lines["^"].get_ydata().tolist() == [0.02]
    assert lines["o"].get_ydata().tolist() == [0.03]


def test_times_of_both_clocks() -> None:
    dist = Distribution.from_arrays(lower=[0.1, 0.1], upper=[0.101, 0.2], cpu_seconds=[1, 2], wall_seconds=[10, 20])
    assert figures.time_cdf(dist, clock="wall").get_lines()[0].get_xdata()[0] == 10
    with pytest.raises(InputError, match="wall times, got none"):
        figures.time_cdf(Distribution.from_arrays(lower=[0.1], upper=[0.2]), clock="wall")
