"""The cycle of verification and training ("Neural Network Robustness as a Verification Property", Figure 1).

    a study finds violations → its network is trained further with them → the same questions are asked again

Witnesses come from a store and are replayed on the original network before they are used. Only a share of the inputs
gives its witnesses to training: what the others gain is what training has taught, and not what it has learnt by heart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from radii._check import number
from radii.decide import witness_at
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Norm, Query
from radii.runners import Runner
from radii.stats import Distribution
from radii.stats.comparison import Comparison
from radii.store import RadiusRecord, Selection, Store
from radii.study.file import StudyFile, parse_study
from radii.study.plan import resolve
from radii.study.recall import Recall, property_of
from radii.study.run import Listen, Run, Summary
from radii.train.from_graph import trainable
from radii.train.recipe import Recipe
from radii.train.run import Progress, train

PART = 0.1  # of all training inputs that are witnesses, each repeated as often as that takes


@dataclass(frozen=True, eq=False)
class Violations:
    """What a study found against one network: replayed witnesses with the labels of their inputs."""

    study: str
    classifier: Classifier
    records: tuple[RadiusRecord, ...] = field(repr=False)
    x: Any = field(repr=False)  # (witnesses, *input shape)
    y: Any = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)  # the input of each witness
    lost: int = 0  # witnesses that did not replay, and are left out

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Side:
    """Radii before and after, on the same inputs."""

    name: str
    before: Distribution
    after: Distribution

    @property
    def comparison(self) -> Comparison:
        """After against before, paired by input."""
        return self.after.compare(self.before)


@dataclass(frozen=True, eq=False)
class Cycle:
    """One turn of the cycle: the network that came out, and the radii of both on the study's inputs."""

    network: Path
    study: str
    witnesses: int
    sides: tuple[Side, ...]
    summary: Summary


def violations(store: Store, study: str | None = None, classifier: str | None = None, after: str = "") -> Violations:
    """The witnesses that a study's store holds against one network, replayed; what is not unique must be named.

    `after` is the name of the network that is trained from them: the studies that asked it again do not count.
    """
    there = set(store.studies())
    name = _only(sorted(there - {f"{one}-{after}" for one in there}), study, "study", store.where)
    known = sorted({unit.classifier.name for unit in store.planned(name)})
    chosen = _only(known, classifier, "classifier", f"study {name}")
    records = tuple(store.records(Selection(study=(name,), classifier=(chosen,))))
    if len({one.unit.setting.key for one in records}) > 1:
        raise InputError(
            f"study {name}: expected one question (property, norm, search and verifier), got several; "
            "run a study with one of them"
        )
    if not records:
        raise InputError(f"study {name}: expected radii of {chosen}, got none; run it first (radii run)")
    recall = Recall(store.studies())
    network = recall.classifier(records[0].unit.classifier)
    found: list[tuple[Any, int, str]] = []
    lost = 0
    for record in records:
        witness = record.radius.witness
        if witness is None:
            continue
        setting, instance = record.unit.setting, recall.instance(record.unit.instance)
        query = Query(instance, 0.0, property_of(setting), Norm.of(setting.norm))
        if witness_at(network, query, witness.x) is None:
            lost += 1
            continue
        found.append((np.asarray(witness.x, np.float32).reshape(network.input_shape), instance.label, _id(record)))
    if not found:
        raise InputError(f"study {name}: expected witnesses against {chosen} to train on, got none")
    x, y, ids = zip(*found)
    return Violations(name, network, records, np.stack(x), np.array(y), ids, lost)


def turn(
    store: Store,
    found: Violations,
    recipe: Recipe,
    folder: Path,
    *,
    share: float = 0.5,
    resume: bool = False,
    runner: Runner | None = None,
    progress: Progress | None = None,
    listen: Listen | None = None,
) -> Cycle:
    """Trains the network further on the witnesses of a share of the inputs, asks the study again, and compares."""
    taught = drawn(found.ids, share, recipe.seed)
    if recipe.name == found.classifier.name:
        raise InputError(
            f"recipe name: expected another name than that of the network it starts from, got {recipe.name!r}"
        )
    used = np.array([one in taught for one in found.ids])
    x, y = found.x[used], found.y[used]
    again = max(1, round(PART * _inputs(recipe) / len(x)))
    run = train(
        recipe,
        model=trainable(found.classifier),
        extra=(np.repeat(x, again, axis=0), np.repeat(y, again)),
        notes={
            "from": {
                "network": found.classifier.name,
                "fingerprint": found.classifier.fingerprint,
                "study": found.study,
                "witnesses": len(x),
                "repeated": again,
            }
        },
        output=folder,
        resume=resume,
        progress=progress,
    )
    network = folder / f"{run.recipe.name}.onnx"
    study = follow_up(store, found, network, run.classifier)
    plan = resolve(study, Path.cwd())
    summary = Run(plan, store, runner, listen=listen).run()
    after = tuple(store.records(Selection(study=(study.name,), classifier=(run.classifier.name,))))
    return Cycle(network, study.name, len(x), sides(found, after, taught, run.classifier.name), summary)


def follow_up(store: Store, found: Violations, network: Path, trained: Classifier) -> StudyFile:
    """The study that asks the same of the new network, on the same inputs."""
    body = {key: value for key, value in store.studies()[found.study].items() if key in StudyFile.model_fields}
    file: dict[str, Any] = {"path": str(network.resolve()), "name": trained.name}
    domain = found.classifier.domain
    parts = [{"domain": [domain.low, domain.high], **file}]
    return parse_study({**body, "name": f"{found.study}-{trained.name}", "classifiers": parts}, "the study's copy")


def sides(found: Violations, after: Sequence[RadiusRecord], taught: frozenset[str], name: str) -> tuple[Side, ...]:
    """All inputs of both runs, those whose witnesses were trained on, and those that training has not seen."""
    old, new = {_id(one): one for one in found.records}, {_id(one): one for one in after}
    both = [one for one in old if one in new]
    groups = {
        "all inputs": both,
        "witnesses trained on": [one for one in both if one in taught],
        "the others": [one for one in both if one not in taught],
    }
    return tuple(
        Side(
            title,
            _distribution([old[one] for one in ids], found.classifier.name),
            _distribution([new[one] for one in ids], name),
        )
        for title, ids in groups.items()
        if ids
    )


def drawn(ids: Sequence[str], share: float, seed: int) -> frozenset[str]:
    """The inputs whose witnesses are trained on: a share of them, at least one."""
    number(share, "share", low=0.0, high=1.0, strict=True)
    known = sorted(set(ids))
    count = max(1, round(share * len(known)))
    return frozenset(known[k] for k in np.random.default_rng(seed).permutation(len(known))[:count])


def _distribution(records: Sequence[RadiusRecord], name: str) -> Distribution:
    def ends(which: str) -> list[float]:
        values = [getattr(one.radius, which) for one in records]
        return [np.nan if value is None else value for value in values]

    return Distribution.from_arrays(
        lower=ends("lower"),
        upper=ends("upper"),
        label=[one.unit.instance.label for one in records],
        correct=[not one.radius.misclassified for one in records],
        ids=[_id(one) for one in records],
        name=name,
    )


def _id(record: RadiusRecord) -> str:
    where = record.unit.instance
    target = record.unit.setting.target
    return f"{where.dataset}/{where.split}/{where.index}" + ("" if target is None else f"/{target}")


def _inputs(recipe: Recipe) -> int:
    from radii.train.task import load_split

    count = len(load_split(recipe, "train"))
    return count if recipe.data.first is None else min(count, recipe.data.first)


def _only(known: Sequence[str], asked: str | None, what: str, where: str) -> str:
    if asked is None and len(known) == 1:
        return known[0]
    if asked is None or asked not in known:
        listed = ", ".join(known[:8]) or "none"
        got = "none" if asked is None else repr(asked)
        raise InputError(f"--{what}: expected one of {where}: {listed}, got {got}")
    return asked
