"""Judges: the engine is asked through its public names, and what it claims is held to the oracles."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import radii
from fuzzing.ask import RadiusCase, SpecCase, describe
from fuzzing.build import Array, fractions
from fuzzing.oracle import Goal, Runtime, refuted, refuted_deployed, worst
from fuzzing.planted import lowest_linear
from fuzzing.regions import Region
from radii.decide import Budget
from radii.engine.tuning import DEFAULT, Tuning
from radii.errors import RadiiError
from radii.evidence import check
from radii.problem import Classification, Clause, Instance, OutputSpec, Radius, SpecQuery, Status, Verdict
from radii.verifiers.catalogue import make

Row = dict[str, Any]


def judge_radius(case: RadiusCase, seed: int) -> Row:
    """One line of the log: what came out for each input, and every violation."""
    row: Row = {"kind": "radius", "index": case.index, **describe(case), "status": [], "violations": []}
    started = time.process_time()
    try:
        prepared = None if case.network.plain else (case.network.mean, case.network.std)
        net = radii.load_classifier(
            _model(case.network),
            preprocessing=prepared,
            domain=tuple(v if math.isfinite(v) else None for v in case.domain),
        )
    except RadiiError as error:
        return row | {"refused": str(error)[:200], "seconds": round(time.process_time() - started, 4)}
    rng = np.random.default_rng([seed, 3, case.index])
    runtime = Runtime(case.network)
    counts: dict[str, int] = {}
    for place, found in enumerate(_measured(case, net, row)):
        if found is None:
            row["status"].append("alarm")
            continue
        row["status"].append(found.status.value)
        with np.errstate(all="ignore"):
            for text in _radius(case, place, found, net, runtime, rng, counts):
                row["violations"].append({"input": place, "what": text, "radius": [found.lower, found.upper]})
    return row | {"counts": counts, "seconds": round(time.process_time() - started, 4)}


def _model(network: Any) -> Any:
    import onnx

    return onnx.load_from_string(network.model)


def _tuned(case: RadiusCase) -> Tuning:
    """The engine's numbers, by turns such that small networks take the paths of large ones."""
    if case.network.curved:  # as if it had many inputs: condensed where its operators allow it
        return replace(DEFAULT, intervals=replace(DEFAULT.intervals, few_inputs=0)) if case.index % 2 else DEFAULT
    if case.index % 3 == 0:  # pair planes from the first node on, in plain trees, which alone have them
        trees = replace(DEFAULT.trees, paired_from=0, paired_least=0, paired_layers=99)
        return replace(DEFAULT, trees=trees, settling=replace(DEFAULT.settling, plain_shallow=10**4, plain_deep=10**4))
    if case.index % 3 == 1:  # as in convolutions: hidden layers are left alone, their bounds have slopes of their own
        settling = replace(DEFAULT.settling, shallow=0, deep=99, mixed=-1.0, slopes=1e9, plain_deep=1)
        bounds = replace(DEFAULT.bounds, hull_kernel=0, ball_hull_kernel=0)  # with the compiled kernels, however small
        return replace(DEFAULT, trees=replace(DEFAULT.trees, hull_inputs=1.0), settling=settling, bounds=bounds)
    return DEFAULT


def _measured(case: RadiusCase, net: Any, row: Row) -> list[Radius | None]:
    """The radii of all inputs at once; None where a contradiction or a crash stopped one."""
    decider: Any = make({"name": "native", "effort": "fast", "arithmetic": case.arithmetic, "evidence": case.evidence})
    decider = replace(decider, tuning=_tuned(case))
    instances = [Instance(x.astype(np.float32).reshape(net.input_shape), y) for x, y in zip(case.x, case.labels)]

    def ask() -> list[Radius]:
        found: list[Radius] = decider.measure(
            net, instances, Classification(case.target), radii.problem.Norm.of(case.norm),
            Budget(seconds=None, nodes=case.nodes), tolerance=case.tolerance, limit=case.limit,
        )  # fmt: skip
        return found

    try:
        found = ask()
    except RadiiError as error:
        row["refused"] = str(error)[:200]
        return []
    except Exception as error:
        row["violations"].append({"what": f"crash: {type(error).__name__}: {error}"})
        return [None] * len(instances)
    for place, radius in enumerate(found):
        if radius.alarm:
            row.setdefault("alarms", []).append(radius.alarm[:200])
            row["violations"] += _alarm(case, place, radius.alarm)
    return [None if radius.alarm else radius for radius in found]


def _alarm(case: RadiusCase, place: int, text: str) -> list[Row]:
    """What is wrong with the proof in an alarm: in float32 the alarm itself is; over the reals the oracles say."""
    if case.arithmetic == "float32":
        return [{"input": place, "what": f"alarm: {text}"}]
    named = re.search(r"robust up to ([0-9.e+-]+)", text)
    if named is None:
        return [{"input": place, "what": f"an alarm that names no radius: {text}"}]
    claim = Radius(lower=float(named[1]), limit=float(named[1]))
    return [{"input": place, "what": found} for found in judge_claim(case, place, claim, seed=0)]


def _radius(
    case: RadiusCase, place: int, found: Radius, net: Any, runtime: Runtime, rng: np.random.Generator,
    counts: dict[str, int],
) -> list[str]:  # fmt: skip
    """Everything that is wrong with one radius."""
    x, label = case.x[place], case.labels[place]
    goal = Goal.classes(case.network.classes, label, None)
    outputs = runtime(x[None])[0].astype(np.float64)
    right = bool(goal.margin(outputs[None])[0] > 0)
    if found.misclassified:
        return ["called misclassified, but onnxruntime is right there"] if right else []
    problems = []
    if not right and found.lower is not None and case.arithmetic == "float32":
        problems.append("onnxruntime is wrong at the input itself, but a radius is claimed")
    goal = Goal.classes(case.network.classes, label, case.target)
    if "Error" in found.note:
        problems.append(f"failed inside: {found.note}")
    if found.upper is not None:
        problems += _witness(case, x, found, goal, runtime, counts)
    if found.lower is not None:
        problems += _lower(case, place, found, goal, runtime, rng, counts)
    if found.evidence is not None:
        counts["evidence"] = counts.get("evidence", 0) + 1
        try:
            claim = check(found.evidence, net)
            if claim.radius != found.lower:
                problems.append(f"evidence for {claim.radius}, not for {found.lower}")
        except RadiiError as error:
            problems.append(f"evidence refused: {error}")
    return problems


def _witness(case: RadiusCase, x: Array, found: Radius, goal: Goal, runtime: Runtime, counts: Any) -> list[str]:
    witness = found.witness
    if witness is None:
        return ["an upper end without a witness"]
    counts["witness"] = counts.get("witness", 0) + 1
    problems, value = [], witness.x.astype(np.float64).ravel()
    outputs = runtime(value[None])[0].astype(np.float64)
    if not goal.margin(outputs[None])[0] <= 0:
        problems.append(f"the witness does not break: onnxruntime gives {outputs.tolist()}")
    if not ((value >= case.domain[0]) & (value <= case.domain[1])).all():
        problems.append("the witness lies outside the domain")
    step = [abs(a - b) for a, b in zip(fractions(value), fractions(x))]
    size = {"linf": max(step), "l1": sum(step), "l2": sum(s * s for s in step)}[case.norm]
    upper = Fraction(found.upper) ** (2 if case.norm == "l2" else 1)
    if abs(size - upper) > upper * Fraction(1, 10**12):
        problems.append(f"the witness is not as far away as the upper end {found.upper}")
    if found.status is Status.CLOSED and found.upper - (found.lower or 0.0) > case.tolerance * (1 + 1e-9):
        problems.append("closed, but the gap is wider than the tolerance")
    return problems


def _lower(
    case: RadiusCase, place: int, found: Radius, goal: Goal, runtime: Runtime, rng: np.random.Generator, counts: Any
) -> list[str]:
    """Whether the proven ball holds a point that breaks."""
    counts["proven"] = counts.get("proven", 0) + 1
    x, network, n = case.x[place], case.network, case.x.shape[1]
    region = Region(x, found.lower, case.norm, np.full(n, case.domain[0]), np.full(n, case.domain[1]))
    hints = [found.witness.x.astype(np.float64).ravel()] if found.witness is not None else []
    if case.spike is not None and case.labels[place] == 0:
        hints += [case.spike.nearest(x), case.spike.place]
        truth = case.spike.distance(x, case.norm)
        if found.lower > truth * (1 + 1e-9) + 1e-12:
            return [f"proven beyond the planted radius {truth}"]
    if case.recipe == "linear":
        hints += _linear(case, region, goal)
    points = worst(network, region, goal, rng, np.array(hints).reshape(-1, n))
    first = np.concatenate([region.pulled(np.array(hints).reshape(-1, n)), points]) if hints else points
    text = None
    if case.arithmetic == "real":
        text = refuted(network, region, goal, points) or refuted(network, region, goal, first)
    else:
        text = refuted_deployed(runtime, region, goal, first, rng)
    return [f"proven to {found.lower}, but {text}"] if text else []


def _linear(case: RadiusCase, region: Region, goal: Goal) -> list[Array]:
    """For each class the point of the ball at which a linear network's margin is least: the closed form."""
    n = region.inputs
    basis = np.concatenate([fractions(region.center)[None], fractions(region.center) + fractions(np.eye(n))])
    values = case.network.run(basis)
    found = []
    for rows, _ in goal.clauses:
        heights = values @ fractions(rows)[0]
        slope = [h - heights[0] for h in heights[1:]]
        room = [(_room(c - low), _room(high - c)) for c, low, high in zip(region.center, region.low, region.high)]
        step = lowest_linear(slope, room, Fraction(region.radius), region.norm)
        found.append(np.array([float(Fraction(float(c)) + Fraction(s)) for c, s in zip(region.center, step)]))
    return found


def _room(value: float) -> Fraction:
    return Fraction(float(value)) if math.isfinite(value) else Fraction(10**12)


def judge_claim(case: RadiusCase, place: int, found: Radius, seed: int) -> list[str]:
    """Everything that is wrong with the lower end of a radius, wherever it comes from."""
    rng = np.random.default_rng([seed, 3, case.index])
    with np.errstate(all="ignore"):
        goal = Goal.classes(case.network.classes, case.labels[place], case.target)
        return _lower(case, place, found, goal, Runtime(case.network), rng, {})


def judge_spec(case: SpecCase, seed: int) -> Row:
    """One line of the log for a specification."""
    row: Row = {"kind": "spec", "index": case.index, **describe(case), "status": [], "violations": []}
    started = time.process_time()
    try:
        prepared = None if case.network.plain else (case.network.mean, case.network.std)
        net = radii.load_classifier(_model(case.network), preprocessing=prepared, domain=(-3.0, 3.0))
    except RadiiError as error:
        return row | {"refused": str(error)[:200], "seconds": round(time.process_time() - started, 4)}
    spec = OutputSpec(tuple(Clause(a, b) for a, b in case.goal.clauses))
    decider: Any = make({"name": "native", "effort": "fast"})
    try:
        answer = decider.decide_spec(net, SpecQuery(case.low, case.high, spec), Budget(seconds=None, nodes=case.nodes))
    except Exception as error:
        row["violations"].append({"what": f"crash: {type(error).__name__}: {error}"})
        return row | {"status": ["crash"], "seconds": round(time.process_time() - started, 4)}
    row["status"].append(answer.verdict.value)
    if answer.reason is not None:
        row["reason"] = answer.reason.value
    with np.errstate(all="ignore"):
        for text in _spec(case, answer, np.random.default_rng([seed, 4, case.index])):
            row["violations"].append({"what": text})
    return row | {"seconds": round(time.process_time() - started, 4)}


def _spec(case: SpecCase, answer: Any, rng: np.random.Generator) -> list[str]:
    region = Region.box(case.low, case.high)
    if answer.verdict is Verdict.BROKEN:
        value = answer.witness.x.astype(np.float64).ravel()
        outputs = Runtime(case.network)(value[None]).astype(np.float64)
        problems = [] if region.contains(value) else ["the witness lies outside the box"]
        if not case.goal.margin(outputs)[0] <= 0:
            problems.append(f"the witness does not break: onnxruntime gives {outputs.tolist()}")
        return problems
    if answer.verdict is Verdict.ROBUST:
        points = worst(case.network, region, case.goal, rng, case.hints)
        text = refuted(case.network, region, case.goal, points)
        return [f"proven, but {text}"] if text else []
    return []
