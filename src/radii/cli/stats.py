"""`radii stats`: tables of stored radii on the terminal, and the comparison of networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import emit_json, note, table
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.report.content import Content
    from radii.report.tables import Table


def stats(
    what: Annotated[
        list[str],
        typer.Argument(metavar="[VIEW] STORE...", help="summary, compare, classes, fit or cost; then stores or .csv."),
    ],
    eps: Annotated[str | None, typer.Option(help="ε of the shares, such as 0.02 or 8/255.")] = None,
    compare: Annotated[str | None, typer.Option(help="Everything about two networks: A,B (names as printed).")] = None,
    among: Annotated[str, typer.Option(help="With --compare: all inputs, or only the correct ones.")] = "all",
    confidence: Annotated[float, typer.Option(help="Confidence of guarantees and intervals.")] = 0.95,
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option("--class", help="Only this class; may be repeated.")] = None,
    target: Annotated[str | None, typer.Option(help="Only radii towards this class.")] = None,
    costs: Annotated[Path | None, typer.Option(help="classes: file with a matrix of misclassification costs.")] = None,
    timeout: Annotated[float | None, typer.Option(help="cost: time-out of PAR scores in seconds.")] = None,
    plot: Annotated[Path | None, typer.Option(help="cost: write the plot of closed radii by time here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print what stored radii say: shares, outcomes, classes, and comparisons with their p-values.

    \b
    Examples:
      radii stats study.db --eps 8/255
      radii stats compare study.db
      radii stats study.db --compare mnist-net,mnist-large
      radii stats classes study.db --eps 0.02 --costs costs.csv
      radii stats fit results.csv
    """
    from radii._check import epsilon
    from radii.cli.loading import Part, loaded
    from radii.report import tables
    from radii.report.stats_tables import view
    from radii.stats._arrays import level

    level(confidence)
    chosen, addresses = _view(what)
    content = loaded(addresses, Part(study or (), classifier or (), label or (), target), "stats")
    if compare is not None and content.empty:
        from radii.cli.reached import reach_compare

        reach_compare(content, compare, among, json)
        return
    if compare is not None:
        _compare(content, compare, among, json)
        return
    if content.empty or (chosen == "summary" and content.reaches):
        if content.empty and chosen != "summary":
            raise InputError(f"radii stats {chosen}: expected finished radii, got only reaches; use radii stats")
        from radii.cli.reached import reach_stats

        reach_stats(content, confidence, json and content.empty)
    if content.empty:
        return
    size = tables.default_eps(content) if eps is None else epsilon(eps, "--eps")
    if chosen == "summary" and json:
        emit_json({"eps": size, "networks": [_facts(one, size, confidence) for one in content.series]})
        return
    limit = _limit(chosen, costs, timeout)
    _show(view(chosen, content, size, confidence, costs=costs, timeout=limit), content.alarms, size, json)
    if plot is not None:
        _plot(content, plot)


def _view(words: Sequence[str]) -> tuple[str, list[str]]:
    """The view, which is the first word if it is one, and the stores."""
    from radii._check import choice, nearest
    from radii.report.stats_tables import VIEWS

    first, rest = words[0], list(words[1:])
    if first in VIEWS and rest:
        return first, rest
    if first in VIEWS and not Path(first).exists():
        raise InputError(f"radii stats {first}: expected a store after it, got none")
    if rest and not Path(first).exists() and "://" not in first and nearest(first, VIEWS):
        choice(first, "view", VIEWS)
    return "summary", list(words)


def _limit(chosen: str, costs: Path | None, timeout: float | None) -> float | None:
    """The time-out of the view of costs; options that the view has no use for are refused."""
    from radii._check import number

    for name, value, place in (("--costs", costs, "classes"), ("--timeout", timeout, "cost")):
        if value is not None and chosen != place:
            raise InputError(f"{name}: expected it only with radii stats {place}, got it with {chosen}")
    return None if timeout is None else number(timeout, "--timeout", low=0.0, strict=True)


def _show(shown: Sequence[Table], alarms: Sequence[str], eps: float, json: bool) -> None:
    if json:
        body = {one.title: [dict(zip(one.headers, row, strict=True)) for row in one.rows] for one in shown}
        emit_json({"eps": eps, "alarms": list(alarms), "tables": body})
        return
    for line in alarms:
        typer.echo(f"ALARM: {line}\n")
    for one in shown:
        typer.echo(one.title)
        if one.rows:
            typer.echo(table(one.headers, one.rows))
        typer.echo(one.note + "\n")


def _plot(content: Content, path: Path) -> None:
    """CPU and wall time, side by side where both are known."""
    from radii.report import figures

    dists = [one.dist for one in content.series]
    clocks = [c for c in ("cpu", "wall") if any(getattr(d, f"{c}_seconds") is not None for d in dists)]
    if not clocks:
        raise InputError("--plot: expected radii with times, got none")
    for clock in clocks:
        figure, axes = figures.new_figure()
        figures.time_cdf(dists, axes, clock=clock)
        place = path if clock == "cpu" else path.with_name(f"{path.stem}-{clock}{path.suffix}")
        figures.save(figure, place)
        note(f"{place} written")


def _facts(one: Any, eps: float, confidence: float) -> dict[str, Any]:
    low, high = one.dist.robust_accuracy(eps)
    limits = [float(v) for v in one.dist.guarantee(confidence).at(eps)]
    shares = {"proven": low, "not_broken": high, "unseen_low": limits[0], "unseen_high": limits[1]}
    return {"name": one.name, **one.question, **one.dist.summary().as_dict(), **shares}


def _compare(content: Content, names: str, among: str, json: bool) -> None:
    known = content.distributions
    pair = next(([a, b] for a in known for b in known if f"{a},{b}" == names and a != b), None)
    if pair is None:
        from radii._check import nearest

        near = nearest(names.split(",")[-1], known)
        raise InputError(f"--compare: expected two names A,B of {', '.join(known)}, got {names!r}{near}")
    found = known[pair[0]].compare(known[pair[1]], among=among)
    if json:
        facts = {key: getattr(found, key) for key in ("names", "n", "paired", "limit")}
        effects = {key: asdict(getattr(found, key)) for key in ("cliffs_delta", "wasserstein", "area_difference")}
        curves = {key: [asdict(one) for one in getattr(found, key)] for key in ("leads", "crossings", "unseen_leads")}
        order = {key: asdict(getattr(found, key)) for key in ("a_dominates", "b_dominates")}
        test = {"test": asdict(found.test), "decision": found.test.decision()}
        emit_json({**facts, **test, **effects, **order, **curves})
        return
    typer.echo(found.statement())
    rows = [
        (name, *asdict(getattr(found, name)).values()) for name in ("cliffs_delta", "wasserstein", "area_difference")
    ]
    typer.echo(table(("effect", *asdict(found.cliffs_delta)), rows))
    first, second = pair
    typer.echo(f"{first} dominates: {found.a_dominates.sample}; for unseen inputs {found.a_dominates.unseen}")
    typer.echo(f"{second} dominates: {found.b_dominates.sample}; for unseen inputs {found.b_dominates.unseen}")
    typer.echo(f"inputs: {found.n[0]} and {found.n[1]}, {'paired' if found.paired else 'independent'}")
