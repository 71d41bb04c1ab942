"""`radii reach`: how far the outputs of one input, or of a few, can move within ε."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii._check import number
from radii.cli.console import counted, emit_json, note, partial, stoppable, table
from radii.cli.options import (
    Data,
    DataOption,
    Ends,
    Index,
    Mean,
    Model,
    NormName,
    Root,
    Seed,
    Shape,
    Split,
    Std,
    inputs_of,
    network_of,
)

if TYPE_CHECKING:
    from radii.problem import Instance, Property, Reach

_SHOWN = ("index", "label", "prediction", "witnessed", "proven", "gap", "status", "cpu_seconds")


def reach(
    model: Model,
    data: Data,
    eps: Annotated[str, typer.Option(help="Size of the ball, such as 0.02 or 8/255.")],
    index: Index = "0",
    property: Annotated[
        str,
        typer.Option(
            help="standard: largest output change; lipschitz: largest slope; probability: largest change of a softmax "
            "probability; strong: least output of the label; strong:on=probability: its least probability."
        ),
    ] = "standard",
    root: Root = None,
    split: Split = None,
    option: DataOption = None,
    norm: NormName = "linf",
    seconds: Annotated[float, typer.Option(help="CPU seconds for each input.")] = 60.0,
    tolerance: Annotated[
        str, typer.Option(help="The gap that counts as closed, as a share of what is proven: 0.02 or 2%.")
    ] = "0.02",
    mean: Mean = None,
    std: Std = None,
    input_shape: Shape = None,
    domain: Ends = "0,1",
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per input.")] = False,
) -> int:
    """How far can the outputs move while the input moves by at most ε?

    \b
    Example:
      radii reach zoo:mnist5k-standard --data mnist5k --index 0:3 --eps 0.01 --property standard --seconds 2
      radii reach zoo:mnist5k-standard --data mnist5k --eps 0.01 --property strong:on=probability --seconds 2
    """
    from radii import api
    from radii.decide import Budget
    from radii.problem import Norm
    from radii.problem.property import measured
    from radii.problem.tolerance import share_of

    asked, size, ball = measured(property, "--property"), number(eps, "--eps", low=0.0, strict=True), Norm.of(norm)
    share, budget = share_of(tolerance, "--tolerance"), Budget(seconds=seconds)
    net = network_of(model, mean, std, domain, input_shape, seconds)
    chosen = inputs_of(data, index, split, root, option)
    net.check_inputs(chosen.x, chosen.y if asked.needs_label else None)
    for line in (*net.alarms, *chosen.alarms):
        note(f"alarm: {line}")
    told: dict[str, Any] = {
        "classifier": net.name,
        "dataset": chosen.name,
        "split": chosen.split,
        "property": _said(asked),
    }
    told |= {"norm": ball.name, "epsilon": size, "seed": seed}
    rows: list[dict[str, Any]] = []
    with stoppable() as ending:
        found = api.reaches(net, chosen.instances, asked, ball, size, budget, share, seed)
        for instance, one in zip(chosen.instances, found):
            rows.append(told | _row(instance, one))
            if one.note:
                note(f"input {instance.index}: {one.note}")
    if json:
        emit_json(rows)
    elif rows:
        end, unit = "least" if rows[0]["least"] else "largest", rows[0]["unit"]
        where = f"{net.name} on {chosen.name} {chosen.split}, {ball.name}, ε = {size:g}"
        typer.echo(f"{where}: {_said(asked)}, the {end} value in the ball (unit: {unit})")
        typer.echo(table(_SHOWN, [[row[key] for key in _SHOWN] for row in rows]))
    return partial(f"{len(rows)} of {counted(len(chosen), 'input')} done", None) if ending.stopped else 0


def _said(property: Property) -> str:
    """The property without its threshold, which a reach does not ask about."""
    from radii.problem.property import parameters, printed

    return printed(property.kind, {k: v for k, v in parameters(property).items() if k != type(property).threshold})


def _row(instance: Instance, found: Reach) -> dict[str, Any]:
    """One reach by its columns; an absent end is None."""
    return {
        "index": instance.index,
        "label": instance.label,
        "prediction": found.prediction,
        "least": found.least,
        "start": found.start,
        "witnessed": found.witnessed,
        "proven": found.proven,
        "gap": found.gap,
        "unit": found.unit,
        "status": found.status.value,
        "cpu_seconds": found.cost.cpu_seconds,
        "wall_seconds": found.cost.wall_seconds,
        "nodes": found.cost.nodes,
        "note": found.note,
    }
