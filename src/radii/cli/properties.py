"""`radii properties`: the definitions of robustness with their trade-offs, and their measures on networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii._check import number
from radii.cli.console import PARTIAL, counted, emit_json, fitted, note, sometimes, stoppable, table
from radii.cli.options import DataOption, NormName, Root, Seed, Split, Verifier, inputs_of
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.study.measures import Measures

# Definition, how it is written, what it needs, how easily its number is read, whether it may be wanted everywhere, and
# what training can use: after Table 2 of Casadio et al. 2022, which compares the first four.
_HEADS = ("definition", "as text", "for", "easy to read", "wanted everywhere", "training by")
_DEFINITIONS = (
    ("classification", "classification", "labels", "yes: ε alone", "no: not across borders", "augmentation"),
    ("strong classification", "strong:eta=0.52", "labels", "medium: ε and η", "no: not across borders", "constraints"),
    ("standard", "standard:delta=10", "any outputs", "medium: ε and δ", "yes", "adversarial, constraints"),
    ("Lipschitz", "lipschitz:constant=10", "any outputs", "hard: a ratio of units", "yes", "constraints"),
    ("probability change", "probability:gamma=0.1", "a softmax", "medium: ε and γ", "yes", "-"),
    ("rows", "rows:[[1,-1,0]]", "any outputs", "as you write it", "as you write it", "-"),
)
_ADVICE = """\
Use classification when the decision is all that counts: one number, no threshold to defend. It asks the network to be
constant in the ball, so it contradicts itself where balls of two classes meet.

Use strong classification when confidence counts too. On probabilities (strong:eta=0.52,on=probability) η above 1/2
implies classification; at 1/2 or below it does not, because another class may have as much or more.

Use standard robustness for regression, for inputs near a border, and where an output itself is used: it needs no
label and may be asked of every input. δ is in units of the outputs.

Use Lipschitz for training and for the strongest promise: LR(ε, L) implies SR(ε, εL), never the reverse. It is the
hardest to satisfy and to read.

Use probability change when a score is shown to people: it bounds how much any softmax probability moves.

All of them are monotone: what holds for ε holds for a smaller ε, and for a larger δ, L or γ and a smaller η."""


def properties(
    models: Annotated[list[str] | None, typer.Argument(help="ONNX files or zoo:NAME; none explains.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Data set by name (see radii datasets), or a file or folder.")
    ] = None,
    eps: Annotated[
        str | None, typer.Option(help="Size of the balls, such as 0.02 or 8/255; several: 0.01,0.02.")
    ] = None,
    property: Annotated[
        list[str] | None,
        typer.Option(help="What to measure; may be repeated. [classification, standard:10, lipschitz:10]"),
    ] = None,
    index: Annotated[str, typer.Option(help="Positions in the split: 0:10, or 3,5,8.")] = "0:10",
    root: Root = None,
    split: Split = None,
    option: DataOption = None,
    norm: NormName = "linf",
    seconds: Annotated[float, typer.Option(help="CPU seconds of the verifier for each input and property.")] = 10.0,
    samples: Annotated[int, typer.Option(help="Points drawn from each ball.")] = 100,
    by_class: Annotated[bool, typer.Option("--by-class", help="One row per class.")] = False,
    picture: Annotated[Path | None, typer.Option(help="Also draw the measures over ε into this file.")] = None,
    verifier: Verifier = "native",
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per row.")] = False,
) -> int:
    """What robustness can mean, which definition to use when, and how far networks satisfy each.

    Ends with 3 when an attack or a sample breaks what is proven: one of the two is wrong.

    \b
    Examples:
      radii properties
      radii properties zoo:mnist5k-adversarial --data mnist5k --index 0:2 --eps 0.01 --property standard:10 --seconds 2
      radii properties zoo:mnist5k-standard --data mnist5k --index 0 --eps 0.005,0.01 --property standard:3 --seconds 2
    """
    if not models:
        if data is not None or eps is not None:
            raise InputError("properties: expected networks beside --data and --eps, got none; name an ONNX file")
        _explain()
        return 0
    if data is None or eps is None:
        absent = "--data" if data is None else "--eps"
        raise InputError(f"{absent}: expected it beside networks, got none; without networks the command explains")
    from radii import api
    from radii.problem.property import parse

    asked = [parse(text, "--property") for text in property or ("classification", "standard:10", "lipschitz:10")]
    sizes = sorted({number(text, "--eps", low=0.0, strict=True) for text in eps.split(",")})
    if picture is not None:
        _writable(picture)
    for one in asked:
        if one.caution:
            note(f"note: {one.caution}")
    chosen = inputs_of(data, index, split, root, option)
    nets = [api.load_classifier(model, seconds=seconds) for model in models]
    done: list[Measures] = []
    with stoppable() as ending:
        for net in nets:
            below = None
            for size in sizes:
                say = sometimes()
                options: dict[str, Any] = {"norm": norm, "seconds": seconds, "samples": samples, "seed": seed}
                options["verifier"] = verifier
                named = f"{net.name}, ε = {size:g}"
                options["progress"] = lambda k, n, name=named, say=say: say(f"{name}: {k} of {n} questions")
                below = api.measures(net, chosen, epsilon=size, properties=asked, below=below, **options)
                done.append(below)
    _print(done, by_class, json)
    if picture is not None and done:
        from radii.report.measure_curves import measure_curves
        from radii.report.style import save

        save(measure_curves(_rows(done, False)), picture)
    alarms = [line for one in done for line in one.alarms]
    for line in alarms:
        note(f"alarm: {line}")
    failed = [f"stopped, {len(done)} of {len(nets) * len(sizes)} networks and sizes done"] if ending.stopped else []
    failed += [counted(len(alarms), "contradiction")] if alarms else []
    if failed:
        note(f"radii: partial: {', '.join(failed)}")
    return PARTIAL if failed else 0


def _writable(picture: Path) -> None:
    """Refuses a picture that cannot be written, before anything is measured."""
    from radii.report.style import FORMATS

    if picture.suffix.lstrip(".") not in FORMATS:
        raise InputError(f"--picture: expected a file that ends in .{', .'.join(FORMATS)}, got {picture.name!r}")
    if not picture.resolve().parent.is_dir():
        raise InputError(f"--picture: expected a folder that is there, got {picture.parent}")


def _explain() -> None:
    typer.echo("A property says what must hold for every input within ε of a given one.\n")
    typer.echo(table(_HEADS, _DEFINITIONS))
    typer.echo()
    for paragraph in _ADVICE.split("\n\n"):
        typer.echo(fitted(" ".join(paragraph.split()), 2) + "\n")
    typer.echo("Next: radii properties MODEL --data NAME --eps 0.02")


def _rows(done: list[Measures], by_class: bool) -> list[dict[str, Any]]:
    """A row per network, size and property (and class)."""
    return [
        {"classifier": one.classifier, "epsilon": one.settings.epsilon, **{str(k): v for k, v in row.items()}}
        for one in done
        for row in one.to_frame(by_class=by_class).to_dict("records")
    ]


def _print(done: list[Measures], by_class: bool, json: bool) -> None:
    rows = _rows(done, by_class)
    if json:
        kept = done[0].settings if done else None
        told = {} if kept is None else {"norm": kept.norm.name, "samples": kept.samples}
        emit_json([{**row, **told} for row in rows])
        return
    if not done:
        return
    used, sizes = done[0].settings, sorted({one.settings.epsilon for one in done})
    named = f"ε = {', '.join(f'{size:g}' for size in sizes)}"
    typer.echo(f"{done[0].data}, {used.norm.name}, {named}; shares of inputs (accuracy: of points)")
    heads = ("classifier", "property", *(["epsilon"] if len(sizes) > 1 else []), *(["label"] if by_class else []))
    heads = (*heads, "inputs", "proven", "not_refuted", "security")
    shown = [[*(row[head] for head in heads), *_accuracy(row)] for row in rows]
    typer.echo(table((*heads, "accuracy", "interval", "cpu_seconds"), shown))
    typer.echo(
        f"security: projected gradient ascent, {used.attack.steps} steps, {used.attack.restarts} restarts; accuracy: "
        f"{used.samples} points per input, {used.confidence:.0%} Clopper–Pearson; seed {used.seed}; cpu per input"
    )


def _accuracy(row: dict[Any, Any]) -> tuple[float, str, float]:
    return row["accuracy"], f"[{row['accuracy_low']:.4f}, {row['accuracy_high']:.4f}]", row["cpu_seconds"]
