"""Distribution as users meet it: the statistics of `radii.stats`, with pictures and a report on top."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from radii import stats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(stats.Distribution):
    """Radii of n inputs as intervals [lower, upper]; build it with `radii.distribution` or `Distribution.from_arrays`.

    >>> dist = Distribution.from_arrays(lower=[0.01, 0.03, None], upper=[0.02, None, None], correct=[1, 1, 0])
    >>> dist.robust_accuracy(0.005).proven
    0.6666666666666666
    """

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Axes with the robust-accuracy curve; options are `confidence` (draws the guarantee band) and `among`."""
        from radii.report.figures import robust_accuracy_curve

        return robust_accuracy_curve(self, ax, **options)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in self.summary().table())
        return f"<table><caption>{escape(self.name or 'radii')}</caption>{rows}</table>"
