"""Measures of a data set for one property: satisfaction, security and accuracy (Casadio et al. 2022, definitions 5–7).

satisfaction  the share of inputs whose whole ball keeps the property: [proven, not refuted]
security      the share of inputs on which projected gradient ascent on the property's own quantity finds no violation
accuracy      the share of points, drawn uniformly from the balls, that keep the property

The three are found apart from each other, so that each checks the others: an input that is proven and that an attack or
a sample breaks is an alarm, counts as refuted and is named. So proven ≤ not refuted ≤ security holds in every table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radii.attacks.exact import pull_in
from radii.attacks.pgd import Pgd
from radii.attacks.reach import Ascent, largest
from radii.decide import Budget, Clock, Decider, replay, values_of, violation
from radii.engine.prepare import working
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, Property, Query, Verdict
from radii.stats.confidence_intervals import share_interval
from radii.verifiers.support import refuse_unsupported

if TYPE_CHECKING:
    import pandas as pd

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the measures are taken; they mean little without these numbers."""

    epsilon: float
    norm: Norm
    budget: Budget  # of the verifier, per input and property
    attack: Ascent = Ascent()  # steps and restarts per row of the property's quantity
    samples: int = 100  # per input
    confidence: float = 0.95  # of the interval around the accuracy
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of one input and one property."""

    property: str
    index: int
    label: int
    verdict: Verdict
    attacked: bool  # the attack found a violation
    violations: int  # among the samples
    cpu_seconds: float
    alarm: str = ""  # what was proven although a witness breaks it; the verdict is then BROKEN


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of one property on some inputs, as shares from 0 to 1; `label` is None for all classes."""

    property: str
    label: int | None
    inputs: int
    proven: float
    not_refuted: float
    security: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    cpu_seconds: float  # per input


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one network on one data set, property by property.

    The interval of `accuracy` (Clopper and Pearson 1934) is about the balls of these inputs, not about other inputs.
    Points are uniform in ball ∩ domain for L∞; for L2 and L1 they are uniform in the ball, and what leaves the domain
    is moved to its edge.
    """

    classifier: str
    data: str
    settings: Settings
    outcomes: tuple[Outcome, ...] = field(repr=False)

    @property
    def rows(self) -> tuple[Measured, ...]:
        """One row per property, in the order they were asked."""
        names = dict.fromkeys(one.property for one in self.outcomes)
        return tuple(self._row([one for one in self.outcomes if one.property == name], None) for name in names)

    @property
    def by_class(self) -> tuple[Measured, ...]:
        """One row per property and class of the inputs."""
        groups: dict[tuple[str, int], list[Outcome]] = {}
        for one in self.outcomes:
            groups.setdefault((one.property, one.label), []).append(one)
        return tuple(self._row(group, label) for (_, label), group in sorted(groups.items()))

    @property
    def alarms(self) -> tuple[str, ...]:
        """Every input on which a proof and a witness cannot both be right."""
        size = self.settings.epsilon
        found = [one for one in self.outcomes if one.alarm]
        return tuple(f"{self.classifier}, input {o.index}, {o.property}, ε = {size:g}: {o.alarm}" for o in found)

    def to_frame(self, *, by_class: bool = False) -> pd.DataFrame:
        """The rows as a table."""
        import pandas as pd

        rows = self.by_class if by_class else self.rows
        columns = [name for name in Measured.__dataclass_fields__ if by_class or name != "label"]
        return pd.DataFrame([[getattr(row, name) for name in columns] for row in rows], columns=columns)

    def within(self, classifier: str, settings: Settings) -> tuple[Outcome, ...]:
        """The outcomes, if they are of the same network and norm and of a ball that is not larger."""
        mine = self.settings
        if (self.classifier, mine.norm) != (classifier, settings.norm) or mine.epsilon > settings.epsilon:
            raise InputError(
                f"below: expected measures of {classifier} in {settings.norm.name} for an ε of at most "
                f"{settings.epsilon:g}, got {self.classifier} in {mine.norm.name} for {mine.epsilon:g}"
            )
        return self.outcomes

    def _row(self, group: list[Outcome], label: int | None) -> Measured:
        def share(good: Sequence[bool]) -> float:
            return sum(good) / len(good)

        draws = self.settings.samples * len(group)
        kept = draws - sum(one.violations for one in group)
        low, high = share_interval(kept, draws, self.settings.confidence)
        return Measured(
            group[0].property,
            label,
            len(group),
            proven=share([one.verdict is Verdict.ROBUST for one in group]),
            not_refuted=share([one.verdict is not Verdict.BROKEN for one in group]),
            security=share([not one.attacked for one in group]),
            accuracy=kept / draws,
            accuracy_low=float(low),
            accuracy_high=float(high),
            cpu_seconds=sum(one.cpu_seconds for one in group) / len(group),
        )


def take_measures(
    classifier: Classifier,
    instances: Sequence[Instance],
    properties: Sequence[Property],
    settings: Settings,
    progress: Told | None,
    below: Measures | None,
    prover: Decider,
) -> Iterator[Outcome]:
    """The outcome of every input and property; what cannot be asked is refused before the first.

    `below` are the measures for a smaller ε: what is broken in a ball is broken in every larger one.
    `prover` gives the verdicts.
    """
    asked = [(prop, one) for prop in properties for one in instances if prop.asks(one.label)]
    if not asked:
        raise InputError("measures: expected properties that ask about these inputs, got none; leave the target out")
    for prop in properties:
        refuse_unsupported(prover, classifier, prop, settings.norm, direct=False)
    for prop, instance in asked:
        prop.check(classifier.classes, instance.label)
    smaller = () if below is None else below.within(classifier.name, settings)
    broken = {(one.property, one.index): one for one in smaller if one.verdict is Verdict.BROKEN}
    settled: dict[int, list[tuple[Property, Verdict]]] = {}
    with working(classifier):
        for done, (prop, instance) in enumerate(asked):
            # A target of a regression network is no class; only properties without a label are asked about it.
            named = instance if instance.label < classifier.classes else replace(instance, label=0)
            query = Query(named, settings.epsilon, prop, settings.norm)
            mine = settled.setdefault(instance.index, [])
            inner = broken.get((str(prop), instance.index))
            known = implied(query, mine) if inner is None else Verdict.BROKEN
            attacked = True if inner is not None and inner.attacked else None
            found = _outcome(classifier, query, prover, settings, known, attacked)
            mine.append((prop, found.verdict))
            yield replace(found, label=instance.label)
            if progress is not None:
                progress(done + 1, len(asked))


def implied(query: Query, settled: Sequence[tuple[Property, Verdict]]) -> Verdict | None:
    """What the verdicts of other properties in the same ball say of this one."""
    asked, size = query.property, query.epsilon
    for other, verdict in settled:
        if verdict is Verdict.ROBUST and other.implies(asked, size):
            return Verdict.ROBUST
        if verdict is Verdict.BROKEN and asked.implies(other, size):
            return Verdict.BROKEN
    return None


def _outcome(
    classifier: Classifier,
    query: Query,
    prover: Decider,
    settings: Settings,
    known: Verdict | None,
    attacked: bool | None,
) -> Outcome:
    """One input and property: the verdict, the attack and the samples, held against each other."""
    clock, alarm = Clock(), ""
    if attacked is None:
        attacked = is_broken(classifier, query, settings)
    violations = violated(classifier, query, settings)
    verdict = known or prover.decide(classifier, [query], settings.budget)[0].verdict
    if attacked or violations:
        if verdict is Verdict.ROBUST:
            alarm = f"proven, but {'the attack breaks it' if attacked else f'{violations} samples break it'}"
        verdict = Verdict.BROKEN
    where = query.instance
    return Outcome(str(query.property), where.index, where.label, verdict, attacked, violations, clock.cpu, alarm)


def is_broken(classifier: Classifier, query: Query, settings: Settings) -> bool:
    """Whether projected gradients find a violation that replays on the original model."""
    asked, instance = query.property, query.instance
    center = classifier.reference(instance.x[None])[0]
    of = "probabilities" if asked.speaks_of == "probabilities" else "outputs"
    try:
        quantity = asked.quantity(classifier.classes, instance.label, values_of(classifier, of, center))
    except InputError:  # a property of one's own without a quantity: its clauses are attacked
        attack = Pgd(settings.attack.steps, settings.attack.restarts, seed=settings.seed)
        return attack.decide(classifier, [query], Budget(seconds=None))[0].verdict is Verdict.BROKEN
    found = largest(
        classifier, instance.x, quantity, query.norm, query.epsilon, ascent=settings.attack, seed=settings.seed
    )
    return found is not None and replay(classifier, query, found.point) is not None


def violated(classifier: Classifier, query: Query, settings: Settings) -> int:
    """How many of the drawn points break the property on the original model."""
    x = query.instance.x
    points = drawn(classifier, query, settings.samples, np.random.default_rng((settings.seed, query.instance.index)))
    both = classifier.reference(np.concatenate([x[None], points.reshape(-1, *x.shape)]).astype(classifier.dtype))
    spec = violation(classifier, query.property, query.instance.label, both[0])
    values = values_of(classifier, spec.of, both[1:])
    count = 0
    for point, value in zip(points, values):
        if spec.violated(value, query.norm.distance(point, x.reshape(-1))):
            count += replay(classifier, query, point) is not None
    return count


def drawn(classifier: Classifier, query: Query, count: int, rng: np.random.Generator) -> NDArray[np.floating[Any]]:
    """Points of the ball as flat rows: uniform in ball ∩ domain for L∞, else uniform in the ball and clipped."""
    center, domain = query.instance.x.reshape(-1).astype(np.float64), classifier.domain
    size, order = (count, center.size), query.norm.name
    if order == "linf":
        low, high = np.maximum(center - query.epsilon, domain.low), np.minimum(center + query.epsilon, domain.high)
        points = rng.uniform(low, high, size)
    elif order == "l2":
        way = rng.standard_normal(size)
        far = query.epsilon * rng.random((count, 1)) ** (1 / center.size)
        points = center + far * way / np.linalg.norm(way, axis=1, keepdims=True)
    else:  # the first d of d + 1 exponentials, over the sum of all, are uniform in the simplex
        parts = rng.exponential(size=(count, center.size + 1))
        share = parts[:, :-1] / parts.sum(1, keepdims=True)
        points = center + query.epsilon * share * rng.choice([-1.0, 1.0], size)
    centers = np.repeat(center[None], count, 0)
    return pull_in(query.norm, points.astype(classifier.dtype), centers, np.full(count, query.epsilon), domain)
