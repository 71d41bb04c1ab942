"""`radii guarantee`: how many inputs a guarantee needs, or the sentence that stored radii allow."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from radii.cli.console import emit_json


def guarantee(
    store: Annotated[
        str | None, typer.Argument(help="File or URL of a store; without one the sample is planned.")
    ] = None,
    eps: Annotated[str | None, typer.Option(help="The ε of the sentence, such as 0.02 or 8/255.")] = None,
    error: Annotated[float, typer.Option(help="Planning: half the width of the interval.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Confidence of the guarantee.")] = 0.95,
    method: Annotated[str, typer.Option(help="Planning: hoeffding, dkw, clopper-pearson or bernstein.")] = "hoeffding",
    population: Annotated[
        int | None, typer.Option(help="Inputs are drawn from this many, without replacement.")
    ] = None,
    one: Annotated[bool, typer.Option("--one", help="For this ε alone (fixed beforehand): narrower.")] = False,
    among: Annotated[str, typer.Option(help="all inputs, or only the correct ones.")] = "all",
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan a sample, or print the sentence about unseen inputs that may be quoted.

    \b
    Examples:
      radii guarantee --error 0.05 --confidence 0.95
      radii guarantee study.db --eps 8/255
    """
    from radii._check import epsilon
    from radii.errors import InputError

    if store is None:
        _plan(error, confidence, method, population, json)
        return
    from radii.report.content import gather
    from radii.store import Selection

    if eps is None:
        raise InputError("--eps: expected the ε of the sentence, such as 0.02 or 8/255, got none")
    size = epsilon(eps, "--eps")
    content = gather([store], Selection(classifier=tuple(classifier or ())))
    if content.empty:
        raise InputError(f"radii guarantee: expected finished radii, got none in {store}; run the study first")
    found: list[dict[str, Any]] = []
    for series in content.series:
        promise = series.guarantee(confidence, among, population)
        low, high = promise.at_one(size) if one else (float(v) for v in promise.at(size))
        told = promise.sentence(size, whole_curve=not one)
        found.append({"network": series.name, "eps": size, "n": promise.n, "low": low, "high": high, "sentence": told})
    if json:
        emit_json({"confidence": confidence, "alarms": content.alarms, "guarantees": found})
        return
    for line in content.alarms:
        typer.echo(f"ALARM: {line}")
    for row in found:
        typer.echo(f"{row['network']}: {row['sentence']}")


def _plan(error: float, confidence: float, method: str, population: int | None, json: bool) -> None:
    from radii.stats.samples import sample_size

    plan = sample_size(error, confidence, method, population=population)
    if json:
        emit_json({"n": plan.n, "error": error, "confidence": confidence, "method": method, "meaning": plan.meaning})
        return
    typer.echo(
        f"{plan.n} inputs, drawn at random before anything is measured, give every share within {error:g} "
        f"with {confidence:g} confidence ({plan.meaning})."
    )
    typer.echo(f"Then: radii run STUDY.yaml with {plan.n} indices, and radii guarantee STORE --eps E")
