"""What may be said about unseen inputs: a band for the whole curve, limits at one ε, and the sentence to quote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from radii._check import choice, number
from radii._html import table
from radii.errors import InputError
from radii.stats._arrays import DEFINITIONS, Ends, FloatArray, definition, eps_array, level
from radii.stats.band import Band
from radii.stats.dkw import dkw_half_width
from radii.stats.multiple_testing import bonferroni_confidence, holm

EVIDENCE = {
    "proof and attack": "lower limits rest on proofs, upper limits on replayed witnesses",
    "proof only": "lower limits rest on proofs; no witnesses were looked for, so the upper limits say nothing",
    "attack only": "no proofs were attempted: only the upper limits say anything, an attack cannot show robustness",
}


@dataclass(frozen=True)
class Guarantee(Band):
    """A band for the share of unseen inputs that are robust, for all ε at once, with its assumptions.

    `about` names the part of the inputs it speaks of ("of class 3"); with a `family` above 1 it is one of that many
    statements, each made with `confidence`, so that all of them hold together with `joint_confidence`.
    """

    what = "radii"
    definitions = DEFINITIONS

    evidence: str = "proof and attack"
    about: str = ""
    family: int = 1

    def _repr_html_(self) -> str:
        """The statement at a few ε and what it rests on, for notebooks."""
        known = np.concatenate([self.ends.low, self.ends.high])
        known = known[np.isfinite(known) & (known > 0)]
        points = np.unique(
            [float(f"{eps:.2g}") for eps in np.quantile(known, (0.1, 0.5, 0.9))] if known.size else [0.0]
        )
        low, high = self.at(points)
        rows = [(f"robust at {eps:g}", f"{a:.1%} to {b:.1%}") for eps, a, b in zip(points, low, high)]
        told = (("confidence", self.confidence), ("inputs", self.n), ("among", self.among), ("evidence", self.evidence))
        return table(f"guarantee for unseen inputs {self.about}".strip(), [*rows, *told])

    @property
    def joint_confidence(self) -> float:
        """The confidence with which all statements of the family hold together."""
        return 1.0 - self.family * level(self.confidence)

    @property
    def _rests_on(self) -> str:
        return EVIDENCE[self.evidence]

    def _points(self, threshold: Any) -> FloatArray:
        return eps_array(threshold)

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ε at which the band changes, with its lower and upper limits there."""
        values = np.concatenate([self.ends.low, self.ends.high, [0.0]])
        knots = np.unique(values[np.isfinite(values) & (values >= 0)])
        return (knots, *self.at(knots))

    def sentence(self, eps: Any, *, whole_curve: bool = True, method: str = "clopper-pearson") -> str:
        """The sentence that may be quoted for one ε, with its assumptions; `method` is that of `at_one`."""
        point = float(eps_array(eps).reshape(()))
        low, high = (float(v) for v in self.at(point)) if whole_curve else self.at_one(point, method)
        scope = "at every ε at once" if whole_curve else "at this ε alone"
        scope += "" if self.family == 1 else f", for {self.family} such statements together"
        shares, robust = claim(low, high, self.evidence), f"are robust to perturbations of size {point:g}"
        return self._said(f"holding {scope}", f"{shares} of", self.about, robust, self.joint_confidence)


def claim(low: float, high: float, evidence: str) -> str:
    """The limits in words, without the one that the evidence does not support."""
    return {
        "proof and attack": f"between {low:.1%} and {high:.1%}",
        "proof only": f"at least {low:.1%}",
        "attack only": f"at most {high:.1%}",
    }[evidence]


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
    return Guarantee(ends, 1.0 - level(confidence), width, definition(among), population, evidence=kind)


def class_guarantees(
    parts: dict[int, Ends], confidence: float = 0.95, *, among: str = "all", evidence: str = "proof and attack"
) -> dict[int, Guarantee]:
    """One band per class that hold for all classes together (Bonferroni over the classes)."""
    each = bonferroni_confidence(confidence, len(parts))
    bands = {key: guarantee(part, each, among=among, evidence=evidence) for key, part in parts.items()}
    return {key: replace(band, about=f"of class {key}", family=len(parts)) for key, band in bands.items()}


@dataclass(frozen=True)
class ClassClaim:
    """Whether it is shown that at least `share` of the unseen inputs of a class are robust at ε.

    `p_value` is after Holm: claims with p ≤ 1 − confidence hold all together with that confidence.
    """

    label: int
    n: int
    proven: int
    share: float
    p_value: float
    shown: bool


def class_claims(parts: dict[int, Ends], eps: Any, share: Any, confidence: float = 0.95) -> dict[int, ClassClaim]:
    """For which classes a demanded share is shown at one ε (exact binomial tests of the proven inputs, Holm).

    Holm shows at least as many classes as Bonferroni limits do. The ε and the share must be fixed beforehand.
    """
    point = float(eps_array(eps).reshape(()))
    goal = number(share, "share", low=0.0, high=1.0, strict=True)
    if not parts:
        raise InputError("class_claims: expected at least one class, got none")
    counts = {key: int(np.sum(part.low >= point)) for key, part in parts.items()}
    plain = [float(scipy.stats.binom.sf(counts[key] - 1, len(part), goal)) for key, part in parts.items()]
    alpha = level(confidence)
    return {
        key: ClassClaim(key, len(part), counts[key], goal, p, p <= alpha)
        for (key, part), p in zip(parts.items(), holm(plain).tolist())
    }
