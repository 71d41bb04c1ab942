"""Distribution as users meet it: the statistics of `radii.stats`, with pictures and a report on top."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import stats
from radii._html import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from radii.store import Store


@dataclass(frozen=True, eq=False, repr=False)
class Stored:
    """What a distribution knows of the store that its keys are of."""

    source: str | Path | Store | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What is copied to another process: an open store is not."""
        address = self.source if isinstance(self.source, (str, Path)) else None
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"source": address}


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Stored, stats.Distribution):
    """Radii of n inputs as intervals [lower, upper]; build it with `radii.distribution` or `Distribution.from_arrays`.

    >>> dist = Distribution.from_arrays(lower=[0.01, 0.03, None], upper=[0.02, None, None], correct=[1, 1, 0])
    >>> dist.robust_accuracy(0.005).proven
    0.6666666666666666
    """

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Axes with the robust-accuracy curve; options are `confidence` (draws the guarantee band) and `among`."""
        from radii.report.figures import robust_accuracy_curve

        return robust_accuracy_curve(self, ax, **options)

    def report(self, path: str | Path, *others: Distribution, **options: Any) -> Path:
        """Write a report of this distribution, beside others if given, and give its path back.

        The ending chooses the format: .html, .md, .pdf or .tex. Options are `eps`, `confidence`, `title`, and `data`
        for pictures of inputs beside their witnesses. What radii measured is shown as `radii report` shows it.
        """
        from radii.report.arrays import write_report

        return write_report(path, (self, *others), **options)

    def _repr_html_(self) -> str:
        """The summary and a small picture of the curve, for notebooks."""
        from radii.report.arrays import small_curve

        return table(self.name or "radii", self.summary().table()) + small_curve(self)
