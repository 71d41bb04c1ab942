"""The minimum-norm attack: for each instance, the nearest input that the network takes for another class.

Scouts run on every likely target; the nearest targets get restarts with random starts and with gradients that leak
through inactive neurons by different amounts; the best points are polished, bisected onto the decision boundary and
replayed on the original model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import number, whole
from radii._torch import Tensor, torch
from radii.attacks.aims import Classes
from radii.attacks.base import Attack
from radii.attacks.batches import in_batches, known_surface
from radii.attacks.boundary_projection import projecting
from radii.attacks.effort import Effort
from radii.attacks.exact import Floats, distances, settle
from radii.attacks.geometry import Room, descend_to, sizes
from radii.attacks.rays import Rays
from radii.attacks.rows import Rows
from radii.attacks.shrink import Schedule, shrinking
from radii.attacks.surrogate import Surface
from radii.attacks.targets import check_inputs, check_targets
from radii.models.classifier import Classifier
from radii.problem import LINF, Norm, Query
from radii.problem.property import target_of

_SCOUT_LEAKS = (0.02, 0.0, 0.05, 0.01, 0.1, 0.05)  # the last value serves all later rounds
_MOST_TARGETS = 64  # targets tried in a network with many classes: the likeliest ones
_CHUNK_VALUES = 2**24  # values of the points that one chunk of instances may hold


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The nearest broken points found: one per instance, or one for each (instance, target).

    Where none was found the distance is infinite, the point NaN and the prediction −1. `targets` has the shape of
    `distances`; −1 stands for any other class.
    """

    points: Floats = field(repr=False)
    distances: NDArray[np.float64]
    predictions: NDArray[np.int64]
    targets: NDArray[np.int64]
    evaluations: int = 0


def minimum_norm(
    classifier: Classifier,
    x: Any,
    labels: Any,
    norm: Norm | str = LINF,
    targets: Any = None,
    effort: Effort | str = "standard",
    seed: int = 0,
    device: torch.device | str = "cpu",
    seconds: float | None = None,
) -> Minimum:
    """The nearest broken point of each input, as far as gradients can find it.

    `targets` is None for any other class, one class (or one for each input), or "each": then there is a column for
    every class in the result, that of the label empty. Every point is an input of the domain in the model's
    own floats that breaks the original model when replayed; its distance is exact. After so many CPU `seconds` it ends
    with what it has found.
    """
    end = math.inf if seconds is None else time.process_time() + number(seconds, "seconds", low=0.0)
    batch, labels = check_inputs(classifier, x, labels)
    wanted, each = check_targets(classifier, labels, targets)
    norm, effort = Norm.of(norm), Effort.of(effort)
    surface = known_surface(classifier, device)
    before = surface.evaluations
    noise = noise_of(surface, effort, whole(seed, "seed"))
    hunt = Hunt(classifier, surface, norm, effort, noise, end)
    parts = [hunt(batch[i], labels[i], wanted[i], each) for i in _chunks(len(batch), surface, effort, each)]
    shape = (classifier.classes,) if each else ()
    points = [p for p, _ in parts] or [np.zeros((0, *shape, *classifier.input_shape), classifier.dtype)]
    classes = [c for _, c in parts] or [np.zeros((0, *shape), np.int64)]
    found = np.concatenate(points)
    flat = found.reshape(-1, surface.size)
    centers = np.repeat(batch.reshape(len(batch), surface.size), classifier.classes if each else 1, axis=0)
    table = np.broadcast_to(np.arange(classifier.classes), found.shape[:2]) if each else wanted
    return Minimum(
        found,
        distances(norm, flat, centers).reshape(found.shape[: 1 + each]),
        np.concatenate(classes),
        np.array(table),
        surface.evaluations - before,
    )


@dataclass(frozen=True)
class MinimumNorm(Attack):
    """BROKEN where the nearest broken point found lies in the ball: one search answers every ε asked of an input."""

    name = "minimum_norm"
    takes = ("classes",)
    effort: str = "standard"
    seed: int = 0

    def __post_init__(self) -> None:
        Effort.of(self.effort)

    @property
    def identity(self) -> str:
        # Stored results have this name: a change would make them unknown.
        return f"attack(effort={self.effort}, seed={self.seed})"

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        keys = [(query.instance.fingerprint, target_of(query.property)) for query in queries]
        places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        first = [queries[keys.index(key)] for key in places]
        x = np.stack([query.instance.x.reshape(classifier.input_shape) for query in first])
        labels = np.array([query.instance.label for query in first])
        targets = [target_of(query.property) for query in first]
        points = np.full(x.shape, np.nan, dtype=classifier.dtype)
        for target in dict.fromkeys(targets):
            chosen = np.array([i for i, one in enumerate(targets) if one == target])
            found = minimum_norm(classifier, x[chosen], labels[chosen], queries[0].norm, target, self.effort, self.seed)
            points[chosen] = found.points
        yield points[[places[key] for key in keys]]


class Hunt:
    """The attack on one chunk of instances."""

    def __init__(
        self,
        classifier: Classifier,
        surface: Surface,
        norm: Norm,
        effort: Effort,
        noise: NDArray[np.float32],
        end: float,
    ) -> None:
        self.classifier, self.surface, self.norm, self.effort, self.end = classifier, surface, norm, effort, end
        self.low, self.high = classifier.domain.ends(classifier.dtype)
        self.noise = torch.from_numpy(noise).to(surface.device)

    def __call__(
        self, x: Floats, labels: NDArray[np.int64], targets: NDArray[np.int64], each: bool
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Points and predictions, replayed: (instances, …), or (instances, classes, …) for each target."""
        center = torch.from_numpy(np.array(x.reshape(len(x), -1))).to(self.surface.device)
        rivals = self._rivals(center, labels, targets, each)
        rows = self._rows(center, labels, rivals)
        per = rivals.shape[1]
        with self.surface.until(self.end):
            self.run(rows, len(rows) if each else len(x), 1 if each else per)
        best = rows.best.reshape(len(x), per).cpu().numpy()
        points = rows.point.reshape(len(x), per, -1).cpu().numpy()
        points[~np.isfinite(best)] = np.nan
        if each:
            return self._each(x, labels, rivals.cpu().numpy(), points, best)
        return self._one(x, labels, targets, points, best)

    def run(self, rows: Rows, groups: int, scouts: int) -> None:
        """The whole attack on some rows, of which each group has its own record, `scouts` per group."""
        rows.note(rows.room.center)
        self._scout(rows, scouts)
        for round in range(self.effort.rounds):
            self._restart(rows, groups, round)
        self._polish(rows, groups)
        rows.bisect(14)

    def _rivals(self, center: Tensor, labels: NDArray[np.int64], targets: NDArray[np.int64], each: bool) -> Tensor:
        """The targets to try, one row per instance, −1 for any.

        The likeliest ones; for a network that ends in a ReLU also number `classes`, the tie at 0.
        """
        surface, effort = self.surface, self.effort
        if not each and bool((targets >= 0).all()):
            fixed = torch.from_numpy(np.array(targets)).to(surface.device)[:, None]
            zero = torch.full_like(fixed, surface.classes)
            return torch.cat([fixed.expand(-1, effort.free), *([zero] if surface.rectified else [])], dim=1)
        likely = self._likely(center, labels, None if each else _MOST_TARGETS)
        if each:
            return likely
        if likely.shape[1] > effort.targets:
            rows = self._rows(center, labels, likely)
            near = self._linear(rows).reshape(likely.shape).argsort(dim=1, stable=True)[:, : effort.targets]
            likely = likely.gather(1, near)
        return torch.nn.functional.pad(likely, (effort.free, 0), value=-1)

    def _likely(self, center: Tensor, labels: NDArray[np.int64], most: int | None) -> Tensor:
        """The classes with the largest outputs but the label, in their order."""
        surface = self.surface
        scores = surface.outputs(center).nan_to_num()
        if surface.rectified:
            scores[:, surface.classes] = torch.inf
        scores[torch.arange(len(labels)), torch.from_numpy(labels)] = -torch.inf
        count = scores.shape[1] - 1 if most is None else min(scores.shape[1] - 1, most)
        return scores.topk(count, dim=1).indices.sort(dim=1).values

    def _linear(self, rows: Rows) -> Tensor:
        """The distances that the linearised margins promise."""
        found = torch.empty_like(rows.best)

        def probe(part: Rows, x: Tensor, leak: Tensor, place: Tensor | None) -> None:
            margin, grad = part.slope(x, leak)
            step = descend_to(self.norm, grad, margin, part.room)
            short = (grad * step).sum(1) > -0.999 * margin
            distance = sizes(self.norm, step)
            if place is not None:
                found[place] = torch.where(short & (margin > 0), 1e6 * (1 + margin), distance)

        leak = torch.full_like(rows.best, _SCOUT_LEAKS[0])
        in_batches(rows, rows.room.center, leak, probe, torch.arange(len(rows), device=leak.device))
        return found

    def _rows(self, center: Tensor, labels: NDArray[np.int64], rivals: Tensor) -> Rows:
        per = rivals.shape[1]
        owners = torch.from_numpy(labels).to(center.device).repeat_interleave(per)
        room = Room(center.repeat_interleave(per, 0), self.low, self.high)
        return Rows(self.surface, self.norm, room, Classes(owners, rivals.reshape(-1)))

    def _scout(self, rows: Rows, per: int) -> None:
        """First runs from the centres; scouts of one instance differ in how much their gradients leak."""
        turn = torch.arange(len(rows), device=rows.best.device) % per
        leak = torch.tensor(_SCOUT_LEAKS, device=rows.best.device)[turn.clamp_max(len(_SCOUT_LEAKS) - 1)]
        in_batches(rows, rows.room.center, leak, projecting(6 if self.norm.name == "l1" else 2))
        in_batches(rows, rows.room.center, leak, shrinking(Schedule(self.effort.scout)))
        rows.bisect(6)

    def _nearest(self, rows: Rows, groups: int, keep: int) -> Tensor:
        """The rows of the nearest targets of each group, (groups, keep); scouts that take any class come last."""
        per = len(rows) // groups
        best = torch.where(rows.aims.free, torch.inf, rows.best) if keep > 2 else rows.best
        order = best.reshape(groups, per).argsort(dim=1, stable=True)[:, :keep]
        return order + per * torch.arange(groups, device=order.device)[:, None]

    def _restart(self, rows: Rows, groups: int, round: int) -> None:
        effort = self.effort
        base = self._nearest(rows, groups, effort.keep)
        index = base.repeat_interleave(effort.restarts, dim=1).reshape(-1)
        part = rows.take(index)
        turn = torch.arange(len(index), device=index.device) % effort.restarts + round * effort.restarts
        record = rows.best.reshape(groups, -1).amin(1).repeat_interleave(len(index) // groups)
        typical = record.nan_to_num(posinf=0.1)
        reach = typical * torch.tensor(effort.reaches, device=index.device)[turn % len(effort.reaches)]
        start = part.room.clamp(part.room.center + reach[:, None] * self.noise[turn])
        leak = torch.tensor(effort.leaks, device=index.device)[turn % len(effort.leaks)]
        part.best = torch.full_like(part.best, torch.inf)
        in_batches(part, start, leak, shrinking(Schedule(effort.steps)))
        rows.merge(part, index)

    def _polish(self, rows: Rows, groups: int) -> None:
        index = self._nearest(rows, groups, 2).reshape(-1)
        part = rows.take(index)
        leak = torch.zeros_like(part.best)
        sparse = self.norm.name == "l1"  # its balls have sharp corners: more and shorter steps
        steps, first = (2 * self.effort.polish, 0.1) if sparse else (self.effort.polish, 0.5)
        schedule = Schedule(steps, step=(first, 0.0005), change=(0.04, 0.0002), momentum=0.75)
        in_batches(part, part.point, leak, shrinking(schedule))
        in_batches(part, part.point, leak, projecting(self.effort.project))
        rows.merge(part, index)

    def _one(
        self,
        x: Floats,
        labels: NDArray[np.int64],
        targets: NDArray[np.int64],
        points: Floats,
        best: Floats,
    ) -> tuple[Floats, NDArray[np.int64]]:
        """For each instance the nearest point that replays."""
        flat = x.reshape(len(x), -1)
        result = np.full_like(flat, np.nan)
        classes = np.full(len(x), -1, dtype=np.int64)
        order = best.argsort(axis=1, kind="stable")
        for rank in range(order.shape[1]):
            open_ = np.flatnonzero((classes < 0) & np.isfinite(best[np.arange(len(x)), order[:, rank]]))
            if not len(open_):
                break
            chosen = points[open_, order[open_, rank]]
            result[open_], classes[open_] = settle(self.classifier, flat[open_], labels[open_], targets[open_], chosen)
        result, classes = Rays(self.classifier, self.norm, flat, labels, targets).search(self.surface, result)
        return result.reshape(len(x), *self.classifier.input_shape), classes

    def _each(
        self, x: Floats, labels: NDArray[np.int64], rivals: NDArray[np.int64], points: Floats, best: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """For each instance and class the nearest point that replays."""
        n, classes, size = len(x), self.classifier.classes, self.surface.size
        table = np.full((n, classes, size), np.nan, dtype=points.dtype)
        np.put_along_axis(table, np.minimum(rivals, classes - 1)[:, :, None], points, axis=1)
        if self.surface.rectified:
            shared = best[:, -1:] < best  # all outputs tie at 0: one point for every target
            points = np.where(shared[:, :, None], points[:, -1:], points)
            table[:] = np.nan
            np.put_along_axis(table, rivals[:, :-1, None], points[:, :-1], axis=1)
        table[np.arange(n), labels] = np.nan
        centers = np.repeat(x.reshape(n, -1), classes, axis=0)
        goals = np.tile(np.arange(classes), n)
        found, predictions = settle(
            self.classifier, centers, np.repeat(labels, classes), goals, table.reshape(n * classes, size)
        )
        return found.reshape(n, classes, *self.classifier.input_shape), predictions.reshape(n, classes)


def noise_of(surface: Surface, effort: Effort, seed: int) -> NDArray[np.float32]:
    """Random starts in [−1, 1], the same for every instance, so that batches do not change results."""
    draws = np.random.default_rng(seed).uniform(-1, 1, (effort.restarts * effort.rounds, surface.size))
    return draws.astype(np.float32)


def _chunks(count: int, surface: Surface, effort: Effort, each: bool) -> Iterator[slice]:
    rows = (surface.classes if each else 1) * max(
        effort.keep * effort.restarts * (effort.rounds > 0), effort.free + effort.targets
    )
    step = max(1, _CHUNK_VALUES // (rows * surface.size))
    return (slice(i, i + step) for i in range(0, count, step))
