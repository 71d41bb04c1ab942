"""`radii guarantee`: plans a sample, runs it, and prints the sentence about unseen inputs that may be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import emit_json, note
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.cli.loading import Wanted
    from radii.report.content import Content, Series
    from radii.stats import Distribution, Guarantee

SEARCHES = {
    "direct": "measured radii: holds for every ε at once",
    "one": "one query an input, about this ε only",
    "attack": "an attack only: says nothing about robustness, only how much is broken",
}


def guarantee(
    what: Annotated[
        str | None,
        typer.Argument(help="A store; or, with --data, a network to sample; nothing: the sample is only planned."),
    ] = None,
    eps: Annotated[str | None, typer.Option(help="The ε of the sentence, such as 0.02 or 8/255.")] = None,
    error: Annotated[float, typer.Option(help="Half the width of the interval that is asked for.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Confidence of the guarantee.")] = 0.95,
    method: Annotated[
        str | None, typer.Option(help="Limits at one ε: clopper-pearson, hoeffding, chernoff or bernstein; plans: dkw.")
    ] = None,
    share: Annotated[float | None, typer.Option(help="Planning: a guess of the robust share.")] = None,
    population: Annotated[
        int | None, typer.Option(help="Inputs are drawn from this many, without replacement.")
    ] = None,
    one: Annotated[bool, typer.Option("--one", help="For this ε alone (fixed beforehand): narrower.")] = False,
    among: Annotated[str, typer.Option(help="all inputs, or only the correct ones.")] = "all",
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--class", help="This class of inputs; may be repeated (Bonferroni).")
    ] = None,
    by_class: Annotated[bool, typer.Option("--by-class", help="One sentence a class, all together.")] = False,
    at_least: Annotated[
        float | None, typer.Option(help="Which classes are shown to have this robust share at ε (Holm).")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Only this class counts as a change of mind.")] = None,
    data: Annotated[str | None, typer.Option(help="Run: data set by name, or a file or folder.")] = None,
    root: Annotated[Path | None, typer.Option(help="Run: folder of the data set's files.")] = None,
    split: Annotated[str | None, typer.Option(help="Run: split of the data set; test unless given.")] = None,
    search: Annotated[str, typer.Option(help="Run: direct (radii), one (this ε only) or attack.")] = "direct",
    inputs: Annotated[int | None, typer.Option(help="Run: how many inputs, instead of --error.")] = None,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Run: stop as soon as the interval is narrow enough.")
    ] = False,
    finite: Annotated[
        bool, typer.Option("--finite", help="Run: the sentence is about the inputs of this data set.")
    ] = False,
    norm: Annotated[str, typer.Option(help="Run: linf, l2 or l1.")] = "linf",
    seconds: Annotated[float, typer.Option(help="Run: CPU seconds for each input.")] = 60.0,
    tolerance: Annotated[str, typer.Option(help="Run: the gap that counts as closed.")] = "0.002",
    verifier: Annotated[str, typer.Option(help="Run: see radii verifiers.")] = "native",
    seed: Annotated[int, typer.Option(help="Run: seed of the draw and of the search.")] = 0,
    store: Annotated[str | None, typer.Option(help="Run: keep results in this file or database, and use them.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Plan a sample, run it, or print the sentence about unseen inputs that stored radii allow.

    \b
    Examples:
      radii guarantee --error 0.05 --confidence 0.95
      radii guarantee zoo:mnist5k-conv --data mnist5k --eps 0.01 --error 0.1 --seconds 5
      radii guarantee zoo:mnist5k-conv --data mnist5k --eps 0.01 --search one --sequential --error 0.1
      radii guarantee study.db --eps 8/255 --by-class
    """
    from radii._check import choice, epsilon
    from radii.cli.loading import Part, check_names, loaded
    from radii.cli.sampling import Request, sample

    if what is None:
        _plan(error, confidence, method or "hoeffding", share, population, json)
        return 0
    size = None if eps is None else epsilon(eps, "--eps")
    if size is None:
        raise InputError("--eps: expected the ε of the sentence, such as 0.02 or 8/255, got none")
    if data is None:
        content = loaded([what], Part(study or (), classifier or ()), "guarantee")
        wanted = check_names(content.series, label or (), target)
        if at_least is not None:
            _claims(content, size, at_least, confidence, json)
            return 0
        asked = {"confidence": confidence, "among": among, "population": population}
        found = _promises(content, wanted, by_class, asked)
        _tell(found, content.alarms, (size, one, method or "clopper-pearson"), json)
        return 0
    choice(search, "--search", SEARCHES)
    request = Request(
        model=what, data=data, root=root, split=split, eps=size, error=error, confidence=confidence, method=method,
        share=share, one=one or search != "direct", among=among, inputs=inputs, finite=finite, search=search,
        options={"norm": norm, "seconds": seconds, "tolerance": tolerance, "seed": seed},
        verifier=verifier, target=target, store=store,
    )  # fmt: skip
    return sample(request, sequential, json)


def _plan(
    error: float, confidence: float, method: str, share: float | None, population: int | None, json: bool
) -> None:
    from radii.stats.sample_sizes import sample_size

    plan = sample_size(error, confidence, method, share=share, population=population)
    if json:
        emit_json({"n": plan.n, "error": error, "confidence": confidence, "method": method, "meaning": plan.meaning})
        return
    typer.echo(
        f"{plan.n} inputs, drawn at random before anything is measured, give every share within {error:g} "
        f"with {confidence:g} confidence ({plan.meaning})."
    )
    typer.echo("Then: radii guarantee MODEL --data NAME --eps E draws, measures and says what may be quoted.")


def _promises(
    content: Content, wanted: Wanted, by_class: bool, asked: dict[str, Any]
) -> list[tuple[Series, Guarantee]]:
    """One guarantee a network, or one a class or target; those of one network hold together (Bonferroni)."""
    from radii.stats._arrays import level

    found = []
    for series in content.series:
        parts, family = _parts(series, wanted, by_class)
        each = 1.0 - level(asked["confidence"]) / family
        for about, dist in parts:
            promise = replace(series, dist=dist).guarantee(each, asked["among"], asked["population"])
            found.append((series, replace(promise, about=about, family=family)))
    return found


def _parts(series: Series, wanted: Wanted, by_class: bool) -> tuple[list[tuple[str, Any]], int]:
    """The inputs to speak of, each with its name, and how many such statements could have been asked for."""
    from radii.cli.sampling import about as aimed

    whole: Any = series.dist
    about, family = "", 1
    if wanted.target is not None:
        pairs = series.pairs
        if pairs is None:
            raise InputError(f"--target: expected radii towards single classes, got none for {series.name}")
        whole, family = pairs.select(pairs.target == wanted.target), len(pairs.by_target())
        about = aimed(str(wanted.target))
    if not by_class and not wanted.labels:
        return [(about, whole)], family
    classes: dict[int, Distribution] = whole.by_class()
    chosen = [key for key in classes if not wanted.labels or key in wanted.labels]
    named = [(f"of class {key} {about}".rstrip(), classes[key]) for key in chosen]
    return named, family * len(classes)  # classes may have been picked after a look at the results


def _tell(
    found: Sequence[tuple[Series, Guarantee]], alarms: list[str], where: tuple[float, bool, str], json: bool
) -> None:
    size, one, method = where
    rows: list[dict[str, Any]] = []
    for series, promise in found:
        low, high = promise.at_one(size, method) if one else (float(v) for v in promise.at(size))
        told = promise.sentence(size, whole_curve=not one, method=method)
        facts = {"network": series.name, "about": promise.about, "eps": size, "n": promise.n, "low": low, "high": high}
        rows.append({**facts, "evidence": promise.evidence, "statements": promise.family, "sentence": told})
    if json:
        confidence = found[0][1].joint_confidence if found else None
        emit_json({"confidence": confidence, "alarms": alarms, "guarantees": rows})
        return
    for line in alarms:
        typer.echo(f"ALARM: {line}")
    for row in rows:
        typer.echo(f"{row['network']}: {row['sentence']}")


def _claims(content: Content, eps: float, share: float, confidence: float, json: bool) -> None:
    """For which classes of each network the share is shown."""
    from radii.cli.console import table
    from radii.stats.guarantee import class_claims

    rows = []
    for series in content.series:
        parts = {key: part.ends() for key, part in series.dist.by_class().items()}
        rows += [(series.name, one) for one in class_claims(parts, eps, share, confidence).values()]
    if json:
        emit_json([{"network": name, "eps": eps, **asdict(one)} for name, one in rows])
        return
    said = [(name, one.label, one.n, one.proven, one.p_value, "yes" if one.shown else "no") for name, one in rows]
    typer.echo(table(("network", "class", "inputs", "proven", "p after Holm", f"at least {share:g}"), said))
    note(
        f"yes: with {confidence:g} confidence for all classes of a network together, at least {share:.0%} of the "
        f"unseen inputs of the class are robust at {eps:g}, if inputs are independent draws and ε and the share "
        "were fixed before the radii were seen"
    )
