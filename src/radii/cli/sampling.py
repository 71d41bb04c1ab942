"""The run of `radii guarantee`: draws inputs, measures them, and says what follows for unseen ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from radii.cli.console import PARTIAL, counted, emit_json, note, partial, stoppable
from radii.cli.models import model_of
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.data import Dataset
    from radii.stats.sample_sizes import Plan
    from radii.store import Store
    from radii.study.question import Question


@dataclass(frozen=True)
class Reaching:
    """Reaches instead of radii: of which property, and which sentences are asked for."""

    property: str
    gamma: float | None
    mean: bool
    bounds: tuple[float, float] | None

    def __post_init__(self) -> None:
        if self.gamma is None and not self.mean:
            raise InputError("--property: expected --gamma or --mean beside it, got neither: nothing would be said")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What was asked for on the command line."""

    model: str
    data: str
    root: Path | None
    split: str | None
    reading: dict[str, Any]
    eps: float
    error: float
    confidence: float
    method: str | None
    share: float | None
    one: bool
    among: str
    inputs: int | None
    finite: bool
    search: str
    verifier: str
    target: str | None
    store: str | None
    reaching: Reaching | None = None
    options: dict[str, Any] = field(default_factory=dict)


def sample(asked: Sampling, sequential: bool, json: bool) -> int:
    """Plan, draw, measure, and print the sentence; 3 where a sequential run ended before it was narrow enough."""
    from radii import api
    from radii.problem.property import measured

    net = model_of(asked.model, asked.options.get("seconds"))
    everything = api.load_dataset(asked.data, split=asked.split, root=asked.root, **asked.reading)
    needs = asked.reaching is None or measured(asked.reaching.property, "--property").needs_label
    net.check_inputs(everything.x, everything.y if needs else None)
    for line in (*net.alarms, *everything.alarms):
        note(f"alarm: {line}")
    question = _question(net, asked)
    return _sequential(asked, question, everything, json) if sequential else _fixed(asked, question, everything, json)


def _question(net: Any, asked: Sampling) -> Question:
    from radii import api
    from radii._check import whole

    if asked.search == "attack" and asked.verifier not in ("native", "attack"):
        raise InputError(f"--verifier: expected none with --search attack, got {asked.verifier!r}")
    if asked.reaching is not None:
        from radii.study.question import Question
        from radii.study.settings import RadiusSettings

        options = {**asked.options, "verifier": asked.verifier, "property": asked.reaching.property}
        return Question.of(net, RadiusSettings.of(options, reach=asked.eps))
    options = {**asked.options, "verifier": "attack" if asked.search == "attack" else asked.verifier}
    if asked.search != "direct":
        options["grid"] = [asked.eps]
    if asked.target is not None:
        if asked.finite:
            raise InputError("--finite: expected it without --target, whose own class cannot be asked; leave one out")
        number = int(asked.target) if asked.target.isdigit() else asked.target
        options["target"] = whole(number, "--target", high=net.classes - 1)
    return api.question(net, **options)


def plan_of(asked: Sampling, available: int) -> Plan:
    """The number of inputs that the asked width needs, which the data set must hold."""
    from radii.stats.dkw import dkw_half_width
    from radii.stats.sample_sizes import sample_size

    population = available if asked.finite else None
    method = asked.method or ("clopper-pearson" if asked.one else "dkw")
    if asked.reaching is not None and asked.reaching.gamma is None:
        method = "hoeffding"  # of the mean alone, as a share of the limits that no reach leaves
    plan = sample_size(asked.error, asked.confidence, method, share=asked.share, population=population)
    if plan.n > available:
        reach = dkw_half_width(available, asked.confidence)
        raise InputError(
            f"--error {asked.error:g}: expected a data set of at least {plan.n} inputs, got {available}; give --error "
            f"{reach:.2g} or more, --inputs N, or --finite for a statement about these {available} inputs alone"
        )
    return plan


def _fixed(asked: Sampling, question: Question, everything: Dataset, json: bool) -> int:
    from radii.report.gathering import gathered
    from radii.store import open_store
    from radii.study.progress import shown
    from radii.study.sample import draw, evidence
    from radii.study.stored import stored_results

    count = asked.inputs or plan_of(asked, len(everything)).n
    drawn = _askable(draw(everything, count, asked.options["seed"]), asked.target)
    note(f"{len(drawn)} of {len(everything)} inputs of {everything.name} {everything.split}, drawn at random")
    with open_store(asked.store or ":memory:") as store:
        with stoppable() as ending, shown(None, len(drawn), question.classifier.name) as tell:
            found = stored_results(question, drawn.instances, store, tell)
        if ending.stopped:
            return _stopped(asked, question, drawn, store)
    if asked.reaching is not None:
        _reaches(asked, asked.reaching, question, drawn, found, len(everything), json)
        return 0
    dist = gathered(drawn, found, question.classifier.name)
    promise = dist.guarantee(
        asked.confidence,
        asked.among,
        population=len(everything) if asked.finite else None,
        evidence=evidence(question.decider.proves, question.decider.refutes),
    )
    promise = replace(promise, about=about(asked.target))
    method = asked.method if asked.method not in (None, "dkw") else "clopper-pearson"
    low, high = promise.at_one(asked.eps, str(method)) if asked.one else (float(v) for v in promise.at(asked.eps))
    told = promise.sentence(asked.eps, whole_curve=not asked.one, method=str(method))
    facts = {"n": promise.n, "low": low, "high": high, "population": promise.population}
    _tell(asked, question, drawn, {**facts, "evidence": promise.evidence, "sentence": told}, json)
    return 0


def _reaches(
    asked: Sampling,
    wanted: Reaching,
    question: Question,
    drawn: Dataset,
    found: Any,
    available: int,
    json: bool,
) -> None:
    """What reaches of a sample say of unseen inputs: the share within γ, and the mean D(ḡ)."""
    from radii.report.gathering import gathered_reaches

    of = question.settings.property, question.settings.norm
    dist = gathered_reaches(drawn, found, of, question.classifier.name)
    promise = dist.guarantee(asked.confidence, asked.among, available if asked.finite else None, wanted.bounds)
    facts: dict[str, Any] = {"n": promise.n, "reach": dist.title, "population": promise.population}
    told = []
    if wanted.gamma is not None:
        how = asked.method if asked.method not in (None, "dkw") else "clopper-pearson"
        low, high = (
            promise.at_one(wanted.gamma, str(how)) if asked.one else (float(v) for v in promise.at(wanted.gamma))
        )
        facts |= {"gamma": wanted.gamma, "low": low, "high": high}
        told.append(promise.sentence(wanted.gamma, whole_curve=not asked.one, method=str(how)))
    if wanted.mean:
        facts["mean_low"], facts["mean_high"] = promise.mean()
        told.append(promise.mean_sentence())
    _tell(asked, question, drawn, {**facts, "sentence": " ".join(told)}, json)


def _sequential(asked: Sampling, question: Question, everything: Dataset, json: bool) -> int:
    from radii.stats.sequential import Watch
    from radii.store import open_store
    from radii.study.progress import shown
    from radii.study.sample import draw, evidence, watched

    if asked.finite or asked.among != "all" or asked.method is not None:
        raise InputError("--sequential: expected it without --finite, --among and --method, got one of them")
    kind = evidence(question.decider.proves, question.decider.refutes)
    watch = Watch(
        eps=asked.eps, width=2 * asked.error, confidence=asked.confidence, evidence=kind, about=about(asked.target)
    )
    drawn = _askable(draw(everything, asked.inputs or len(everything), asked.options["seed"]), asked.target)
    with open_store(asked.store or ":memory:") as store:
        with stoppable() as ending, shown(None, len(drawn), question.classifier.name) as tell:
            found, watch = watched(question, drawn, store, watch, tell)
        if ending.stopped:
            return _stopped(asked, question, drawn, store)
    facts = {"n": watch.draws, "low": watch.low, "high": watch.high, "reached": watch.done, "evidence": kind}
    _tell(asked, question, drawn[: len(found)], {**facts, "sentence": watch.sentence()}, json)
    if watch.done:
        return 0
    gaps = (watch.not_broken - watch.proven) / watch.draws
    why = f"{gaps:.1%} of the answers are open: give more --seconds" if watch.hopeless else "give more inputs"
    note(
        f"radii: partial: the interval is {watch.reached:.2g} wide after {watch.draws} inputs, "
        f"{2 * asked.error:g} was asked; {why} or a larger --error"
    )
    return PARTIAL


def _stopped(asked: Sampling, question: Question, drawn: Dataset, store: Store) -> int:
    """What a stopped run has measured: shares of the sample, and no guarantee, which the whole sample would give."""
    from radii.report.content import gather
    from radii.store import Selection

    keys = tuple(question.unit(instance).key for instance in drawn)
    content = gather([store], Selection(key=keys))
    known: Any = content.series if asked.reaching is None else content.reaches
    done = len(known[0].dist) if known else 0
    if known and asked.reaching is None:
        low, high = known[0].dist.robust_accuracy(asked.eps)
        typer.echo(
            f"{question.classifier.name}: of the {counted(done, 'input')} measured so far {low:.1%} are proven robust "
            f"at {asked.eps:g} and {high:.1%} are not broken; nothing follows yet for unseen inputs."
        )
    return partial(f"{done} of {counted(len(drawn), 'input')} done", asked.store)


def about(target: str | None) -> str:
    """The inputs that a statement about one target speaks of."""
    return "" if target is None else f"of other classes (where only class {target} counts as a change of mind)"


def _askable(drawn: Dataset, target: str | None) -> Dataset:
    """The inputs of another class than the target: the others cannot be asked about it."""
    if target is None:
        return drawn
    rows = [k for k, label in enumerate(drawn.y.tolist()) if str(label) != target]
    if not rows:
        raise InputError(f"--target {target}: expected an input of another class, got none")
    return drawn[rows]


def _tell(asked: Sampling, question: Question, drawn: Dataset, facts: dict[str, Any], json: bool) -> None:
    if not json:
        typer.echo(f"{question.classifier.name}: {facts['sentence']}")
        return
    where = {"network": question.classifier.name, "dataset": drawn.name, "split": drawn.split, "eps": asked.eps}
    how = {"confidence": asked.confidence, "search": asked.search, "verifier": question.decider.identity}
    indices = [int(index) for index in drawn.indices]
    emit_json({**where, **how, "seed": asked.options["seed"], **facts, "indices": indices})
