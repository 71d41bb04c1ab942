"""Band: limits of the share of unseen inputs at every threshold at once, and what a statement about them needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from radii.stats._arrays import Among, Ends, FloatArray, level
from radii.stats.confidence_intervals import share_lower, share_upper


@dataclass(frozen=True)
class Band(ABC):
    """What guarantees about radii and about reaches share: one-sided DKW limits on both envelopes of a sample.

    `ends` are such that large is good. `repeated` counts inputs with the same values as another one, where that is
    known; with a `population` the inputs are a sample of so many, without replacement.
    """

    what: ClassVar[str]  # that was measured: radii, reaches
    definitions: ClassVar[dict[str, str]]  # which inputs count, by the name of the definition

    ends: Ends
    confidence: float
    half_width: float
    among: Among = "all"
    population: int | None = None
    repeated: int = 0

    @property
    def n(self) -> int:
        """How many inputs the guarantee rests on."""
        return len(self.ends)

    def at(self, threshold: Any) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the share of unseen inputs at each threshold; all of them hold together."""
        points = self._points(threshold)
        low = np.clip(self.ends.proven(points) - self.half_width, 0.0, 1.0)
        return low, np.clip(self.ends.not_broken(points) + self.half_width, 0.0, 1.0)

    def at_one(self, threshold: Any, method: str = "clopper-pearson") -> tuple[float, float]:
        """Limits for one threshold chosen before the data were seen: narrower than the band, valid for it only."""
        point = self._points(threshold).reshape(())
        side = 1.0 - level(self.confidence) / 2
        sure = round(float(self.ends.proven(point)) * self.n)
        may = round(float(self.ends.not_broken(point)) * self.n)
        low = share_lower(sure, self.n, side, method, self.population)
        return float(low), float(share_upper(may, self.n, side, method, self.population))

    def assumptions(self) -> tuple[str, ...]:
        """Everything the statements need to be true."""
        drawn = "the inputs are independent draws from the distribution the statement is about"
        if self.population is not None:
            drawn = f"the inputs are a simple random sample, without replacement, of the {self.population} inputs"
        if self.repeated:
            drawn += f", although {self.repeated} of the {self.n} repeat another input"
        rule = f"inputs, budget and method were fixed before the {self.what} were seen"
        return (drawn, rule, self._rests_on, self.definitions[self.among])

    @property
    @abstractmethod
    def _rests_on(self) -> str:
        """What proves and what refutes."""

    @abstractmethod
    def _points(self, threshold: Any) -> FloatArray:
        """Thresholds as `ends` take them."""

    def _said(self, how: str, shares: str, about: str, claim: str, confidence: float) -> str:
        """A sentence to quote: confidence, scope, share, which inputs, what of them, and the assumptions."""
        who = ("inputs" if self.among == "all" else "correctly classified inputs") + (f" {about}" if about else "")
        where = f"unseen {who}" if self.population is None else f"the {self.population} {who} sampled from"
        return (
            f"With {confidence:.6g} confidence ({how}), {shares} {where} {claim}; n = {self.n}. "
            f"Assumes: {'; '.join(self.assumptions())}."
        )
