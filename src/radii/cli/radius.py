"""`radii radius`: the radius of one input, or of a few."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import counted, note, partial, stoppable, table
from radii.cli.options import (
    Data,
    DataOption,
    Ends,
    Index,
    Keep,
    Mean,
    Model,
    NormName,
    Root,
    Seed,
    Shape,
    Split,
    Std,
    Verifier,
    grid_of,
    inputs_of,
    network_of,
    property_of,
)
from radii.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from radii.problem import Instance, Radius
    from radii.store import RadiusRecord
    from radii.study.question import Question
    from radii.study.settings import Options

_SHOWN = ("index", "label", "prediction", "target", "lower", "upper", "status", "cpu_seconds")


def radius(
    model: Model,
    data: Data,
    index: Index = "0",
    root: Root = None,
    split: Split = None,
    option: DataOption = None,
    target: Annotated[int | None, typer.Option(help="Only this class counts as a change of mind.")] = None,
    norm: NormName = "linf",
    property: Annotated[
        str, typer.Option(help="classification, strong:eta=0.5, standard:delta=10, … (see docs/nouns/property.md).")
    ] = "classification",
    seconds: Annotated[float, typer.Option(help="CPU seconds for each input.")] = 60.0,
    tolerance: Annotated[
        str, typer.Option(help="The gap that counts as closed, such as 0.002, 1/255, or 5% of the upper end.")
    ] = "0.002",
    verifier: Verifier = "native",
    grid: Annotated[
        str | None, typer.Option(help="Ask about START:STOP:STEP by binary search instead of measuring.")
    ] = None,
    mean: Mean = None,
    std: Std = None,
    input_shape: Shape = None,
    domain: Ends = "0,1",
    seed: Seed = 0,
    store: Keep = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Write evidence for radii check: a file, or a folder for several inputs.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with the columns of radii export.")] = False,
) -> int:
    """How far can this input move before the network changes its mind?

    \b
    Example:
      radii radius zoo:mnist5k-standard --data mnist5k --index 0:5 --seconds 10
      radii radius net.onnx --data mnist5k --index 7 --evidence digit7.evidence
      radii radius net.onnx --data pixels.csv --option label=digit --option scale=255 --option shape=1,28,28
    """
    from radii import api

    prop = property_of(property, target)
    if prop.caution:
        note(f"note: {prop.caution}")
    net = network_of(model, mean, std, domain, input_shape, seconds)
    chosen = inputs_of(data, index, split, root, option)
    net.check_inputs(chosen.x, chosen.y)
    for line in (*net.alarms, *chosen.alarms):
        note(f"alarm: {line}")
    asked: Options = {"property": prop, "norm": norm, "seconds": seconds, "tolerance": tolerance}
    asked |= {"grid": grid_of(grid), "verifier": verifier, "seed": seed, "evidence": evidence is not None}
    question = api.question(net, **asked)
    if store is None and not json:
        records, stopped = _searched(question, chosen.instances)
    else:
        records, stopped = _stored(question, chosen.instances, store, json)
    if evidence is not None:
        _write(evidence, records)
    if not json:
        typer.echo(f"{net.name} on {chosen.name} {chosen.split}, {prop}, {norm}")
        typer.echo(table(_SHOWN, [_row(record) for record in records]))
    return partial(f"{len(records)} of {counted(len(chosen), 'input')} done", store) if stopped else 0


def _searched(question: Question, instances: Sequence[Instance]) -> tuple[list[RadiusRecord], bool]:
    """The radii of inputs as they end, and whether they were stopped: without a store, which takes a while to load."""
    from radii.store import RadiusRecord
    from radii.study.progress import shown
    from radii.study.question import BATCH

    question.check_labels(instances)
    found: dict[int, RadiusRecord] = {}
    with stoppable() as ending, shown(None, len(instances), question.classifier.name) as tell:
        for start in range(0, len(instances), BATCH):

            def ended(place: int, radius: Radius, start: int = start) -> None:
                found[start + place] = RadiusRecord(unit=question.unit(instances[start + place]), radius=radius)
                if tell is not None:
                    tell(len(found), radius)

            for place, radius in enumerate(question.radii(instances[start : start + BATCH], ended)):
                if start + place not in found:
                    ended(place, radius)
    return [found[place] for place in sorted(found)], ending.stopped


def _stored(
    question: Question, instances: Sequence[Instance], store: str | None, json: bool
) -> tuple[list[RadiusRecord], bool]:
    """The radii of inputs, each stored as it ends, and whether they were stopped; as JSON they are printed here."""
    from radii.store import Selection, export, open_store, radii_frame
    from radii.study.progress import shown
    from radii.study.stored import stored_radii

    with open_store(store or ":memory:") as opened:
        with stoppable() as ending, shown(None, len(instances), question.classifier.name) as tell:
            stored_radii(question, instances, opened, tell)
        mine = Selection(key=tuple(question.unit(instance).key for instance in instances))
        if json:
            typer.echo(export(radii_frame(opened, mine), "json"), nl=False)
        return list(opened.records(mine)), ending.stopped


def _row(record: RadiusRecord) -> tuple[object, ...]:
    found, instance = record.radius, record.unit.instance
    ends = (found.lower, found.upper, found.status.value, found.cost.cpu_seconds)
    return instance.index, instance.label, found.prediction, record.unit.setting.target, *ends


def _write(target: Path, records: list[RadiusRecord]) -> None:
    """Evidence to a file, or to a folder with one file per input; what has none is said."""
    found = {record.unit.instance.index: record.evidence for record in records if record.evidence is not None}
    for record in records:
        if record.evidence is None:
            why = record.radius.note or "nothing was proven" * (not record.radius.misclassified) or "misclassified"
            note(f"input {record.unit.instance.index}: no evidence was written: {why}")
    try:
        if len(records) == 1:
            for one in found.values():
                target.write_bytes(one.data)
            return
        target.mkdir(parents=True, exist_ok=True)
        for index, one in found.items():
            (target / f"{index}.evidence").write_bytes(one.data)
    except OSError as error:
        raise InputError(f"--evidence: expected a place to write to, got {target}: {error.strerror}") from None
