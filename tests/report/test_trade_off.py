"""Accuracy against global robustness: a panel for each measure, boxes of both for every hyper-parameter."""

from __future__ import annotations

from typing import Any

from radii.report.trade_off import trade_off


def network(width: int, rate: float, robust: float) -> dict[str, Any]:
    ends = {"proven": robust, "not_broken": robust, "robust_low": robust - 0.1, "robust_high": robust + 0.1}
    change = {"witnessed": 1 - robust, "bound": 1 - robust, "change_low": 0.9 - robust, "change_high": 1.1 - robust}
    return {"width": width, "rate": rate, "accuracy": 1 - robust / 2, **ends, **change}


def test_every_key_has_boxes_of_both_measures() -> None:
    rows = [network(w, r, 0.2 + w / 100 + r) for w in (10, 20, 30) for r in (0.1, 0.2)]
    figure = trade_off(rows, ["width", "rate"])
    drawn = [(axes.get_xlabel(), axes.get_ylabel().split(":")[0]) for axes in figure.axes if axes.axison]
    first = [("accuracy on the test set", "R(g)"), ("accuracy on the test set", "D(ḡ)")]
    assert drawn == [*first, ("width", "R(g)"), ("rate", "R(g)"), ("width", "D(ḡ)"), ("rate", "D(ḡ)")]
    widths = figure.axes[4]  # three boxes whose medians fall, as robustness rises
    medians = [line.get_ydata()[0] for line in widths.lines if line.get_color() == "C1"]
    assert len(medians) == 3
    assert medians == sorted(medians, reverse=True)


def test_one_key_leaves_no_empty_frame() -> None:
    figure = trade_off([network(w, 0.1, w / 100) for w in (10, 20, 30, 40)], ["width"])
    assert sum(axes.axison for axes in figure.axes) == 4
