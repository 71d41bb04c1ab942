"""Gate: whether the proven share of robust inputs is high enough, for inputs not seen, with a stated confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radii._check import number
from radii.errors import InputError
from radii.stats import Distribution
from radii.store import QUESTION, Selection, Store, radii_frame
from radii.store.frame import ends_in_order
from radii.store.record import canonical

if TYPE_CHECKING:
    import pandas as pd

_SAME = (*QUESTION, "target")


@dataclass(frozen=True)
class Demand:
    """At least `share` of unseen inputs robust at `epsilon`."""

    share: float
    epsilon: float

    @staticmethod
    def of(text: str) -> Demand:
        """A demand from text such as "0.9@0.01" or "0.9@8/255"."""
        share, sign, epsilon = text.partition("@")
        if not sign:
            raise InputError(f"--robust-accuracy: expected SHARE@EPSILON such as 0.9@0.01, got {text!r}")
        return Demand(
            number(share, "--robust-accuracy share", low=0.0, high=1.0),
            number(epsilon, "--robust-accuracy epsilon", low=0.0),
        )


@dataclass(frozen=True)
class Judgement:
    """One group of radii against one demand; `reason` says why it does not pass."""

    group: str
    demand: Demand
    proven: float
    limit: float
    n: int
    missing: int
    sentence: str

    @property
    def passed(self) -> bool:
        """Whether the lower limit reaches the demand."""
        return self.limit >= self.demand.share

    @property
    def reason(self) -> str:
        """One line: what was asked and what is guaranteed."""
        short = "" if not self.missing else f"; {self.missing} planned inputs are not finished and count as not robust"
        return (
            f"{self.group}: at ε = {self.demand.epsilon:g}, {self.proven:.1%} of {self.n} inputs are proven robust, "
            f"which guarantees {self.limit:.1%} of unseen ones; {self.demand.share:.1%} were asked{short}"
        )


def judge(store: Store, where: Selection, demands: list[Demand], confidence: float) -> list[Judgement]:
    """Every group of the store against every demand.

    The gate passes only when all do, so each may be judged at the full confidence: whichever demand is not met in
    truth, it passes by chance with at most 1 − confidence.
    """
    frame = ends_in_order(radii_frame(store, where), store.where)
    if frame.empty:
        raise InputError(f"{store.where}: expected finished radii to judge, got none that match")
    waiting = unfinished(store, where, _SAME, reaches=False)
    found = []
    for values, rows in frame.groupby(list(_SAME), dropna=False, sort=True):
        named = dict(zip(_SAME, values, strict=True))
        rows, missing = _once(rows), waiting.get(group_of(named, _SAME), 0)
        absent = [np.nan] * missing
        dist = Distribution.from_arrays(
            lower=[*rows["lower"], *absent],
            upper=[*rows["upper"], *absent],
            correct=[*rows["correct"], *([True] * missing)],
        )
        promise = dist.guarantee(confidence)
        for demand in demands:
            limit, _ = promise.at_one(demand.epsilon)
            proven = float(dist.robust_accuracy(demand.epsilon).proven)
            said = promise.sentence(demand.epsilon, whole_curve=False)
            found.append(Judgement(_title(named), demand, proven, limit, promise.n, missing, said))
    return found


def _once(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per input: one that was measured with other parameters too counts once, with the best of its ends."""
    right = rows.assign(correct=rows["status"] != "misclassified")
    return right.groupby(["index", "content"], sort=False).agg({"lower": "max", "upper": "min", "correct": "all"})


def unfinished(store: Store, where: Selection, same: Sequence[str], reaches: bool) -> dict[tuple[str, ...], int]:
    """How many planned units of each group have no result; a group is what agrees in the columns of `same`."""
    counts: dict[tuple[str, ...], int] = {}
    studies = [name for name in store.studies() if not where.study or name in where.study]
    units = {unit.key: unit for name in studies for unit in store.planned(name)}
    for unit in store.pending(units.values()):
        setting, place = unit.setting, unit.instance
        if (setting.epsilon is not None) != reaches:
            continue
        named = {name: getattr(setting, name, None) for name in same} | {
            "classifier": unit.classifier.name,
            "dataset": place.dataset,
            "split": place.split,
            "property_parameters": canonical(dict(setting.property_parameters)),
        }
        counts[group_of(named, same)] = counts.get(group_of(named, same), 0) + 1
    return counts


def group_of(named: dict[str, Any], same: Sequence[str]) -> tuple[str, ...]:
    """The values of some columns, as text."""
    return tuple(_text(named[key]) for key in same)


def _text(value: Any) -> str:
    """A value as text; the many ways to say that there is none are one."""
    return "" if value is None or str(value) in ("<NA>", "nan") else str(value)


def _title(named: dict[str, Any]) -> str:
    target = _text(named["target"])
    aim = f", target {target}" if target else ""
    return f"{named['classifier']} ({named['dataset']} {named['split']}, {named['property']}{aim}, {named['norm']})"
