"""Two curves against each other: who leads where, crossings, and stochastic dominance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from radii.stats._arrays import Ends, FloatArray, level
from radii.stats.dkw import dkw_half_width


@dataclass(frozen=True)
class Stretch:
    """A range of ε, both ends included, and who leads there: "a", "b", or "" where neither surely does."""

    start: float
    stop: float
    leader: str


@dataclass(frozen=True)
class Crossing:
    """One curve leads at and below `before`, the other at and above `after`; where they cross between is not known."""

    before: float
    after: float
    leader_before: str
    leader_after: str


def stretches(a: Ends, b: Ends, margin: float = 0.0) -> tuple[Stretch, ...]:
    """Who surely leads where: A leads at ε if its proven share beats B's not-broken share by more than `margin`."""
    points = shared_points(a, b)
    leads = np.where(a.proven(points) - b.not_broken(points) > margin, 1, 0)
    leads = np.where(b.proven(points) - a.not_broken(points) > margin, -1, leads)
    change = np.flatnonzero(np.diff(leads)) + 1
    parts = np.split(np.arange(points.size), change)
    name = {1: "a", -1: "b", 0: ""}
    return tuple(Stretch(float(points[p[0]]), float(points[p[-1]]), name[int(leads[p[0]])]) for p in parts)


def crossings(found: tuple[Stretch, ...]) -> tuple[Crossing, ...]:
    """Every change of leader, ties and undecided stretches between them skipped."""
    sure = [part for part in found if part.leader]
    pairs = pairwise(sure)
    return tuple(Crossing(p.stop, q.start, p.leader, q.leader) for p, q in pairs if p.leader != q.leader)


def unseen_margin(a: Ends, b: Ends, confidence: float = 0.95) -> float:
    """The lead that also holds for unseen inputs, at every ε at once: both DKW half-widths together."""
    each = 1.0 - level(confidence) / 2
    return dkw_half_width(len(a), each) + dkw_half_width(len(b), each)


@dataclass(frozen=True)
class Dominance:
    """First-order stochastic dominance of A over B: is A at least as robust at every ε?

    `violation` is the largest amount by which B's share may exceed A's at some ε, as an interval over what the
    gaps hide: 0 means A dominates. `unseen` says whether the bands show B ahead somewhere, or cannot tell.
    """

    sample: str
    violation: tuple[float, float]
    unseen: str


def dominance(a: Ends, b: Ends, confidence: float = 0.95) -> Dominance:
    """Whether A dominates B in this sample (`yes`, `no`, or `gaps hide it`), and what is known for unseen inputs."""
    points = shared_points(a, b)
    least = max(0.0, float(np.max(b.proven(points) - a.not_broken(points))))
    most = max(0.0, float(np.max(b.not_broken(points) - a.proven(points))))
    sample = "yes" if most == 0 else "no" if least > 0 else "gaps hide it"
    margin = unseen_margin(a, b, confidence)
    return Dominance(
        sample, (least, most), "refuted" if least > margin else f"not refuted (up to {min(1.0, most + margin):.3g})"
    )


def shared_points(a: Ends, b: Ends) -> FloatArray:
    """All ε that can matter: both sides of every step of either curve."""
    values = np.concatenate([*a.radii(), *b.radii(), [0.0]])
    knots = np.unique(values[np.isfinite(values) & (values >= 0)])
    beyond: npt.NDArray[np.float64] = np.concatenate([knots, np.nextafter(knots, np.inf)])
    return np.unique(beyond)
