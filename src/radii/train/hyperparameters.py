"""Hyper-parameter search with Optuna (Akiba et al. 2019): recipes of one kind, compared on held-out inputs.

A search tries recipes that differ in the keys of a *space*, such as `optimiser.learning_rate`. Each trial is scored on
inputs held out of the training set, never on the test set; trials that lag behind the others are stopped early. All is
kept in one SQLite file, so that a search that was stopped goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii._check import brief, number, whole
from radii.errors import InputError, ToolMissing, TrainingError
from radii.train.loop import Epoch, fit
from radii.train.methods.base import described, make
from radii.train.recipe import Recipe, parse_recipe
from radii.train.task import prepare

if TYPE_CHECKING:
    import optuna

DATABASE = "search.db"
LEADING = 5  # trials that are run to their end before others are compared with them

Range = list[Any] | Mapping[str, Any]
Space = Mapping[str, Range]


@dataclass(frozen=True, slots=True)
class Trial:
    """One recipe that was tried: its values, its state (complete, pruned, failed) and its score on held-out inputs."""

    number: int
    state: str
    score: float | None
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Search:
    """A finished search: all trials, and the recipe of the best one."""

    trials: tuple[Trial, ...]
    best: Recipe
    score: float
    judged: str  # the accuracy that was compared: clean, attacked or certified


def search(
    recipe: Recipe,
    trials: int,
    folder: Path,
    *,
    data: Any = None,
    progress: Callable[[Trial, int], None] | None = None,
) -> Search:
    """The best of so many recipes around one, by its own accuracy on held-out inputs; finished trials are kept.

    The space is the recipe's `search`, or `usual_space` where it has none.
    """
    optuna = _optuna()
    count = whole(trials, "search", low=1)
    space = checked_space(recipe, recipe.search or usual_space(recipe))
    if recipe.schedule.ramp[1] > recipe.epochs - 1:
        raise InputError(
            f"search: expected at least one epoch after the ramp of ε, got {recipe.epochs} epochs and a ramp "
            f"to {recipe.schedule.ramp[1]:g}; accuracies before its end are not compared"
        )
    task = prepare(recipe, data)  # what cannot be trained is refused before the first trial
    folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name=recipe.name,
        storage=f"sqlite:///{(folder / DATABASE).absolute()}",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(LEADING, n_warmup_steps=math.ceil(recipe.schedule.ramp[1])),
    )
    # A seed of its own for every start: the first trials again would be the same ones.
    study.sampler = optuna.samplers.TPESampler(seed=recipe.seed + len(study.trials))
    _same_question(study, recipe, space)
    _give_up_the_interrupted(study)
    while len(_ended(study)) < count:
        trial = study.ask()
        _one(study, trial, recipe, space, data)
        if progress is not None:
            progress(_told(study.trials[-1]), count)
    found = [one for one in study.trials if one.state is optuna.trial.TrialState.COMPLETE]
    if not found:
        raise TrainingError(f"search: expected a trial that ends, got {count} that failed or were stopped early")
    best = _told(study.best_trial)
    return Search(tuple(map(_told, study.trials)), changed(recipe, best.values), best.score or 0.0, task.method.judged)


def _one(study: optuna.Study, trial: optuna.Trial, recipe: Recipe, space: Space, data: Any) -> None:
    """Trains the recipe of a trial and tells the study its score, or why it has none."""
    import optuna

    values = {key: _suggest(trial, key, among) for key, among in space.items()}
    trial.set_user_attr("values", values)
    task = prepare(changed(recipe, values), data)
    best = -math.inf

    def watch(row: Epoch, _: int) -> None:
        nonlocal best
        if row.epsilon < task.method.epsilon:
            return  # while ε still grows accuracies of two trials say little
        value = getattr(row, task.method.judged)
        best = max(best, row.clean if value is None else value)
        trial.report(best, row.epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        fit(task, tell=watch)
    except optuna.TrialPruned:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    except TrainingError as error:  # it diverged: that is an outcome of these values
        trial.set_user_attr("why", str(error))
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, best)


def usual_space(recipe: Recipe) -> dict[str, Range]:
    """What is tried where a recipe has no space of its own: learning rate, its fall, L1, κ, ε, regularisers, λ."""
    method = described(make(recipe.method))
    rate, epochs = recipe.optimiser.learning_rate, recipe.epochs
    space: dict[str, Range] = {"optimiser.learning_rate": {"low": rate / 5, "high": rate * 5, "log": True}}
    falls = [
        [],
        [math.ceil(0.5 * epochs), math.ceil(0.75 * epochs)],
        [math.ceil(0.7 * epochs), math.ceil(0.9 * epochs)],
    ]
    if not recipe.schedule.cosine and recipe.schedule.every is None and epochs > 3:
        space["schedule.at"] = falls
    if make(recipe.method).bounds:
        space["optimiser.l1"] = {"low": 1e-7, "high": 1e-4, "log": True}
    if "kappa" in method:
        space["method.kappa"] = [[1, 0], [0, 0], [1, 0.3], [1, 0.5]]
    if method.get("epsilon") and recipe.evaluation.epsilon is not None:
        least = recipe.evaluation.epsilon
        space["method.epsilon"] = {"low": least, "high": max(2 * least, method["epsilon"])}
    for key, high in (("regulariser", 1.0), ("share", 1.0), ("alpha", 1.0)):
        if isinstance(method.get(key), float):
            space[f"method.{key}"] = {"low": 0.02, "high": high}
    return space


def checked_space(recipe: Recipe, space: Space) -> Space:
    """The space, if every key is one of the recipe's and every range can be drawn from."""
    for key, values in space.items():
        where = f"search {key}"
        if isinstance(values, Mapping):
            if not {"low", "high"} <= set(values) <= {"low", "high", "log", "step"}:
                raise InputError(f"{where}: expected low and high (and log or step), got {brief(dict(values))}")
            low, high = number(values["low"], where), number(values["high"], where)
            if not low <= high or (values.get("log") and low <= 0):
                raise InputError(f"{where}: expected low ≤ high (above 0 with log), got {low:g} and {high:g}")
            changed(recipe, {key: low})
        elif not isinstance(values, (list, tuple)) or not values:
            raise InputError(f"{where}: expected a list of values or low and high, got {brief(values)}")
        else:
            for value in values:
                changed(recipe, {key: value})
    return space


def changed(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """The recipe with other values at dotted keys, such as {"optimiser.learning_rate": 0.01}; checked as a whole."""
    body = recipe.model_dump(exclude_unset=True, exclude={"search", "grid"})
    for key, value in values.items():
        *path, last = key.split(".")
        place = body
        for name in path:
            inner = place.get(name)
            place[name] = place = dict(inner) if isinstance(inner, Mapping) else {}
        place[last] = value
    return parse_recipe(body, f"search {', '.join(values)}", recipe.name)


def _suggest(trial: optuna.Trial, key: str, values: Range) -> Any:
    if isinstance(values, Mapping):
        low, high = number(values["low"], key), number(values["high"], key)
        if isinstance(values["low"], int) and isinstance(values["high"], int):
            return trial.suggest_int(key, int(low), int(high), log=bool(values.get("log")))
        return trial.suggest_float(key, low, high, log=bool(values.get("log")), step=values.get("step"))
    # Optuna's values are texts and numbers: a list, such as the epochs of a schedule, is chosen by its place.
    return values[trial.suggest_int(key, 0, len(values) - 1)]


def _told(trial: optuna.trial.FrozenTrial) -> Trial:
    return Trial(trial.number, trial.state.name.lower(), trial.value, trial.user_attrs.get("values", {}))


def _ended(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that need not be run again: those with a score, stopped early, or failed with a reason."""
    import optuna

    done = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    return [one for one in study.trials if one.state in done or "why" in one.user_attrs]


def _give_up_the_interrupted(study: optuna.Study) -> None:
    """Trials of a process that was killed: they have no score, and others take their place."""
    import optuna

    for one in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(one.number, state=optuna.trial.TrialState.FAIL)


def _same_question(study: optuna.Study, recipe: Recipe, space: Space) -> None:
    """Refuses to mix trials of two recipes or spaces in one file."""
    body = recipe.model_dump(mode="json", exclude={"output", "search"})
    question = json.dumps([body, space], sort_keys=True, default=list)
    if study.user_attrs.setdefault("question", question) != question:
        raise InputError(
            f"search: expected the recipe and space of the trials in {DATABASE}, got others; use another output"
        )
    study.set_user_attr("question", question)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ToolMissing("optuna", "pip install 'radii[hpo]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
