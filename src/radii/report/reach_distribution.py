"""ReachDistribution as users meet it: the statistics of `radii.stats`, with pictures and a report on top."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii._html import table
from radii.report.distribution import Stored
from radii.stats import reaches

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ReachDistribution(Stored, reaches.ReachDistribution):
    """Reaches of n inputs in balls of one ε; build it with `radii.distribution(..., reach=ε)` or `from_arrays`.

    >>> dist = ReachDistribution.from_arrays(lower=[0.1, 0.3], upper=[0.2, 0.3], quantity="output change", epsilon=0.01)
    >>> dist.share(0.25).proven
    0.5
    """

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Axes with the share of inputs on the good side of γ; options are `confidence` (draws the band), `among`."""
        from radii.report.reach_curves import reach_curve

        return reach_curve(self, ax, **options)

    def report(self, path: str | Path, *others: ReachDistribution, **options: Any) -> Path:
        """Write a report of this distribution, beside others if given, and give its path back.

        The ending chooses the format: .html, .md, .pdf or .tex. Options are `confidence`, `title`, and `data` for
        pictures of inputs beside their witnesses.
        """
        from radii.report.reach_section import write_report

        return write_report(path, (self, *others), **options)

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        return table(f"{self.name or 'reaches'}: {self.title}", list(self.summary().items()))
