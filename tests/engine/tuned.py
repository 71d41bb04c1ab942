"""Tunings that lead small networks down the paths that only large ones take by default."""

from __future__ import annotations

from dataclasses import replace

from radii.engine.tuning import DEFAULT, Tuning


def settling(mixed: float, plain_shallow: int = 1) -> Tuning:
    """Plain trees end at once, so that hidden layers are settled, unless more than `mixed` of the neurons are mixed."""
    rule = replace(DEFAULT.settling, plain_shallow=plain_shallow, plain_deep=1, mixed=mixed)
    return replace(DEFAULT, settling=rule)


SETTLING = settling(2.0)  # no network is that mixed


def few_inputs(count: int) -> Tuning:
    """Inputs are split up to so many of them, operands and signs beyond."""
    boxes, intervals = (replace(part, few_inputs=count) for part in (DEFAULT.boxes, DEFAULT.intervals))
    return replace(DEFAULT, boxes=boxes, intervals=intervals)


def paired() -> Tuning:
    """Pair planes from the first node on, whatever the network; plain trees only, which have them."""
    trees = replace(DEFAULT.trees, paired_from=0, paired_least=0, paired_layers=99)
    return replace(DEFAULT, trees=trees, settling=replace(DEFAULT.settling, plain_shallow=10_000, plain_deep=10_000))


PAIRED = paired()
