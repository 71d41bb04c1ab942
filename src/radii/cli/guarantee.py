"""`radii guarantee` plan, run and read: the size of a sample, a sample that is run, and what stored radii allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import Whole, emit_json, note
from radii.cli.options import DataOption, Keep, Model, NormName, Root, Split, Verifier, data_options
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.cli.loading import Wanted
    from radii.report.content import Content, Series
    from radii.stats import Distribution, Guarantee

SEARCHES = {
    "direct": "measured radii: holds for every ε at once",
    "one": "one query per input, about this ε only",
    "attack": "an attack only: says nothing about robustness, only how much is broken",
}


# Options that several of the three commands have.
Eps = Annotated[str, typer.Option(help="The ε of the sentence, such as 0.02 or 8/255.")]
Error = Annotated[float, typer.Option(help="Half the width of the interval that is asked for.")]
Confidence = Annotated[float, typer.Option(help="Confidence of the guarantee.")]
Method = Annotated[
    str | None, typer.Option(help="Limits at one ε: clopper-pearson, hoeffding, chernoff or bernstein; plans: dkw.")
]
Share = Annotated[float | None, typer.Option(help="For the plan: a guess of the robust share.")]
Population = Annotated[int | None, typer.Option(help="Inputs are drawn from this many, without replacement.")]
One = Annotated[bool, typer.Option("--one", help="For this ε alone (fixed beforehand): narrower.")]
Among = Annotated[str, typer.Option(help="all inputs, or only the correct ones.")]
Target = Annotated[str | None, typer.Option(help="Only this class counts as a change of mind.")]
Gamma = Annotated[str | None, typer.Option(help="The sentence about reaches: how many stay within this.")]
Mean = Annotated[bool, typer.Option("--mean", help="The sentence about the mean reach (Hoeffding).")]
Bounds = Annotated[
    str | None, typer.Option(help="With --mean: LOW,HIGH that no reach leaves, where it has no limits itself.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_FLAGS = ("--one", "--by-class", "--sequential", "--finite", "--mean", "--json")


class Spellings(Whole):
    """Sub-commands, and the spelling without them: MODEL --data … is run, STORE is read, neither is plan."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = [_meant(args), *args]
        return super().parse_args(ctx, args)


def _meant(words: Sequence[str]) -> str:
    """The sub-command that the words without one ask for."""
    if any(word == "--data" or word.startswith("--data=") for word in words):
        return "run"
    takes = [word.startswith("-") and "=" not in word and word not in _FLAGS for word in words]
    plain = [not word.startswith("-") and not (i and takes[i - 1]) for i, word in enumerate(words)]
    return "read" if any(plain) else "plan"


app = typer.Typer(
    cls=Spellings,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Plan a sample, run it, or print the sentence about unseen inputs that stored radii allow.

    The word plan, run or read may be left out: MODEL --data NAME is run, STORE is read, and neither is plan.

    \b
    Examples:
      radii guarantee plan --error 0.05 --confidence 0.95
      radii guarantee run zoo:mnist5k-standard --data mnist5k --eps 0.01 --error 0.2 --seconds 1
      radii guarantee read study.db --eps 8/255 --by-class
    """,
)


@app.command()
def plan(
    error: Error = 0.05,
    confidence: Confidence = 0.95,
    method: Method = None,
    share: Share = None,
    population: Population = None,
    json: Json = False,
) -> None:
    """How many inputs the asked width needs, before anything is measured.

    \b
    Example:
      radii guarantee plan --error 0.05 --confidence 0.95
    """
    from radii.stats.sample_sizes import sample_size

    kind = method or "hoeffding"
    found = sample_size(error, confidence, kind, share=share, population=population)
    if json:
        emit_json({"n": found.n, "error": error, "confidence": confidence, "method": kind, "meaning": found.meaning})
        return
    typer.echo(
        f"{found.n} inputs, drawn at random before anything is measured, give every share within {error:g} "
        f"with {confidence:g} confidence ({found.meaning})."
    )
    typer.echo("Then: radii guarantee run MODEL --data NAME --eps E draws, measures and says what may be quoted.")


@app.command()
def run(
    model: Model,
    data: Annotated[str, typer.Option(help="Data set by name, or a file or folder.")],
    eps: Eps,
    error: Error = 0.05,
    confidence: Confidence = 0.95,
    method: Method = None,
    share: Share = None,
    one: One = False,
    among: Among = "all",
    target: Target = None,
    property: Annotated[
        str | None, typer.Option(help="Measure how far this gets within ε instead (its reach): probability, standard.")
    ] = None,
    gamma: Gamma = None,
    mean: Mean = False,
    bounds: Bounds = None,
    root: Root = None,
    split: Split = None,
    option: DataOption = None,
    search: Annotated[str, typer.Option(help="direct (radii), one (this ε only) or attack.")] = "direct",
    inputs: Annotated[int | None, typer.Option(help="How many inputs, instead of --error.")] = None,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Stop as soon as the interval is narrow enough.")
    ] = False,
    finite: Annotated[bool, typer.Option("--finite", help="Speak of the inputs of this data set alone.")] = False,
    norm: NormName = "linf",
    seconds: Annotated[float, typer.Option(help="CPU seconds per input.")] = 60.0,
    tolerance: Annotated[
        str | None, typer.Option(help="The gap that counts as closed: 0.002, or 5% of the upper end. [reaches: 2%]")
    ] = None,
    verifier: Verifier = "native",
    seed: Annotated[int, typer.Option(help="Seed of the draw and of the search.")] = 0,
    store: Keep = None,
    json: Json = False,
) -> int:
    """Draw a sample, measure it, and say what follows for unseen inputs.

    \b
    Examples:
      radii guarantee run zoo:mnist5k-standard --data mnist5k --eps 0.01 --error 0.2 --seconds 1
      radii guarantee run zoo:mnist5k-standard --data mnist5k --eps 0.01 --error 0.2 --search one --sequential
      radii guarantee run zoo:mnist5k-conv --data mnist5k --eps .01 --inputs 5 --property probability --mean --seconds 1
    """
    from radii._check import choice, epsilon, number
    from radii.cli.reached import bounds_of
    from radii.cli.sampling import Reaching, Sampling, sample

    size = epsilon(eps, "--eps")
    choice(search, "--search", SEARCHES)
    reaching = None
    if property is not None:
        point = None if gamma is None else number(gamma, "--gamma")
        reaching = Reaching(property, point, mean, bounds_of(bounds))
        if sequential or search != "direct" or target is not None:
            raise InputError("--property: expected it without --sequential, --search and --target, got one of them")
    elif gamma is not None or mean or bounds is not None:
        raise InputError("--gamma, --mean, --bounds: expected --property beside them, which says what is measured")
    request = Sampling(
        model=model, data=data, root=root, split=split, reading=data_options(option), eps=size, error=error,
        confidence=confidence, method=method,
        share=share, one=one or search != "direct", among=among, inputs=inputs, finite=finite, search=search,
        options={"norm": norm, "seconds": seconds, "tolerance": tolerance, "seed": seed},
        verifier=verifier, target=target, store=store, reaching=reaching,
    )  # fmt: skip
    return sample(request, sequential, json)


@app.command()
def read(
    store: Annotated[str, typer.Argument(help="File or URL of a store, or a .csv file.")],
    eps: Annotated[str | None, typer.Option(help="The ε of the sentence, such as 0.02 or 8/255.")] = None,
    gamma: Gamma = None,
    mean: Mean = False,
    bounds: Bounds = None,
    confidence: Confidence = 0.95,
    method: Method = None,
    population: Population = None,
    one: One = False,
    among: Among = "all",
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--class", help="This class of inputs; may be repeated (Bonferroni).")
    ] = None,
    by_class: Annotated[bool, typer.Option("--by-class", help="One sentence per class, all together.")] = False,
    at_least: Annotated[
        float | None, typer.Option(help="Which classes are shown to have this robust share at ε (Holm).")
    ] = None,
    target: Target = None,
    json: Json = False,
) -> None:
    """Print the sentence about unseen inputs that stored radii allow; with --gamma or --mean, that stored reaches do.

    \b
    Examples:
      radii guarantee read study.db --eps 8/255 --by-class
      radii guarantee read reaches.db --gamma 0.2
      radii guarantee read reaches.db --mean
    """
    from radii._check import epsilon, number
    from radii.cli.loading import Part, check_names, loaded
    from radii.cli.reached import bounds_of, reach_sentences

    content = loaded([store], Part(study or (), classifier or ()), "guarantee")
    if gamma is not None or mean:
        if label or by_class or at_least is not None or target is not None or (mean and gamma is not None):
            raise InputError(
                "--gamma, --mean: expected one of them, without --class, --by-class, --at-least and --target"
            )
        point, size = (
            None if text is None else number(text, name) for text, name in ((gamma, "--gamma"), (eps, "--eps"))
        )
        told = {"confidence": confidence, "among": among, "population": population, "bounds": bounds_of(bounds)}
        reach_sentences(content, point, size, told, one, method, json)
        return
    if eps is None:
        raise InputError(
            "radii guarantee: expected --eps for radii, or --gamma or --mean for reaches, got none of them"
        )
    size = epsilon(eps, "--eps")
    if content.empty:
        raise InputError(
            f"radii guarantee: expected finished radii, got only reaches in {store}; use --gamma or --mean"
        )
    wanted = check_names(content.series, label or (), target)
    if at_least is not None:
        _claims(content, size, at_least, confidence, json)
        return
    asked = {"confidence": confidence, "among": among, "population": population}
    found = _promises(content, wanted, by_class, asked)
    _tell(found, content.alarms, (size, one, method or "clopper-pearson"), json)


def _promises(
    content: Content, wanted: Wanted, by_class: bool, asked: dict[str, Any]
) -> list[tuple[Series, Guarantee]]:
    """One guarantee per network, or per class or target; those of one network hold together (Bonferroni)."""
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
