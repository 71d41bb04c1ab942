"""PropertySearch: one input and one property under search: what breaks it, and the nearest witness so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from radii._torch import Tensor, torch
from radii.attacks.exact import Floats
from radii.attacks.nearest_violation import goals_of, nearest_violation, refine_violation
from radii.bounds.region import Region
from radii.decide import values_of, violation, witness_at
from radii.engine.budget import Meter
from radii.engine.lipschitz import SlopeSearch
from radii.engine.probability import ProbabilitySearch
from radii.engine.reach import ReachSearch
from radii.engine.tuning import DEFAULT, Tuning
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, OutputSpec, Property, Query, Witness
from radii.problem.quantity import Quantity

RESOLUTION = 2.0**-20  # of the outputs: eight roundings of float32


@dataclass(eq=False)
class PropertySearch:
    """One instance, one property: the violation, and what is known of it from above."""

    classifier: Classifier
    instance: Instance
    asked: Property
    norm: Norm
    effort: str = "standard"
    seed: int = 0
    tuning: Tuning = DEFAULT
    best: Witness | None = None
    _rounds: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.outputs = self.classifier.reference(self.instance.x[None])[0]
        if not np.isfinite(self.outputs).all():
            raise InputError(f"input {self.instance.index}: expected finite outputs, got {self.outputs.tolist()}")
        self.spec: OutputSpec = violation(self.classifier, self.asked, self.instance.label, self.outputs)

    @property
    def broken_at_once(self) -> bool:
        """Whether the input itself breaks the property."""
        return self.spec.violated(values_of(self.classifier, self.spec.of, self.outputs))

    @property
    def prediction(self) -> int:
        """The class that the network gives the input."""
        return int(np.argmax(self.outputs))

    @property
    def diameter(self) -> float:
        """The radius of the ball that holds the whole domain."""
        return whole_domain(self.classifier, self.instance, self.norm)

    def attack(self) -> None:
        """Looks for the nearest violation by gradients."""
        for point in nearest_violation(self.classifier, self.instance.x, self.spec, self.norm, self.effort, self.seed):
            self.note(point)

    def strike(self, points: Tensor) -> float | None:
        """Replays the nearest of some points that break the property; the best witness's distance so far."""
        low, high = self.classifier.domain.ends(self.classifier.dtype)
        flat = points.to(self.classifier.torch_dtype).clamp(low, high)
        center = torch.from_numpy(self.instance.x.reshape(1, -1).copy())
        distance = torch.linalg.vector_norm((flat - center).double(), ord=self.norm.order, dim=1)
        goals = goals_of(self.classifier, self.spec)
        with torch.no_grad():
            margin = goals.least(self.classifier.logits(flat), distance.to(flat.dtype))
        known = math.inf if self.best is None else self.best.distance
        nearer = ((margin <= 0) & (distance < known)).nonzero()[:, 0]
        for i in nearer[distance[nearer].argsort()][: self.tuning.attacking.replays]:
            if self.note(flat[i].numpy()):
                break
        self._rounds += 1
        if self.tuning.attacking.refines(self._rounds):
            start = flat[margin.argsort()[: self.tuning.attacking.refined]]
            within = None if self.best is None else self.best.distance
            for point in refine_violation(self.classifier, self.instance.x, start, self.spec, self.norm, within):
                self.note(point)
        return None if self.best is None else self.best.distance

    def note(self, point: Floats) -> bool:
        """Replays a point on the original model; whether it is a nearer witness."""
        query = Query(self.instance, 1e9, self.asked, self.norm)
        found = witness_at(self.classifier, query, point)
        if found is None or (self.best is not None and found.distance >= self.best.distance):
            return False
        self.best = found
        return True

    def region(self, size: float) -> Region:
        """The ball of a size around the instance."""
        return Region.of_input(self.instance, size, self.norm, self.classifier.domain)

    def reach(self, epsilon: float, tolerance: float, meter: Meter) -> ReachSearch:
        """The search for how large the property's quantity gets in a ball."""
        values = values_of(self.classifier, self.spec.of, self.outputs)
        quantity = self.asked.quantity(self.classifier.classes, self.instance.label, values)
        start = 0.0 if quantity.per_distance else float(quantity.of_values(values))
        kind = SlopeSearch if quantity.per_distance else ReachSearch
        if quantity.of == "probabilities":
            kind = ProbabilitySearch
        resolution = self._resolution(quantity) / (epsilon if quantity.per_distance else 1.0)
        return kind(
            self.classifier,
            self.instance,
            quantity,
            self.norm,
            epsilon,
            tolerance,
            meter,
            start,
            seed=self.seed,
            resolution=resolution,
            tuning=self.tuning,
        )

    def _resolution(self, quantity: Quantity) -> float:
        """What outputs cannot tell apart: eight of their roundings, or twice what they are off at the input itself."""
        if quantity.of == "probabilities":
            return RESOLUTION
        found = RESOLUTION * max(float(np.abs(self.outputs).max()), 1e-30)
        if self.classifier.graph.logits is self.classifier.graph:  # small sums of large terms are off by more
            with torch.no_grad():
                real = self.classifier.logits(torch.from_numpy(self.instance.x[None].astype(np.float64))).numpy()[0]
            found = max(found, 2.0 * float(np.abs(real - self.outputs).max()))
        return found


def whole_domain(classifier: Classifier, instance: Instance, norm: Norm) -> float:
    """The radius of the ball that holds the whole domain, for inputs without a witness."""
    if not classifier.domain.bounded:
        raise InputError("radius: no witness was found and the domain is unbounded; give a limit (the largest ε)")
    return classifier.domain.farthest(instance.x, norm)
