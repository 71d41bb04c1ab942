"""Gate on reaches: whether enough unseen inputs stay within γ, or the mean reach does, with a stated confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import number
from radii.errors import InputError
from radii.stats.reaches import ReachDistribution
from radii.store import Selection, Store, reaches_frame
from radii.store.frame import ends_in_order
from radii.store.reach_rows import REACH_QUESTION, reach_columns, reach_groups
from radii.study.gate import group_of, unfinished


@dataclass(frozen=True)
class ReachDemand:
    """At least `share` of unseen inputs on the good side of `gamma`; without a share, the mean reach."""

    gamma: float
    share: float | None = None

    @staticmethod
    def of(text: str) -> ReachDemand:
        """A demand from text such as "0.95@0.1": SHARE@GAMMA."""
        share, sign, gamma = text.partition("@")
        if not sign:
            raise InputError(f"--reach: expected SHARE@GAMMA such as 0.95@0.1, got {text!r}")
        return ReachDemand(number(gamma, "--reach gamma"), number(share, "--reach share", low=0.0, high=1.0))


@dataclass(frozen=True)
class ReachJudgement:
    """One group of reaches against one demand."""

    group: str
    demand: ReachDemand
    proven: float
    limit: float
    n: int
    missing: int
    sentence: str
    least: bool

    @property
    def passed(self) -> bool:
        """Whether the limit for unseen inputs meets the demand."""
        if self.demand.share is not None:
            return self.limit >= self.demand.share
        return self.limit >= self.demand.gamma if self.least else self.limit <= self.demand.gamma

    @property
    def reason(self) -> str:
        """One line: what was asked and what is guaranteed."""
        short = f"; {self.missing} planned inputs are not finished and count as not proven" if self.missing else ""
        sign, gamma = ("≥" if self.least else "≤"), self.demand.gamma
        if self.demand.share is not None:
            return (
                f"{self.group}: {self.proven:.1%} of {self.n} inputs are proven to stay {sign} {gamma:g}, which "
                f"guarantees {self.limit:.1%} of unseen ones; {self.demand.share:.1%} were asked{short}"
            )
        word = "at least" if self.least else "at most"
        return (
            f"{self.group}: the mean is proven to be {word} {self.proven:.6g} on {self.n} inputs, which guarantees "
            f"{word} {self.limit:.6g} for unseen ones; {word} {gamma:g} was asked{short}"
        )


def judge_reaches(
    store: Store, where: Selection, demands: list[ReachDemand], confidence: float
) -> list[ReachJudgement]:
    """Every group of the store's reaches against every demand, each at the full confidence; all must pass."""
    frame = ends_in_order(reaches_frame(store, where), store.where)
    if frame.empty:
        raise InputError(f"{store.where}: expected finished reaches to judge, got none that match")
    waiting = unfinished(store, where, REACH_QUESTION, reaches=True)
    found = []
    for question, rows in reach_groups(frame):
        missing = waiting.get(group_of(question, REACH_QUESTION), 0)
        dist = _with_absent(reach_columns(question, rows), missing)
        promise = dist.guarantee(confidence)
        group = f"{question['classifier']} ({question['dataset']} {question['split']}, {dist.title})"
        for one in demands:
            if one.share is not None:
                limit, sure = promise.at_one(one.gamma)[0], float(dist.share(one.gamma).proven)
                said = promise.sentence(one.gamma, whole_curve=False)
            else:
                low, high = promise.mean()
                ends = dist.filled()
                limit, sure = (low, float(ends[0].mean())) if dist.least else (high, float(ends[1].mean()))
                said = promise.mean_sentence()
            found.append(ReachJudgement(group, one, sure, limit, len(dist), missing, said, dist.least))
    return found


def _with_absent(columns: dict[str, Any], missing: int) -> ReachDistribution:
    """The distribution with so many inputs of which nothing is known."""
    kept = {key: value for key, value in columns.items() if key not in ("ids", "contents", "keys")}
    kept = {key: value for key, value in kept.items() if key not in ("cpu_seconds", "wall_seconds")}
    fill = {"lower": np.nan, "upper": np.nan, "label": -1, "correct": True, "status": "unsolved"}
    return ReachDistribution.from_arrays(
        **{key: [*value, *([fill[key]] * missing)] if key in fill else value for key, value in kept.items()}
    )
