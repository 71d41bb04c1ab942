"""What may be said about unseen inputs: a band for the whole curve, limits at one ε, and the sentence to quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import choice
from radii.stats._arrays import DEFINITIONS, Among, Ends, FloatArray, definition, eps_array, level
from radii.stats.bands import dkw_half_width
from radii.stats.intervals import share_lower, share_upper
from radii.stats.multiple import bonferroni_confidence

EVIDENCE = {
    "proof and attack": "lower limits rest on proofs, upper limits on replayed witnesses",
    "proof only": "lower limits rest on proofs; no witnesses were looked for, so the upper limits say nothing",
    "attack only": "no proofs were attempted: only the upper limits say anything, an attack cannot show robustness",
}


@dataclass(frozen=True)
class Guarantee:
    """A band for the share of unseen inputs that are robust, for all ε at once, with its assumptions."""

    ends: Ends
    confidence: float
    half_width: float
    among: Among = "all"
    population: int | None = None
    evidence: str = "proof and attack"

    @property
    def n(self) -> int:
        """How many inputs the guarantee rests on."""
        return len(self.ends)

    def at(self, eps: Any) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the share of unseen inputs robust at each ε; all of them hold together."""
        points = eps_array(eps)
        low = np.clip(self.ends.proven(points) - self.half_width, 0.0, 1.0)
        high = np.clip(self.ends.not_broken(points) + self.half_width, 0.0, 1.0)
        return low, high

    def at_one(self, eps: Any, method: str = "clopper-pearson") -> tuple[float, float]:
        """Limits for one ε chosen before the data were seen: narrower than the band, valid for that ε only."""
        point = eps_array(eps).reshape(())
        side = 1.0 - level(self.confidence) / 2
        proven = round(float(self.ends.proven(point)) * self.n)
        alive = round(float(self.ends.not_broken(point)) * self.n)
        low = share_lower(proven, self.n, side, method, self.population)
        high = share_upper(alive, self.n, side, method, self.population)
        return float(low), float(high)

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ε at which the band changes, with its lower and upper limits there."""
        values = np.concatenate([self.ends.low, self.ends.high, [0.0]])
        knots = np.unique(values[np.isfinite(values) & (values >= 0)])
        return (knots, *self.at(knots))

    def assumptions(self) -> tuple[str, ...]:
        """Everything the statement needs to be true."""
        if self.population is None:
            drawn = "the inputs are independent draws from the distribution the statement is about"
        else:
            drawn = f"the inputs are a simple random sample, without replacement, of the {self.population} inputs"
        rule = "inputs, budget and method were fixed before the radii were seen"
        return (drawn, rule, EVIDENCE[self.evidence], DEFINITIONS[self.among])

    def sentence(self, eps: Any, *, whole_curve: bool = True) -> str:
        """The sentence that may be quoted for one ε, with its assumptions."""
        point = float(eps_array(eps).reshape(()))
        low, high = (float(v) for v in self.at(point)) if whole_curve else self.at_one(point)
        who = "inputs" if self.among == "all" else "correctly classified inputs"
        where = "unseen " + who if self.population is None else f"the {self.population} {who} sampled from"
        scope = "at every ε at once" if whole_curve else "at this ε alone"
        claim = {
            "proof and attack": f"between {low:.1%} and {high:.1%}",
            "proof only": f"at least {low:.1%}",
            "attack only": f"at most {high:.1%}",
        }[self.evidence]
        return (
            f"With {self.confidence:.6g} confidence (holding {scope}), {claim} of {where} are robust to perturbations "
            f"of size {point:g}; n = {self.n}. Assumes: " + "; ".join(self.assumptions()) + "."
        )


def guarantee(
    ends: Ends,
    confidence: float = 0.95,
    *,
    among: str = "all",
    population: int | None = None,
    evidence: str = "proof and attack",
) -> Guarantee:
    """The band of one sample of radii: one-sided DKW limits on the proven and on the not-broken envelope.

    The proven share can only be too low and the not-broken share only too high, whatever caused the gaps, so the
    lower limit of the first and the upper limit of the second enclose the true curve with the asked confidence.
    """
    kind = choice(evidence, "evidence", EVIDENCE)
    width = dkw_half_width(len(ends), confidence, population)
    return Guarantee(ends, 1.0 - level(confidence), width, definition(among), population, kind)


def class_guarantees(
    parts: dict[int, Ends], confidence: float = 0.95, *, among: str = "all", evidence: str = "proof and attack"
) -> dict[int, Guarantee]:
    """One band per class that hold for all classes together (Bonferroni over the classes)."""
    each = bonferroni_confidence(confidence, len(parts))
    return {key: guarantee(part, each, among=among, evidence=evidence) for key, part in parts.items()}
