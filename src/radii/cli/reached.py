"""What `radii stats` and `radii guarantee` say of reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from radii.cli.console import emit_json, table
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.report.content import Content
    from radii.report.reach_series import ReachSeries


def reach_stats(content: Content, confidence: float, json: bool) -> None:
    """The tables of every quantity and ε, or their facts as JSON."""
    from radii.report.reach_series import reach_tables, sections

    if json:
        emit_json({"reaches": [_facts(one) for one in content.reaches]})
        return
    for title, part in sections(content.reaches).items():
        for one in reach_tables(title, part, confidence):
            typer.echo(one.title)
            if one.rows:
                typer.echo(table(one.headers, one.texts))
            typer.echo(one.note + "\n")


def reach_sentences(
    content: Content,
    gamma: float | None,
    eps: float | None,
    asked: dict[str, Any],
    one: bool,
    method: str | None,
    json: bool,
) -> None:
    """The sentences about unseen inputs that stored reaches allow: the share within γ, and the mean."""
    chosen = [series for series in content.reaches if eps is None or series.dist.epsilon == eps]
    if not chosen:
        sizes = sorted({series.dist.epsilon for series in content.reaches if series.dist.epsilon is not None})
        got = ", ".join(f"{size:g}" for size in sizes) or "none"
        raise InputError(f"radii guarantee: expected finished reaches{_at(eps)}, got reaches at ε = {got}")
    rows: list[dict[str, Any]] = []
    for series in chosen:
        promise = series.dist.guarantee(asked["confidence"], asked["among"], asked["population"], asked["bounds"])
        facts = {"network": series.name, "reach": series.dist.title, "n": promise.n}
        if gamma is not None:
            how = method or "clopper-pearson"
            low, high = promise.at_one(gamma, how) if one else (float(v) for v in promise.at(gamma))
            told = promise.sentence(gamma, whole_curve=not one, method=how)
            rows.append({**facts, "gamma": gamma, "low": low, "high": high, "sentence": told})
        else:
            how = method or "hoeffding"
            low, high = promise.mean(how)
            rows.append({**facts, "mean": True, "low": low, "high": high, "sentence": promise.mean_sentence(how)})
    if json:
        emit_json({"confidence": asked["confidence"], "alarms": content.alarms, "guarantees": rows})
        return
    for line in content.alarms:
        typer.echo(f"ALARM: {line}")
    for row in rows:
        typer.echo(f"{row['network']}: {row['sentence']}")


def reach_compare(content: Content, names: str, among: str, json: bool) -> None:
    """Two networks' reaches against each other, for every quantity and ε that both have."""
    from radii.report.reach_series import sections

    found = []
    for part in sections(content.reaches).values():
        known = {one.name: one.dist for one in part}
        pair = next(((a, b) for a in known for b in known if f"{a},{b}" == names and a != b), None)
        if pair is not None:
            found.append(known[pair[0]].compare(known[pair[1]], among=among))
    if not found:
        known_names = ", ".join(dict.fromkeys(one.name for one in content.reaches))
        raise InputError(f"--compare: expected two names A,B of {known_names}, got {names!r}")
    if json:
        emit_json([{**asdict(one), "decision": one.test.decision()} for one in found])
        return
    for one in found:
        typer.echo(one.statement())


def bounds_of(text: str | None) -> tuple[float, float] | None:
    """Two limits from text such as "-10,10"."""
    from radii._check import number

    if text is None:
        return None
    parts: Sequence[str] = text.split(",")
    if len(parts) != 2:
        raise InputError(f"--bounds: expected LOW,HIGH such as 0,1, got {text!r}")
    return number(parts[0], "--bounds low"), number(parts[1], "--bounds high")


def _facts(series: ReachSeries) -> dict[str, Any]:
    return {"name": series.name, **series.question, "quantity": series.dist.quantity, **series.dist.summary()}


def _at(eps: float | None) -> str:
    return "" if eps is None else f" at ε = {eps:g}"
