"""A plan in a few lines, for people who are about to start it."""

from __future__ import annotations

from collections.abc import Sequence

from radii.problem.property import printed
from radii.store import Setting
from radii.study.plan import Plan

_MOST = 6  # names in one line


def plan_lines(plan: Plan) -> list[str]:
    """What the study consists of: classifiers, inputs, questions, budget and seed."""
    settings = {unit.setting.key: unit.setting for unit in plan.records}
    places = {(one.dataset, one.split, one.index, one.fingerprint) for one in (unit.instance for unit in plan.records)}
    counts: dict[str, int] = {}
    for dataset, split, _, _ in places:
        name = f"{dataset} {split}".strip()
        counts[name] = counts.get(name, 0) + 1
    return [
        f"classifiers: {_listed(list(plan.counts()))}",
        f"inputs: {_listed([f'{count} of {name}' for name, count in sorted(counts.items())])}",
        f"questions: {_listed(_questions(list(settings.values())))}",
        f"budget: {_budget(plan)}; seed {plan.seed}",
    ]


def _questions(settings: Sequence[Setting]) -> list[str]:
    """One text per question; those that differ only in the target are one."""
    targets: dict[tuple[str, str], list[str]] = {}
    for setting in settings:
        what = printed(setting.property, setting.property_parameters)
        what = what if setting.epsilon is None else f"reach of {what} at ε = {setting.epsilon:g}"
        text = (what, f"{setting.norm}, {setting.search} by {setting.verifier}")
        targets.setdefault(text, []).extend([] if setting.target is None else [str(setting.target)])
    return [f"{what}{f' target {_listed(aims)}' if aims else ''}, {how}" for (what, how), aims in targets.items()]


def _budget(plan: Plan) -> str:
    found = {unit.question.settings.budget: unit.question.settings.grid is None for unit in plan.units}
    texts = []
    for budget, whole in found.items():
        parts = [f"{budget.seconds:g} CPU s"] if budget.seconds is not None else []
        parts += [f"{budget.nodes} nodes"] if budget.nodes is not None else []
        parts += [f"{budget.memory / 2**30:.3g} GiB"] if budget.memory is not None else []
        texts.append(f"{', '.join(parts) or 'no limit'} {'per input' if whole else 'per query'}")
    return "; ".join(dict.fromkeys(texts))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
