"""ClassSearch: one input under search for classification: the search of its radius, and the nearest witness so far."""

from __future__ import annotations

import numpy as np

from radii._torch import Tensor, torch
from radii.attacks.refine import refine
from radii.bounds.region import Region
from radii.decide import witness_at
from radii.engine.budget import Meter
from radii.engine.output_rows import margins
from radii.engine.property_search import whole_domain
from radii.engine.radius_search import RadiusSearch
from radii.engine.tuning import DEFAULT, Tuning
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm, Property, Query, Tolerance, Witness


class ClassSearch:
    """One instance under search: what is known of it from above."""

    def __init__(
        self,
        classifier: Classifier,
        instance: Instance,
        property: Property,
        norm: Norm,
        state: Witness | int | None,
        tuning: Tuning = DEFAULT,
    ) -> None:
        self.classifier, self.instance, self.property, self.norm = classifier, instance, property, norm
        self.state, self.tuning = state, tuning
        self._rounds = 0
        self.best: Witness | None = state if isinstance(state, Witness) else None

    def search(self, meter: Meter, tolerance: Tolerance, limit: float | None, deployed: bool) -> RadiusSearch:
        """The search of this instance's radius from what the attack found."""
        upper = None if self.best is None else self.best.distance
        if limit is None and upper is None:
            limit = whole_domain(self.classifier, self.instance, self.norm)
        asked = margins(self.classifier, self.instance.label, self.property)
        return RadiusSearch(
            asked, self.region, tolerance, meter, self.attack, deployed, upper, limit, tuning=self.tuning
        )

    def region(self, epsilon: float) -> Region:
        """The ball of size ε around the instance."""
        return Region.of_input(self.instance, epsilon, self.norm, self.classifier.domain)

    def attack(self, points: Tensor) -> float | None:
        """Replays the nearest of these points that break the network; the best witness's distance so far."""
        low, high = self.classifier.domain.low, self.classifier.domain.high
        flat = points.to(self.classifier.torch_dtype).clamp(low, high)
        outputs = self.classifier.logits(flat)
        label = self.instance.label
        assert isinstance(self.property, Classification)  # margins() refused any other before the search began
        targets = self.property.targets(self.classifier.classes, label)
        margin = outputs[:, label] - outputs[:, list(targets)].amax(1)
        center = torch.from_numpy(self.instance.x.reshape(1, -1).copy())
        distance = torch.linalg.vector_norm((flat - center).double(), ord=self.norm.order, dim=1)
        known = torch.inf if self.best is None else self.best.distance
        nearer = ((margin <= 0) & (distance < known)).nonzero()[:, 0]
        for i in nearer[distance[nearer].argsort()][: self.tuning.attacking.replays]:
            query = Query(self.instance, float(known) if np.isfinite(known) else 1e9, self.property, self.norm)
            witness = witness_at(self.classifier, query, flat[i].numpy())
            if witness is not None and (self.best is None or witness.distance < self.best.distance):
                self.best = witness
                break
        self._rounds += 1
        if self.tuning.attacking.refines(self._rounds):
            self._refine(flat[margin.argsort()[: self.tuning.attacking.refined]])
        return None if self.best is None else self.best.distance

    def _refine(self, points: Tensor) -> None:
        """Gradient steps from the most promising points: dear, so not every time."""
        count = len(points)
        centers = np.repeat(self.instance.x[None], count, axis=0)
        labels = np.full(count, self.instance.label)
        target = getattr(self.property, "target", None)
        within = None if self.best is None else np.full(count, self.best.distance)
        found, distances = refine(
            self.classifier, centers, labels, points.numpy(), self.norm, targets=target, within=within
        )
        nearest = int(np.argmin(distances))
        if np.isfinite(distances[nearest]) and (self.best is None or distances[nearest] < self.best.distance):
            query = Query(self.instance, float(distances[nearest]), self.property, self.norm)
            self.best = witness_at(self.classifier, query, found[nearest]) or self.best
