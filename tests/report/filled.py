"""Stores filled through the store's own interface with seeded radii; no network is run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radii.problem import Classification, Instance, Proof, Radius, Witness
from radii.problem.radius import Cost
from radii.store import (
    ClassifierRecord,
    Environment,
    Evidence,
    InstanceRecord,
    QueryRecord,
    RadiusRecord,
    Setting,
    Store,
    Unit,
)

SHAPE = (1, 12, 12)
HOSTILE = "<script>alert('x')</script> & \"näme\" 網路 $x_1$"


@dataclass(frozen=True)
class Plan:
    """What a filled store holds."""

    networks: Sequence[str] = ("small", "large", "robust")
    inputs: int = 40
    classes: int = 10
    splits: Sequence[str] = ("test",)
    targets: Sequence[int | None] = (None,)
    seed: int = 0
    witnesses: bool = True
    dataset: str = "digits"


DEFAULT = Plan()


def inputs(plan: Plan, split: str) -> list[Instance]:
    """The inputs of one split: pictures that are seeded noise with a bright row for the class."""
    rng = np.random.default_rng([plan.seed, len(split)])
    made = []
    for index in range(plan.inputs):
        label = index % max(plan.classes - 1, 1)  # the last class has no input
        x = rng.random(SHAPE, dtype=np.float32) * 0.5
        x[0, label % SHAPE[1]] = 0.95
        made.append(Instance(x, label, dataset=plan.dataset, split=split, index=index))
    return made


def fill(where: Path | str, plan: Plan = DEFAULT) -> Path | str:
    """The address of a store that now holds the radii of the plan."""
    with Store(where) as store:
        units = []
        for number, name in enumerate(plan.networks):
            for split in plan.splits:
                found = records(plan, number, name, split)
                units += [record.unit for record in found]
                store.put_many(found)
        store.plan("a study", units, {"name": "a study"})
    return where


def records(plan: Plan, number: int, name: str, split: str) -> list[RadiusRecord]:
    """The finished units of one network and split."""
    rng = np.random.default_rng([plan.seed, number, len(split)])
    environment = Environment.current("radii run study.yaml --store study.db", seed=plan.seed)
    classifier = ClassifierRecord(fingerprint=hashlib.sha256(name.encode()).hexdigest(), name=name, path=f"{name}.onnx")
    made = []
    for instance in inputs(plan, split):
        for target in plan.targets:
            if target == instance.label:
                continue
            setting = Setting.of(Classification(target), "linf", identity="native 0.1", seed=plan.seed)
            unit = Unit(
                classifier=classifier,
                instance=InstanceRecord.of(instance),
                setting=setting,
                budget={"seconds": 60},
            )
            radius, queries = _radius(rng, number, instance, target, plan)
            evidence = Evidence(kind="tree", data=b"leaves") if radius.lower and rng.random() < 0.5 else None
            made.append(
                RadiusRecord(unit=unit, radius=radius, queries=queries, evidence=evidence, environment=environment)
            )
    return made


def _radius(
    rng: np.random.Generator, number: int, instance: Instance, target: int | None, plan: Plan
) -> tuple[Radius, tuple[QueryRecord, ...]]:
    wrong = int((instance.label + 1) % plan.classes)
    seconds = float(rng.lognormal(0, 1.2))
    cost = Cost(queries=5, nodes=17, cpu_seconds=seconds, wall_seconds=seconds)
    kind = rng.random()
    if target is None and kind < 0.06:
        return Radius.wrong(prediction=wrong, cost=cost), ()
    lower = float(rng.lognormal(-3.4 + 0.25 * (number % 4) + 0.04 * instance.label, 0.5))
    upper: float | None = lower + float(rng.uniform(0.0005, 0.0019))
    if kind < 0.16:
        upper = None if kind < 0.10 else lower * 1.4
        cost = Cost(queries=5, timeouts=1, cpu_seconds=60.0, wall_seconds=60.0)
    queries = (
        QueryRecord(epsilon=lower, verdict="robust", decider="native", cpu_seconds=seconds),
        *([QueryRecord(epsilon=lower * 1.2, verdict="unknown", reason="time")] if cost.timeouts else []),
    )
    if kind < 0.07:
        return Radius(tolerance=0.002, prediction=instance.label, cost=cost, note="out of time"), queries
    witness = None
    if upper is not None and plan.witnesses:
        x = np.clip(instance.x + upper * np.sign(rng.standard_normal(SHAPE)).astype(np.float32), 0, 1)
        seen = wrong if target is None else target
        witness = Witness(x.reshape(-1), upper, seen, np.zeros(plan.classes, np.float32))
    return Radius(
        lower=lower,
        upper=upper,
        tolerance=0.002,
        prediction=instance.label,
        witness=witness,
        proof=Proof("branch"),
        cost=cost,
    ), queries
