"""The projected attack for reaches: inputs of a ball where a property's quantity is large.

Projected gradient ascent (Madry et al. 2018) on every row of the quantity at once, from the centre, from random points
and with gradients that leak through inactive neurons; for a slope the step first goes to where the linearised network
moves most for its distance. The values that are returned were computed by the original model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.attacks.batches import known_surface
from radii.attacks.exact import Floats, pull_in
from radii.attacks.geometry import Room, dual_sizes, into_ball, sizes, steepest
from radii.attacks.surrogate import Surface
from radii.models.classifier import Classifier
from radii.problem import Norm
from radii.problem.quantity import Quantity, softmax

KEPT = 8  # points that are evaluated on the original model
SHELLS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of ε: where slopes are looked for


@dataclass(frozen=True, slots=True)
class Ascent:
    """How long the attack climbs: steps and restarts per row of the quantity."""

    steps: int = 40
    restarts: int = 3
    leak: float = 0.1


@dataclass(frozen=True, eq=False)
class Largest:
    """The best point found, its value on the original model, and that model's outputs there."""

    value: float
    point: Floats
    outputs: NDArray[np.floating]


def largest(
    classifier: Classifier,
    x: Floats,
    quantity: Quantity,
    norm: Norm,
    epsilon: float,
    starts: Tensor | None = None,
    ascent: Ascent = Ascent(),
    seed: int = 0,
) -> Largest | None:
    """The largest value of a quantity that gradients find in the ball; None where no point has a finite value.

    `starts` are further points to climb from, such as those where a bound was least.
    """
    surface = known_surface(classifier)
    center = torch.from_numpy(np.array(x, dtype=classifier.dtype).reshape(1, -1)).to(surface.device)
    points = [center] if not quantity.per_distance else []
    rng = np.random.default_rng(seed)
    for size in SHELLS if quantity.per_distance else (1.0,):
        radius = float(np.float32(size * epsilon))
        for restart in range(ascent.restarts):
            noise = torch.from_numpy(rng.uniform(-1, 1, (1, surface.size)).astype(classifier.dtype))
            first = 0 * noise if restart == 0 else noise
            points += _climb(classifier, surface, quantity, norm, center, radius, first, ascent, restart)
    if starts is not None and len(starts):
        room = Room(center, *classifier.domain.ends(classifier.dtype))
        near = into_ball(
            norm, starts.to(surface.dtype) - center, torch.full((len(starts),), epsilon, dtype=surface.dtype), room
        )
        points.append(center + near)
    return judged(classifier, x, quantity, norm, epsilon, torch.cat(points))


def judged(
    classifier: Classifier, x: Floats, quantity: Quantity, norm: Norm, epsilon: float, points: Tensor
) -> Largest | None:
    """The best of some points of the ball on the original model, after the attack's own arithmetic chose a few."""
    center = np.asarray(x, dtype=classifier.dtype).reshape(1, -1)
    room = np.full(len(points), epsilon)
    flat = pull_in(norm, points.cpu().numpy(), np.repeat(center, len(points), 0), room, classifier.domain)
    with torch.no_grad():
        outputs = classifier.logits(torch.from_numpy(flat)).double().numpy()
    distance = np.linalg.norm(flat.astype(np.float64) - center, ord=norm.order, axis=1)
    guess = np.nan_to_num(quantity.of_values(values_of(classifier, quantity, outputs, True), distance), nan=-np.inf)
    order = np.argsort(-guess)[:KEPT]
    replayed = classifier.reference(flat[order])
    value = quantity.of_values(values_of(classifier, quantity, replayed, False), distance[order])
    value = np.where(np.isfinite(replayed).all(1), value, -np.inf)
    # What only rounding adds is not claimed: a proof speaks of the real network (and near the centre the ratio of two
    # rounded differences is mostly rounding).
    with torch.no_grad():
        both = np.concatenate([center, flat[order]]).astype(np.float64)
        exact = values_of(classifier, quantity, classifier.logits(torch.from_numpy(both)).numpy(), True)
    if quantity.per_distance:
        exact = exact - exact[:1]
        quantity = replace(quantity, offsets=np.zeros_like(quantity.offsets))
    value = np.minimum(value, quantity.of_values(exact[1:], distance[order]))
    best = int(np.argmax(value))
    if not math.isfinite(value[best]):
        return None
    return Largest(float(value[best]), flat[order[best]].reshape(np.shape(x)), replayed[best])


def values_of(
    classifier: Classifier, quantity: Quantity, outputs: NDArray[np.floating], logits: bool
) -> NDArray[np.float64]:
    """What a quantity's rows are about: the outputs, or probabilities; a network that ends in a softmax gives these."""
    ends = classifier.graph.logits is not classifier.graph
    wanted = quantity.of == "probabilities" or (ends and logits)
    return softmax(outputs) if wanted and (logits or not ends) else np.asarray(outputs, dtype=np.float64)


def _climb(
    classifier: Classifier,
    surface: Surface,
    quantity: Quantity,
    norm: Norm,
    center: Tensor,
    radius: float,
    noise: Tensor,
    ascent: Ascent,
    restart: int,
) -> list[Tensor]:
    """One ascent per row; the points with the largest values met."""
    count = len(quantity.offsets)
    rows = torch.tensor(quantity.coefficients, dtype=surface.dtype)
    offsets = torch.tensor(quantity.offsets, dtype=surface.dtype)
    room = Room(center.expand(count, -1), *classifier.domain.ends(classifier.dtype))
    limit = torch.full((count,), radius, dtype=surface.dtype)
    x = room.center + into_ball(norm, radius * noise.expand(count, -1), limit, room)
    leak = torch.full((count,), ascent.leak if restart % 2 else 0.0, dtype=surface.dtype)
    ends = classifier.graph.logits is not classifier.graph
    squash = quantity.of == "probabilities" or ends

    def value(outputs: Tensor) -> Tensor:
        found = surface.rectify(outputs, leak)
        # The logarithm of a probability has a gradient where the probability itself is flat.
        return (rows * (torch.log_softmax(found, 1) if squash else found)).sum(1) + offsets

    best, point, speed = torch.full((count,), -torch.inf, dtype=surface.dtype), x, torch.zeros_like(x)
    for k in range(ascent.steps + 1):
        height, grad = surface.differentiate(x, leak, value)
        if quantity.per_distance:
            height = height / sizes(norm, x - room.center).clamp_min(1e-30)
        more = height > best
        best, point = torch.where(more, height, best), torch.where(more[:, None], x, point)
        share = 0.5 * (0.05 + 0.95 * (1 + math.cos(math.pi * k / ascent.steps)) / 2)
        speed = 0.75 * speed - grad / dual_sizes(norm, grad)[:, None].clamp_min(1e-12)
        x = x + share * radius * steepest(norm, speed)
        x = room.center + into_ball(norm, x - room.center, limit, room)
    return [point, x]
