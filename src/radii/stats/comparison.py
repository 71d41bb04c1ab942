"""Two networks compared on the same or on different inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii._html import table
from radii.errors import InputError
from radii.stats._arrays import Ends, definition, largest_end
from radii.stats.curves import Crossing, Dominance, Stretch, crossings, dominance, stretches, unseen_margin
from radii.stats.effect_sizes import Effect, area_difference, cliffs_delta, wasserstein
from radii.stats.ks import TestResult, two_sample
from radii.stats.paired import paired as sign_flip

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution
    from radii.stats.sample import Sample

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Comparison:
    """A against B. Effects and leads are positive or "a" where A is the more robust one."""

    names: tuple[str, str]
    n: tuple[int, int]
    paired: bool
    test: TestResult
    cliffs_delta: Effect
    wasserstein: Effect
    area_difference: Effect
    limit: float
    leads: tuple[Stretch, ...]
    crossings: tuple[Crossing, ...]
    unseen_leads: tuple[Stretch, ...]
    a_dominates: Dominance
    b_dominates: Dominance

    def statement(self, alpha: float = 0.05) -> str:
        """What may be said, in a sentence or two."""
        a, b = self.names
        text = f"{a} against {b}: {self.test.statement(alpha)}."
        for cross in self.crossings:
            first, then = (a, b) if cross.leader_before == "a" else (b, a)
            text += f" The curves cross: {first} is ahead up to ε = {cross.before:g}, {then} from {cross.after:g}."
        return text

    def _repr_html_(self) -> str:
        """What may be said, for notebooks."""
        a, b = self.names
        inputs = f"{self.n[0]} shared" if self.paired else f"{self.n[0]} and {self.n[1]}"
        rows = [("inputs", inputs), ("decision", self.test.decision()), ("p", self.test.p_value)]
        return table(f"{a} against {b}", [*rows, ("statement", self.statement())])


def compare(
    a: Distribution,
    b: Distribution,
    *,
    paired: bool | None = None,
    among: str = "all",
    permutations: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Everything about two networks: paired by ids where both have them, else as independent samples.

    Paired comparisons use the inputs that both have. `among="correct"` uses inputs that are classified correctly
    (by both networks when paired).
    """
    use_pairs = paired if paired is not None else a.ids is not None and b.ids is not None
    if use_pairs:
        rows_a, rows_b = paired_rows(a, b, among)
        first, second = a.ends("all").take(rows_a), b.ends("all").take(rows_b)
        test = sign_flip(first, second, permutations=permutations, seed=seed)
    else:
        first, second = a.ends(among), b.ends(among)
        test = two_sample(first, second, permutations, seed)
    return _describe((a.name or "A", b.name or "B"), first, second, use_pairs, test)


def _describe(names: tuple[str, str], a: Ends, b: Ends, use_pairs: bool, test: TestResult) -> Comparison:
    limit = largest_end(a, b)
    leads = stretches(a, b)
    return Comparison(
        names=names,
        n=(len(a), len(b)),
        paired=use_pairs,
        test=test,
        cliffs_delta=cliffs_delta(a, b),
        wasserstein=wasserstein(a, b, limit),
        area_difference=area_difference(a, b, limit),
        limit=limit,
        leads=leads,
        crossings=crossings(leads),
        unseen_leads=stretches(a, b, unseen_margin(a, b)),
        a_dominates=dominance(a, b),
        b_dominates=dominance(b, a),
    )


def paired_rows(a: Sample, b: Sample, among: str) -> tuple[Rows, Rows]:
    """The rows of the inputs that both hold, or only of those that both networks classify correctly."""
    rows_a, rows_b = shared_rows(a, b)
    if definition(among) == "all":
        return rows_a, rows_b
    both = a.correct[rows_a] & b.correct[rows_b]
    if not both.any():
        raise InputError("compare: expected an input that both networks classify correctly, got none")
    return rows_a[both], rows_b[both]


def shared_rows(a: Sample, b: Sample) -> tuple[Rows, Rows]:
    """The rows of the inputs that both distributions hold, in the same order; ids must be there and unique."""
    first, second = unique_ids(a, "the first distribution"), unique_ids(b, "the second distribution")
    shared, rows_a, rows_b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    if shared.size == 0:
        raise InputError("paired comparison: expected inputs that both distributions hold, got none in common")
    return rows_a.astype(np.int64), rows_b.astype(np.int64)


def unique_ids(dist: Sample, name: str) -> npt.NDArray[np.str_]:
    """The ids of a distribution that holds every input once."""
    if dist.ids is None:
        raise InputError(f"paired comparison: expected ids for {name}, got none; give ids=... to from_arrays")
    if np.unique(dist.ids).size != len(dist):
        raise InputError(
            f"paired comparison: expected each input once, got repeated ids in {name}; select one run or one target"
        )
    return dist.ids
