"""Accuracy and global robustness of one network on a random sample, with guarantees for unseen inputs.

R(g) is the share of inputs whose softmax moves by less than γ anywhere in the ball, D(ḡ) the mean of its largest change
("Global Adversarial Robustness Guarantees for Neural Networks", sections 3 and 4). Both come from the same reaches:
proven ends and witnessed ends bracket each, and the guarantee adds what a sample can say. Many networks measured so
show how accuracy and robustness go together (the paper's Figures 2 to 4).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radii._check import number, whole
from radii.attacks.reach import largest
from radii.data import Dataset, load_dataset
from radii.decide import Budget, values_of
from radii.engine.native import Native
from radii.engine.prepare import working
from radii.models.classifier import Classifier
from radii.models.load import load_classifier
from radii.problem import Instance, Norm, Property
from radii.problem.property import measured
from radii.stats.confidence_intervals import mean_interval, share_interval, share_lower, share_upper
from radii.study.sample import draw

MEASURED = "measured.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """How networks are measured. Without proofs only attacks speak, as in the paper, and upper ends are 1."""

    epsilon: float
    gamma: float = 0.5
    inputs: int = 200
    norm: str = "linf"
    seconds: float = 2.0  # of CPU time per input, with proofs
    proofs: bool = True
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        number(self.epsilon, "epsilon", low=0.0, strict=True)
        number(self.gamma, "gamma", low=0.0, high=1.0, strict=True)
        whole(self.inputs, "inputs", low=2)
        Norm.of(self.norm)


@dataclass(frozen=True, slots=True)
class GlobalRobustness:
    """What a sample says of a network. `…_low` and `…_high` hold for unseen inputs with the stated confidence each."""

    accuracy: float
    accuracy_low: float
    accuracy_high: float
    proven: float  # share of the sample whose largest change is proven to be below γ
    not_broken: float  # share of the sample without a change of γ or more that was witnessed
    robust_low: float  # R(g), Clopper–Pearson
    robust_high: float
    witnessed: float  # mean of the largest change that was witnessed
    bound: float  # mean of the largest change that is possible
    change_low: float  # D(ḡ), Hoeffding as in the paper's Theorem 2
    change_high: float
    inputs: int
    cpu_seconds: float


def global_robustness(classifier: Classifier, data: Dataset, settings: Settings) -> GlobalRobustness:
    """Accuracy on all of `data`, R(g) and D(ḡ) on a random sample of it."""
    classifier.check_inputs(data.x, data.y)
    right = classifier.reference(data.x).argmax(1) == data.y
    sample = draw(data, settings.inputs, settings.seed)
    low, high, cpu = _changes(classifier, sample, settings)
    n, side = len(sample), 1 - (1 - settings.confidence) / 2
    proven, kept = int((high < settings.gamma).sum()), int((low < settings.gamma).sum())
    accuracy = share_interval(int(right.sum()), len(data), settings.confidence)
    change = mean_interval(low, high, confidence=settings.confidence, method="hoeffding")
    return GlobalRobustness(
        float(right.mean()),
        float(accuracy[0]),
        float(accuracy[1]),
        proven / n,
        kept / n,
        float(share_lower(proven, n, side)),
        float(share_upper(kept, n, side)),
        float(low.mean()),
        float(high.mean()),
        *change,
        inputs=n,
        cpu_seconds=cpu,
    )


def _changes(classifier: Classifier, sample: Dataset, settings: Settings) -> tuple[Any, Any, float]:
    """The largest softmax change in every ball: witnessed, possible; and the CPU seconds that took."""
    asked, norm = measured("probability"), Norm.of(settings.norm)
    low, high, cpu = np.zeros(len(sample)), np.ones(len(sample)), 0.0
    with working(classifier):
        for k, instance in enumerate(sample.instances):
            if not settings.proofs:
                low[k] = _attacked(classifier, instance, asked, norm, settings)
                continue
            budget = Budget(seconds=settings.seconds)
            found = Native(seed=settings.seed).reach(
                classifier, [instance], asked, norm, settings.epsilon, budget, tolerance=0.02
            )[0]
            low[k] = min(found.lower or 0.0, 1.0)
            high[k] = 1.0 if found.upper is None else min(max(found.upper, low[k]), 1.0)
            cpu += found.cost.cpu_seconds
    return low, high, cpu


def _attacked(classifier: Classifier, instance: Instance, asked: Property, norm: Norm, settings: Settings) -> float:
    center = values_of(classifier, "probabilities", classifier.reference(instance.x[None])[0])
    quantity = asked.quantity(classifier.classes, instance.label, center)
    found = largest(classifier, instance.x, quantity, norm, settings.epsilon, seed=settings.seed)
    return 0.0 if found is None else min(max(found.value, 0.0), 1.0)


def measured_file(network: str, options: dict[str, Any]) -> dict[str, Any]:
    """The measures of a network file, kept beside it: what was measured with the same settings is read again.

    `options` has `settings` (the fields of `Settings`), `source`, and `data` (its split, root and other options).
    """
    settings, kept = Settings(**options["settings"]), Path(network).with_name(MEASURED)
    classifier = load_classifier(network)
    question = {"network": classifier.fingerprint, **json.loads(json.dumps(options))}
    try:
        known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        if known["question"] == question:
            return dict(known["found"])
    except (OSError, ValueError, KeyError):
        pass  # not measured yet, or not to the end
    data = load_dataset(options["source"], **options["data"])
    found = asdict(global_robustness(classifier, data, settings))
    partial = kept.with_suffix(".tmp")
    partial.write_text(json.dumps({"question": question, "found": found}, indent=2) + "\n", encoding="utf-8")
    partial.replace(kept)
    return found
