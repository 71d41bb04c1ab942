"""Several classifiers as one: averaged, by vote, or joined as ensembles need them.

mean         the weighted mean of the logits: one network, written to ONNX, which everything takes
probability  the weighted mean of the softmax probabilities: a network too, for two classes (a softmax of two is a
             sigmoid of their difference); for more classes radii are proven by cells (`ensembles.average`)
vote         the weights of the members' votes: no network, but its radii are proven (`ensembles.vote`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from radii._check import choice, number
from radii.ensembles.average import Average
from radii.ensembles.members import Merged, check_members
from radii.ensembles.vote import Vote
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.load import load_classifier
from radii.models.merge import mean_of, mean_probability_of

JOINT = "joint"
WAYS = ("mean", "probability", "vote")


def combine(
    members: Sequence[Any], how: str = "mean", weights: Sequence[float] | None = None, name: str | None = None
) -> Classifier:
    """Several classifiers of the same inputs and classes as one, which everything takes that takes classifiers.

    `how` is "mean" (of the logits), "probability" (mean of the softmax) or "vote" (each member votes for
    its class; a class that at least ties with the label breaks it). `weights` are one per member, equal unless given.

    >>> import radii
    >>> nets = [radii.load_classifier(f"zoo:mnist5k-{name}") for name in ("standard", "adversarial", "conv")]
    >>> data = radii.load_dataset("mnist5k", split="test")
    >>> radii.combine(nets, how="vote")(data[0].x).tolist()
    [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    loaded = check_members([load_classifier(one) for one in members])
    choice(how, "combine", WAYS)
    shares = [1.0] * len(loaded) if weights is None or not len(weights) else [_weight(one) for one in weights]
    if len(shares) != len(loaded):
        raise InputError(f"combine: expected one weight for each of {len(loaded)} members, got {len(shares)}")
    called = name or f"{how}({','.join(one.name or one.fingerprint[:8] for one in loaded)})"
    if how == "vote":
        return Vote.of(loaded, shares, called)
    if how == "probability" and loaded[0].classes != 2:
        return Average.of(loaded, shares, called)
    # In the order of their fingerprints: the same members make the same network, however they are listed.
    pairs = sorted(zip(loaded, shares), key=lambda pair: pair[0].fingerprint)
    modules, parts = [one.torch_module() for one, _ in pairs], [share / sum(shares) for _, share in pairs]
    first, dtype = pairs[0][0], max((one.torch_dtype for one in loaded), key=lambda kind: kind.itemsize)
    if how == "mean":
        module = mean_of(modules, first.classes, dtype, parts)
    else:
        module = mean_probability_of(modules, dtype, parts)
    return load_classifier(module, input_shape=first.input_shape, domain=first.domain, name=called)


def together(
    how: str, members: Sequence[Classifier], weights: Sequence[float] = (), name: str | None = None
) -> Classifier:
    """What `combine` gives, and the members side by side, as joint radii need them."""
    return Merged.of(members) if how == JOINT else combine(members, how, weights, name)


def _weight(value: Any) -> float:
    found = number(value, "weights", low=0.0, strict=True)
    if not math.isfinite(found):
        raise InputError(f"weights: expected finite numbers, got {value}")
    return found
