"""Every figure draws what the data say, also for few radii, absent ends and hostile names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from filled import HOSTILE

from radii.errors import InputError
from radii.report import figures
from radii.report.distribution import Distribution


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
