"""The public functions: load a network, load data, find one radius, find the distribution of many.

>>> import radii
>>> net = radii.load_classifier("zoo:mnist5k-standard")
>>> data = radii.load_dataset("mnist5k", split="test")
>>> radii.radius(net, data[0].x, data[0].label, seconds=20).status
<Status.CLOSED: 'closed'>
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

import numpy as np

from radii._check import choice, number, whole
from radii._check import epsilon as check_epsilon
from radii.data import Dataset
from radii.data import load_dataset as load_dataset
from radii.decide import Budget, Decider
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.load import load_classifier as load_classifier
from radii.problem import Instance, Norm, Property, Radius, Reach
from radii.problem.property import known_property, measured
from radii.problem.tolerance import share_of
from radii.report.distribution import Distribution
from radii.report.gathering import gathered, gathered_reaches
from radii.report.reach_distribution import ReachDistribution
from radii.runners import ProcessRunner, Runner
from radii.study.progress import shown
from radii.study.question import Question
from radii.study.settings import Options, RadiusSettings
from radii.study.stored import stored_results

if TYPE_CHECKING:
    from radii.ensembles.encoded import EncodedGame
    from radii.ensembles.game import Game
    from radii.store import Store
    from radii.study.measures import Measures

Progress = Callable[[int, int, Any], None]


def radius(net: Any, x: Any, y: int | None = None, **options: Unpack[Options]) -> Radius:
    """How far x, of class y, can move: an interval [lower, upper] with its witness and its proof.

    Properties without a label (standard, Lipschitz, probability change, rows) need no y.
    Options: `target` (only this class counts), `property`, `norm` ("linf", "l2", "l1"), `seconds` of CPU time,
    `memory`, `nodes`, `tolerance` (0.002, "5%" of the upper end), `limit` (the largest ε), `verifier`, `seed`.
    """
    classifier = load_classifier(net, seconds=options.get("seconds", 60.0))
    values = np.asarray(x, dtype=np.float32)
    classifier.check_inputs(values, None if y is None else [y])
    asked = question(classifier, **options)
    if y is None and asked.settings.property.needs_label:
        raise InputError(f"radius: expected a class y for the property {asked.settings.property.kind}, got none")
    instance = Instance(values.reshape(classifier.input_shape), 0 if y is None else y)
    asked.check_labels([instance])
    return asked.radii([instance])[0]


def reach(
    net: Any,
    x: Any,
    y: int | None = None,
    *,
    property: Any = "standard",
    epsilon: float | str,
    norm: str = "linf",
    seconds: float | None = 60.0,
    nodes: int | None = None,
    tolerance: float | str = 0.02,
    seed: int = 0,
) -> Reach:
    """How far inputs within ε of x can move the outputs: an interval with its witness and its proof.

    `property` says what is measured: "standard" the largest output change, "lipschitz" the largest slope, "probability"
    the largest change of a softmax probability, "strong" the least output of class y ("strong:on=probability" its least
    probability), "classification" the least margin of y. `tolerance` is a share of what is proven.

    >>> import radii
    >>> net, data = radii.load_classifier("zoo:mnist5k-standard"), radii.load_dataset("mnist5k", split="test")
    >>> found = radii.reach(net, data[0].x, property="standard", epsilon=0.01, seconds=20)
    >>> found.status, found.lower <= found.upper
    (<ReachStatus.CLOSED: 'closed'>, True)
    """
    classifier, asked = load_classifier(net, seconds=seconds), measured(property)
    if y is None and asked.needs_label:
        raise InputError(f"reach: expected a class y for the property {asked.kind}, got none")
    values = np.asarray(x, dtype=np.float32)
    classifier.check_inputs(values, None if y is None else [y])
    instance = Instance(values.reshape(classifier.input_shape), 0 if y is None else y)
    budget = Budget(seconds=seconds, nodes=nodes)
    return next(reaches(classifier, [instance], asked, Norm.of(norm), epsilon, budget, share_of(tolerance), seed))


def reaches(
    classifier: Classifier,
    instances: Sequence[Instance],
    property: Property,
    norm: Norm,
    epsilon: float | str,
    budget: Budget,
    tolerance: float,
    seed: int,
) -> Iterator[Reach]:
    """The reach of one instance after the other; what cannot be asked is refused before the first."""
    from radii.engine.native import Native
    from radii.verifiers.support import refuse_unsupported

    native, size = Native(seed=seed), check_epsilon(epsilon)
    refuse_unsupported(native, classifier, property, norm, direct=True)
    for instance in instances:
        property.quantity(classifier.classes, instance.label, np.zeros(classifier.classes))
    for instance in instances:
        yield native.reach(classifier, [instance], property, norm, size, budget, tolerance=tolerance)[0]


def measures(
    net: Any,
    data: Any,
    *,
    epsilon: float | str,
    properties: Sequence[Any] = ("classification", "standard:10", "lipschitz:10"),
    norm: str = "linf",
    seconds: float | None = 10.0,
    steps: int = 40,
    restarts: int = 3,
    samples: int = 100,
    confidence: float = 0.95,
    verifier: Decider | str = "native",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    below: Measures | None = None,
) -> Measures:
    """The satisfaction, security and accuracy of properties on a data set, also per class.

    Satisfaction is proven by the `verifier` within `seconds` of CPU time per input and property; security is that
    against projected gradient ascent with `steps` and `restarts` per row of the property's quantity; accuracy counts
    `samples` points per ball, with a Clopper–Pearson interval of `confidence`. `alarms` of the result are proofs that
    an attack or a point breaks. What `below`, the same measures for a smaller ε, has broken is not searched again.

    >>> import radii
    >>> net, data = radii.load_classifier("zoo:mnist5k-standard"), radii.load_dataset("mnist5k", split="test")
    >>> found = radii.measures(net, data[:4], epsilon=0.01, properties=[radii.Standard(10)])
    >>> found.rows[0].proven <= found.rows[0].security
    True
    """
    from radii.attacks.reach import Ascent
    from radii.study.measures import Measures, Settings, take_measures

    listed = [properties] if isinstance(properties, (str, Property)) else properties
    asked = list(dict.fromkeys(known_property(one) for one in listed))
    classifier, chosen = load_classifier(net, seconds=seconds), dataset(data)
    classifier.check_inputs(chosen.x, chosen.y if any(one.needs_label for one in asked) else None)
    settings = Settings(
        number(epsilon, "epsilon", low=0.0, strict=True),
        Norm.of(norm),
        Budget(seconds=seconds),
        Ascent(whole(steps, "steps", low=1), whole(restarts, "restarts", low=1)),
        whole(samples, "samples", low=1),
        number(confidence, "confidence", low=0.0, high=1.0, strict=True),
        whole(seed, "seed"),
    )
    prover = RadiusSettings(verifier=verifier, seed=settings.seed).decider()
    found = take_measures(classifier, chosen.instances, asked, settings, progress, below, prover)
    return Measures(classifier.name, f"{chosen.name} {chosen.split}", settings, tuple(found))


@overload
def distribution(
    net: Any,
    data: Any,
    *,
    reach: None = None,
    store: str | Path | Store | None = None,
    progress: Progress | bool | None = None,
    workers: int | None = None,
    runner: Runner | None = None,
    **options: Unpack[Options],
) -> Distribution: ...


@overload
def distribution(
    net: Any,
    data: Any,
    *,
    reach: float | str,
    store: str | Path | Store | None = None,
    progress: Progress | bool | None = None,
    workers: int | None = None,
    runner: Runner | None = None,
    **options: Unpack[Options],
) -> ReachDistribution: ...


def distribution(
    net: Any,
    data: Any,
    *,
    reach: float | str | None = None,
    store: str | Path | Store | None = None,
    progress: Progress | bool | None = None,
    workers: int | None = None,
    runner: Runner | None = None,
    **options: Unpack[Options],
) -> Distribution | ReachDistribution:
    """The distribution of the radii of a data set; the options are those of `radius`, the budget is per input.

    With `reach`, that of reaches in balls of this ε: `property` says of what, as for `radii.reach`, and `tolerance` is
    a share of what is proven (0.02).

    With `store` (a file, a URL or an open store) finished inputs are kept, and found again by the next call.
    `progress` is called with (done, all, result) after each input; True shows a bar, None does so on a terminal.
    `workers` are processes of this machine, `runner` one of `radii.runners` (it stays open); without either all happens
    in this process. Several processes that share a store share the work, as with `radii run`.
    """
    from radii.store import Store, open_store

    if workers is not None and runner is not None:
        raise InputError("workers: expected it without runner, which has its own; leave one out")
    classifier, chosen = load_classifier(net, seconds=options.get("seconds", 60.0)), dataset(data)
    asked = Question.of(classifier, RadiusSettings.of(options, reach))
    labelled = reach is None or asked.settings.property.needs_label
    classifier.check_inputs(chosen.x, chosen.y if labelled else None)
    instances = chosen.instances
    # A store that was given open stays open, and so does the one in memory, which the report is made from.
    kept = open_store(":memory:") if store is None else store
    opening = nullcontext(kept) if isinstance(kept, Store) else open_store(kept)
    with opening as opened, shown(progress, len(chosen), classifier.name) as tell, pool(workers, runner) as chosen_one:
        found = stored_results(asked, instances, opened, tell, chosen_one)
    keys = [asked.unit(instance).key for instance in instances]
    if reach is not None:
        of = asked.settings.property, asked.settings.norm
        return replace(gathered_reaches(chosen, found, of, classifier.name, keys), source=kept)
    return replace(gathered(chosen, found, classifier.name, keys), source=kept)


@overload
def ensemble(
    classifiers: Sequence[Any], data: Any, *, method: Literal["milp", "smt"], attacks: int, **options: Any
) -> EncodedGame: ...
@overload
def ensemble(
    classifiers: Sequence[Any], data: Any, *, method: Literal["decomposed"] = "decomposed", **options: Any
) -> Game: ...
def ensemble(
    classifiers: Sequence[Any],
    data: Any,
    *,
    method: str = "decomposed",
    attacks: int | None = None,
    epsilons: float | str | Sequence[float | str] | None = None,
    alpha: float | str | None = None,
    objective: str | None = None,
    solver: str = "highs",
    width: float = 0.0,
    store: str | Path | Store | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Game | EncodedGame:
    """An ensemble against randomised attacks: value, attack, mix and radius as a `Game`, for every ε at once.

    The members' radii and the joint radii that matter are searched, each within `seconds` of CPU time; the other
    options are those of `radius`. With `epsilons` only these sizes count and nothing is searched beyond the largest.
    The search ends when nothing is left to ask, or when the value's interval is at most `width` wide in the mean.
    `progress` is called with (radii found, radii asked for so far); `store`, `workers` and `runner` are as for
    `distribution`.

    `method="milp"` or `"smt"` asks an encoding of a fixed number of `attacks` instead (docs/ensembles-encodings.md),
    at `epsilons`, each within `seconds`: whether they get `alpha`, or else (milp) what they get at most.

    >>> import radii
    >>> nets = [radii.load_classifier(f"zoo:mnist5k-{name}") for name in ("standard", "adversarial")]
    >>> data = radii.load_dataset("mnist5k", split="test")[:4]
    >>> game = radii.ensemble(nets, data, epsilons=0.03, seconds=2)
    >>> low, high = game.value(0.03)
    >>> low <= high, len(game.attack(0.03).probabilities) <= 2, round(sum(game.mix(0.03).weights), 9)
    (True, True, 1.0)
    """
    from radii.ensembles.encoded import Form, encoded
    from radii.ensembles.members import check_members
    from radii.store import Store, open_store
    from radii.study.ensemble import EnsembleRun

    choice(method, "method", ("decomposed", "milp", "smt"))
    if workers is not None and runner is not None:
        raise InputError("workers: expected it without runner, which has its own; leave one out")
    settings = RadiusSettings.of(cast(Options, options))
    chosen, seconds = dataset(data), settings.budget.seconds
    for one in (members := check_members([load_classifier(one, seconds=seconds) for one in classifiers])):
        one.check_inputs(chosen.x, chosen.y)
    if isinstance(epsilons, (int, float, str)):
        epsilons = (epsilons,)
    sizes = tuple(check_epsilon(one) for one in epsilons or ())
    if method != "decomposed":
        if store is not None or workers is not None or runner is not None or progress is not None:
            raise InputError(f"method {method}: expected no store, workers, runner or progress, which decomposed takes")
        form, budget = Form.of(method, attacks, alpha, objective, solver=solver), settings.budget
        return encoded(members, chosen.instances, settings.norm, sizes, form, budget.seconds, budget.memory)
    if any(one is not None for one in (attacks, alpha, objective)):
        raise InputError("method decomposed: expected no attacks, alpha or objective, which milp and smt take")
    if sizes and settings.limit is None:
        settings = replace(settings, limit=max(sizes) or None)
    instances, narrow = tuple(chosen.instances), number(width, "width", low=0.0, high=1.0)
    with ExitStack() as stack:

        def opened() -> Store:
            return stack.enter_context(open_store(":memory:" if store is None else store))

        kept = store if isinstance(store, Store) else opened if store is None else opened()
        chosen_one = stack.enter_context(pool(workers, runner))
        run = EnsembleRun(members, instances, settings, kept, chosen_one, sizes, narrow, progress=progress)
        return run.run()


@contextmanager
def pool(workers: int | None, runner: Runner | None = None) -> Iterator[Runner | None]:
    """The runner that was given, or local worker processes for as long as they are needed; None for neither."""
    if workers is None:
        yield runner
        return
    from radii.study.preload import PRELOAD

    with ProcessRunner(whole(workers, "workers", low=1), threads=1, preload=PRELOAD) as made:
        yield made


def dataset(data: Any) -> Dataset:
    """A data set from itself, a name, a path, a torch data set, or a pair of arrays (inputs, labels)."""
    if isinstance(data, tuple) and len(data) == 2:
        return Dataset(np.asarray(data[0], dtype=np.float32), np.asarray(data[1]))
    if isinstance(data, Sequence) and data and all(isinstance(item, Instance) for item in data):
        first = data[0]
        x, y, where = ([getattr(i, key) for i in data] for key in ("x", "label", "index"))
        return Dataset(np.stack(x), np.array(y), first.dataset, first.split, indices=np.array(where))
    return load_dataset(data)


def question(classifier: Classifier, **options: Unpack[Options]) -> Question:
    """What is asked of any number of inputs of one classifier; the options are those of `radius`."""
    return Question.of(classifier, RadiusSettings.of(options))
