"""Claim: what a piece of evidence says, in full: which network, which input, what holds, how far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from radii.errors import FormatError
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm

VERSION = 2  # 1 knew no hulls; it is still read


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`radius` is proven robust; `ball` ≥ radius is the ball on which hidden neurons are bounded."""

    version: int = VERSION
    classifier: str  # fingerprints
    instance: str
    label: int
    target: int | None
    norm: str
    radius: float
    ball: float
    arithmetic: str
    tool: str = ""
    domain: tuple[float | None, float | None] = (0.0, 1.0)
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @staticmethod
    def of(
        classifier: Classifier, instance: Instance, property: Classification, norm: Norm, arithmetic: str, tool: str
    ) -> Claim:
        """The claim about an instance, with no radius yet."""
        low, high = classifier.domain.low, classifier.domain.high
        return Claim(
            classifier=classifier.fingerprint,
            instance=instance.fingerprint,
            label=instance.label,
            target=property.target,
            norm=norm.name,
            radius=0.0,
            ball=0.0,
            arithmetic=arithmetic,
            tool=tool,
            domain=(low if math.isfinite(low) else None, high if math.isfinite(high) else None),
            mean=classifier.preprocessing.mean,
            std=classifier.preprocessing.std,
        )

    def plain(self) -> dict[str, Any]:
        """The claim as plain values; floats keep every digit in JSON."""
        return asdict(self)

    @staticmethod
    def read(body: Mapping[str, Any]) -> Claim:
        """The claim of a file, every field checked."""
        if set(body) != {field.name for field in fields(Claim)}:
            raise FormatError(f"evidence: expected a claim of version {VERSION}, got the fields {sorted(body)}")
        kinds: dict[str, Any] = {"version": int, "label": int, "radius": float, "ball": float}
        kinds |= dict.fromkeys(("classifier", "instance", "norm", "arithmetic", "tool"), str)
        for name, kind in kinds.items():
            if type(body[name]) is not kind:
                raise FormatError(f"evidence: expected {name} to be {kind.__name__}, got {body[name]!r}")
        if body["target"] is not None and type(body["target"]) is not int:
            raise FormatError(f"evidence: expected a class as target, got {body['target']!r}")
        lists = {name: tuple(body[name]) for name in ("domain", "mean", "std") if isinstance(body[name], list)}
        if len(lists) != 3 or any(not isinstance(v, (float, type(None))) for part in lists.values() for v in part):
            raise FormatError("evidence: expected domain, mean and std to be lists of numbers")
        return Claim(**{**body, **lists})._settled()

    def _settled(self) -> Claim:
        if not 1 <= self.version <= VERSION:
            raise FormatError(
                f"evidence: expected version 1 to {VERSION}, got {self.version}; upgrade radii to read it"
            )
        if self.norm not in ("linf", "l2", "l1") or self.arithmetic not in ("real", "float32"):
            raise FormatError(f"evidence: expected a norm and an arithmetic, got {self.norm!r} and {self.arithmetic!r}")
        if not (0.0 < self.radius <= self.ball < math.inf):
            raise FormatError(f"evidence: expected 0 < radius ≤ ball, got {self.radius!r} and {self.ball!r}")
        return self
