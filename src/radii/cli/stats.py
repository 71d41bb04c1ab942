"""`radii stats`: tables of stored radii on the terminal, and the comparison of two networks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import emit_json, table

if TYPE_CHECKING:
    from radii.report.content import Content


def stats(
    stores: Annotated[list[str], typer.Argument(help="Files or URLs of stores.")],
    eps: Annotated[str | None, typer.Option(help="ε of the shares, such as 0.02 or 8/255.")] = None,
    compare: Annotated[str | None, typer.Option(help="Compare two networks: A,B (names as in the table).")] = None,
    among: Annotated[str, typer.Option(help="With --compare: all inputs, or only the correct ones.")] = "all",
    confidence: Annotated[float, typer.Option(help="Confidence of guarantees.")] = 0.95,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what stored radii say: shares, outcomes, classes, and comparisons with their p-values.

    \b
    Examples:
      radii stats study.db --eps 8/255
      radii stats study.db --compare mnist-net,mnist-large
    """
    from radii._check import epsilon
    from radii.errors import InputError
    from radii.report import tables
    from radii.report.content import gather
    from radii.store import Selection

    content = gather(stores, Selection(classifier=tuple(classifier or ())))
    if content.empty:
        raise InputError(f"radii stats: expected finished radii, got none in {', '.join(stores)}; run the study first")
    if compare is not None:
        _compare(content, compare, among, json)
        return
    size = tables.default_eps(content) if eps is None else epsilon(eps, "--eps")
    shown = tables.all_tables(content, size, confidence)[1:5]
    if json:
        emit_json({"eps": size, "networks": [_facts(one, size, confidence) for one in content.series]})
        return
    for line in content.alarms:
        typer.echo(f"ALARM: {line}\n")
    for one in shown:
        typer.echo(one.title)
        if one.rows:
            typer.echo(table(one.headers, one.rows))
        typer.echo(one.note + "\n")


def _facts(one: Any, eps: float, confidence: float) -> dict[str, Any]:
    low, high = one.dist.robust_accuracy(eps)
    limits = [float(v) for v in one.dist.guarantee(confidence).at(eps)]
    shares = {"proven": low, "not_broken": high, "unseen_low": limits[0], "unseen_high": limits[1]}
    return {"name": one.name, **one.question, **one.dist.summary().as_dict(), **shares}


def _compare(content: Content, names: str, among: str, json: bool) -> None:
    from radii.errors import InputError
    from radii.report.tables import series_of

    known = content.distributions
    pair = next(([a, b] for a in known for b in known if f"{a},{b}" == names and a != b), None)
    if pair is None:
        raise InputError(f"--compare: expected two names A,B of {', '.join(known)}, got {names!r}")
    a, b = (one.dist for one in series_of(content, pair))
    found = a.compare(b, among=among)
    if json:
        facts = {key: getattr(found, key) for key in ("names", "n", "paired", "limit")}
        effects = {key: asdict(getattr(found, key)) for key in ("cliffs_delta", "wasserstein", "area_difference")}
        emit_json({**facts, "test": asdict(found.test), "decision": found.test.decision(), **effects})
        return
    typer.echo(found.statement())
    effects_rows = [(name, *asdict(getattr(found, name)).values()) for name in ("cliffs_delta", "wasserstein")]
    heads = ("effect", *asdict(found.cliffs_delta))
    typer.echo(table(heads, effects_rows))
    typer.echo(f"inputs: {found.n[0]} and {found.n[1]}, {'paired' if found.paired else 'independent'}")
