"""The reaches of two networks against each other, on the same or on different inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import InputError
from radii.stats._arrays import Ends, definition
from radii.stats.comparison import paired_rows
from radii.stats.curves import Stretch, crossings, stretches, unseen_margin
from radii.stats.effect_sizes import Effect, cliffs_delta
from radii.stats.ks import TestResult, two_sample
from radii.stats.paired import paired as sign_flip

if TYPE_CHECKING:
    from radii.stats.reaches import ReachDistribution


@dataclass(frozen=True)
class ReachComparison:
    """A against B. `leads` are ranges of γ and who surely has more inputs on the good side there.

    `cliffs_delta` is P(A is better) − P(B is better) over all pairs of inputs, wherever the reaches lie.
    """

    names: tuple[str, str]
    title: str
    n: tuple[int, int]
    paired: bool
    test: TestResult
    cliffs_delta: Effect
    leads: tuple[Stretch, ...]
    unseen_leads: tuple[Stretch, ...]

    def statement(self, alpha: float = 0.05) -> str:
        """What may be said, in a sentence or two."""
        a, b = self.names
        text = f"{a} against {b}, {self.title}: {self.test.statement(alpha).replace('radii', 'reaches')}."
        for cross in crossings(self.leads):
            first, then = (a, b) if cross.leader_before == "a" else (b, a)
            text += f" The curves cross: {first} is ahead up to γ = {cross.before:g}, {then} from {cross.after:g}."
        return text


def compare(
    a: ReachDistribution,
    b: ReachDistribution,
    *,
    paired: bool | None = None,
    among: str = "all",
    permutations: int = 10_000,
    seed: int = 0,
) -> ReachComparison:
    """Two networks' reaches of one quantity at one ε: paired by ids where both have them, else as two samples."""
    asked = [(one.quantity, one.unit, one.least, one.epsilon, one.norm) for one in (a, b)]
    if asked[0] != asked[1]:
        raise InputError(f"compare: expected reaches of one quantity at one ε, got {a.title} and {b.title}")
    use_pairs = paired if paired is not None else a.ids is not None and b.ids is not None
    first, second, base = _shifted(a, b)
    if use_pairs:
        rows_a, rows_b = paired_rows(a, b, among)
        first, second = first.take(rows_a), second.take(rows_b)
        test = replace(sign_flip(first, second, permutations=permutations, seed=seed), test="paired sign-flip test")
    else:
        if definition(among) == "correct":
            first, second = first.take(a.correct), second.take(b.correct)
        test = two_sample(first, second, permutations, seed)
    names, sizes = (a.name or "A", b.name or "B"), (len(first), len(second))
    leads = _back(stretches(first, second), base, a.least)
    unseen = _back(stretches(first, second, unseen_margin(first, second)), base, a.least)
    return ReachComparison(names, a.title, sizes, use_pairs, test, cliffs_delta(first, second), leads, unseen)


def _shifted(a: ReachDistribution, b: ReachDistribution) -> tuple[Ends, Ends, float]:
    """Both as values of at least 0 of which large is good, for tests made for radii; and what they were shifted by.

    Where nothing is proven the shifted value is 0, the worst that is known of any input: reaches are capped there.
    """
    sides = [one.ends() for one in (a, b)]
    known = np.concatenate([np.concatenate([one.low, one.high]) for one in sides])
    known = known[np.isfinite(known)]
    base = float(known.min()) if known.size else 0.0
    found = []
    for one in sides:
        low = np.where(np.isneginf(one.low), 0.0, one.low - base)
        found.append(Ends(low, np.maximum(one.high - base, np.nextafter(low, np.inf))))
    return found[0], found[1], base


def _back(found: tuple[Stretch, ...], base: float, least: bool) -> tuple[Stretch, ...]:
    """Ranges of γ from ranges of shifted values, in the order of γ."""
    sign = 1.0 if least else -1.0
    turned = []
    for one in found:
        start, stop = sorted((sign * (one.start + base) + 0.0, sign * (one.stop + base) + 0.0))
        turned.append(Stretch(start, stop, one.leader))
    return tuple(sorted(turned, key=lambda one: one.start))
