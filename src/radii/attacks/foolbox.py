"""Any Foolbox attack as a decider (`pip install 'radii[foolbox]'`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from radii._check import optional
from radii.attacks.base import Attack
from radii.attacks.exact import Floats, pull_in
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Classification, Query


@dataclass(frozen=True)
class FoolboxAttack(Attack):
    """BROKEN where a Foolbox attack finds a point in the ball that replays on the original model.

    `attack` is a Foolbox attack object, or the name of a class in `foolbox.attacks`, made with its defaults. Attacks
    with a fixed ε run once for each ε asked, minimum-norm attacks once for all. Use an attack of the query's norm.
    """

    attack: Any
    seed: int = 0

    def __post_init__(self) -> None:
        attacks = optional("foolbox", "foolbox", "to run Foolbox attacks").attacks
        if isinstance(self.attack, str):
            maker = getattr(attacks, self.attack, None)
            if not isinstance(maker, type):
                raise InputError(f"foolbox attack: expected a class of foolbox.attacks, got {self.attack!r}")
            object.__setattr__(self, "attack", maker())
        if not isinstance(self.attack, attacks.base.Attack):
            raise InputError(f"foolbox attack: expected an attack or its name, got {self.attack!r}")

    @property
    def identity(self) -> str:
        foolbox = optional("foolbox", "foolbox")
        fields = ", ".join(f"{k}={v!r}" for k, v in sorted(vars(self.attack).items()) if _plain(v))
        return f"foolbox-{foolbox.__version__}:{type(self.attack).__name__}({fields}, seed={self.seed})"

    def supports(self, query: Query) -> str:
        known = isinstance(query.property, Classification)
        return "" if known else f"expected a classification property, got {query.property.kind}"

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        foolbox = optional("foolbox", "foolbox")
        if not classifier.domain.bounded:
            raise InputError("foolbox attacks: expected a bounded domain, got an unbounded one; set domain=(low, high)")
        module = classifier.torch_module().eval()
        bounds = (classifier.domain.low, classifier.domain.high)
        model = foolbox.PyTorchModel(module, bounds=bounds, device="cpu")
        minimal = isinstance(self.attack, foolbox.attacks.base.MinimizationAttack)
        result = np.full((len(queries), classifier.size), np.nan, dtype=np.float32)
        for (epsilon, targeted), members in _groups(queries, minimal).items():
            part = [queries[i] for i in members]
            x = torch.from_numpy(np.stack([q.instance.x.reshape(classifier.input_shape) for q in part]))
            goal = self._goal(foolbox, part, targeted)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                points = self._points(foolbox, model, x, goal, epsilon)
            flat, centers = points.reshape(len(part), -1), x.numpy().reshape(len(part), -1)
            if epsilon is not None:
                flat = pull_in(part[0].norm, flat, centers, np.full(len(part), epsilon), classifier.domain)
            result[members] = flat
        yield result

    def _goal(self, foolbox: Any, queries: Sequence[Query], targeted: bool) -> Any:
        if targeted:
            return foolbox.TargetedMisclassification(torch.tensor([_target(query) for query in queries]))
        return foolbox.Misclassification(torch.tensor([query.instance.label for query in queries]))

    def _points(self, foolbox: Any, model: Any, x: torch.Tensor, goal: Any, epsilon: float | None) -> Floats:
        try:
            raw, clipped, _ = self.attack(model, x, goal, epsilons=epsilon)
        except (ValueError, AssertionError) as error:
            raise InputError(f"foolbox attack {type(self.attack).__name__}: {error}") from error
        found = raw if epsilon is None else clipped
        return np.asarray(found.detach().numpy(), dtype=np.float32)


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, type(None), tuple))


def _target(query: Query) -> int | None:
    return query.property.target if isinstance(query.property, Classification) else None


def _groups(queries: Sequence[Query], minimal: bool) -> dict[tuple[float | None, bool], list[int]]:
    """The queries that one call can serve: of one ε (unless the attack minimises) and all targeted or none."""
    groups: dict[tuple[float | None, bool], list[int]] = {}
    for i, query in enumerate(queries):
        key = (None if minimal else query.epsilon, _target(query) is not None)
        groups.setdefault(key, []).append(i)
    return groups
