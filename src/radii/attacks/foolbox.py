"""Any Foolbox attack as a decider (`pip install 'radii[foolbox]'`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import optional
from radii._torch import torch
from radii.attacks.base import Attack, Refused
from radii.attacks.exact import Floats, pull_in
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Query
from radii.problem.property import target_of


@dataclass(frozen=True)
class Foolbox(Attack):
    """BROKEN where a Foolbox attack finds a point in the ball that replays on the original model.

    `method` is a Foolbox attack object, or the name of a class in `foolbox.attacks`, made with its defaults. Attacks
    with a fixed ε run once for each ε asked, minimum-norm attacks once for all. Use an attack of the query's norm.
    """

    name = "foolbox"
    takes = ("classes",)
    method: Any
    seed: int = 0

    def __post_init__(self) -> None:
        attacks = optional("foolbox", "foolbox", "to run Foolbox attacks").attacks
        if isinstance(self.method, str):
            maker = getattr(attacks, self.method, None)
            if not isinstance(maker, type):
                raise InputError(f"foolbox attack: expected a class of foolbox.attacks, got {self.method!r}")
            object.__setattr__(self, "method", maker())
        if not isinstance(self.method, attacks.base.Attack):
            raise InputError(f"foolbox attack: expected an attack or its name, got {self.method!r}")

    @property
    def identity(self) -> str:
        foolbox = optional("foolbox", "foolbox")
        fields = ", ".join(f"{k}={v!r}" for k, v in sorted(vars(self.method).items()) if _plain(v))
        return f"foolbox-{foolbox.__version__}:{type(self.method).__name__}({fields}, seed={self.seed})"

    def batch(self, query: Query) -> Hashable:
        minimal = isinstance(self.method, optional("foolbox", "foolbox").attacks.base.MinimizationAttack)
        return query.norm, None if minimal else query.epsilon, target_of(query.property) is None

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        foolbox = optional("foolbox", "foolbox")
        if not classifier.domain.bounded:
            raise InputError("foolbox attacks: expected a bounded domain, got an unbounded one; set domain=(low, high)")
        bounds = (classifier.domain.low, classifier.domain.high)
        model = foolbox.PyTorchModel(classifier.torch_module().eval(), bounds=bounds, device="cpu")
        minimal = isinstance(self.method, foolbox.attacks.base.MinimizationAttack)
        centers = np.stack([q.instance.x.reshape(classifier.input_shape) for q in queries])
        x = torch.from_numpy(centers.astype(classifier.dtype))
        goal, epsilon = _goal(foolbox, queries), None if minimal else queries[0].epsilon
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            points = self._points(model, x, goal, epsilon).reshape(len(queries), -1)
        if epsilon is not None:
            centers, limits = x.numpy().reshape(len(queries), -1), np.full(len(queries), epsilon)
            points = pull_in(queries[0].norm, points, centers, limits, classifier.domain)
        yield points

    def _points(self, model: Any, x: torch.Tensor, goal: Any, epsilon: float | None) -> Floats:
        try:
            raw, clipped, _ = self.method(model, x, goal, epsilons=epsilon)
        except (ValueError, AssertionError, RuntimeError) as error:
            raise Refused(f"{type(self.method).__name__}: {str(error) or type(error).__name__}") from error
        found = raw if epsilon is None else clipped
        return np.array(found.detach().numpy())


def _goal(foolbox: Any, queries: Sequence[Query]) -> Any:
    if target_of(queries[0].property) is not None:
        return foolbox.criteria.TargetedMisclassification(
            torch.tensor([target_of(query.property) for query in queries])
        )
    return foolbox.criteria.Misclassification(torch.tensor([query.instance.label for query in queries]))


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None), tuple))
