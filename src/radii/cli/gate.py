"""`radii gate`: pass or fail for a pipeline, by what is guaranteed for unseen inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii._check import number
from radii.cli.console import emit_json, note
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.study.gate import Judgement
    from radii.study.reach_gate import ReachJudgement


def gate(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    robust_accuracy: Annotated[
        list[str] | None, typer.Option(help="SHARE@EPSILON, such as 0.9@0.01 or 0.8@2/255; may be repeated.")
    ] = None,
    reach: Annotated[
        list[str] | None,
        typer.Option(help="SHARE@GAMMA, such as 0.95@0.1: this share of reaches is at most GAMMA; may be repeated."),
    ] = None,
    mean_reach: Annotated[
        list[str] | None, typer.Option(help="The mean reach is at most this (Hoeffding); may be repeated.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the statement about unseen inputs.")] = 0.95,
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    property: Annotated[list[str] | None, typer.Option(help="Only this kind of property; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Exit with 1 and the reason unless enough unseen inputs are guaranteed to be robust, or to stay within reach.

    Reaches of least values (the label's output or margin) must be at least GAMMA, all others at most.

    \b
    Examples:
      radii gate study.db --robust-accuracy 0.9@0.01 --confidence 0.95
      radii gate reaches.db --reach 0.95@0.1 --mean-reach 0.2
    """
    from radii.cli.selection import chosen
    from radii.store import open_store
    from radii.study.gate import Demand, judge
    from radii.study.reach_gate import ReachDemand, judge_reaches

    demands = [Demand.of(text) for text in robust_accuracy or ()]
    reached = [ReachDemand.of(text) for text in reach or ()]
    reached += [ReachDemand(number(text, "--mean-reach")) for text in mean_reach or ()]
    if not demands and not reached:
        raise InputError("radii gate: expected --robust-accuracy, --reach or --mean-reach, got none of them")
    found: list[Judgement | ReachJudgement] = []
    with open_store(store, create=False) as opened:
        where = replace(chosen(opened, study, classifier, None), property=tuple(property or ()))
        found += judge(opened, where, demands, confidence) if demands else []
        found += judge_reaches(opened, where, reached, confidence) if reached else []
    failed = [one for one in found if not one.passed]
    if json:
        emit_json([_facts(one) for one in found])
    else:
        for one in found:
            typer.echo(f"{'pass' if one.passed else 'FAIL'}  {one.reason}")
    if failed:
        note(f"radii: gate failed: {failed[0].reason}" + (f" (and {len(failed) - 1} more)" if failed[1:] else ""))
    return 1 if failed else 0


def _facts(one: Judgement | ReachJudgement) -> dict[str, Any]:
    """One judgement as plain values; a demand on radii has an ε, one on reaches a γ."""
    at = "epsilon" if hasattr(one.demand, "epsilon") else "gamma"
    return {
        "group": one.group,
        at: getattr(one.demand, at),
        "asked": one.demand.share,
        "proven": one.proven,
        "guaranteed": one.limit,
        "inputs": one.n,
        "unfinished": one.missing,
        "passed": one.passed,
        "sentence": one.sentence,
    }
