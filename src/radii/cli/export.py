"""`radii export`: stored results as a table, or as VNN-LIB queries with their networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radii.cli.console import counted, note, writable

FORMATS = ("csv", "parquet", "json", "vnnlib", "card")


def export(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    what: Annotated[str, typer.Option(help="radii, reaches or queries.")] = "radii",
    format: Annotated[str, typer.Option(help="csv, parquet, json, vnnlib or card (for a model hub).")] = "csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File (a folder for vnnlib); stdout unless given.")
    ] = None,
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    status: Annotated[list[str] | None, typer.Option(help="Only this status; may be repeated.")] = None,
) -> None:
    """Write stored radii, reaches, or the queries behind radii, for other programs.

    \b
    Examples:
      radii export study.db --format csv -o radii.csv
      radii export study.db --what reaches
    """
    from radii._check import choice
    from radii.cli.selection import chosen
    from radii.errors import InputError
    from radii.store import export as write
    from radii.store import open_store, queries_frame, radii_frame, reaches_frame

    choice(what, "--what", ("radii", "reaches", "queries"))
    choice(format, "--format", FORMATS)
    if what == "reaches" and format in ("vnnlib", "card"):
        raise InputError(f"--format {format}: expected csv, parquet or json for reaches, got {format}")
    if format == "vnnlib" and output is None:
        raise InputError("--format vnnlib: expected a folder to write to, got none; give one with -o FOLDER")
    with open_store(store, create=False) as opened:
        where = chosen(opened, study, classifier, status)
        if format == "vnnlib" and output is not None:
            from radii.study.bundle import write_bundle

            count = write_bundle(opened, where, writable(output))
            what = "query" if count == 1 else "queries"
            note(f"{count} {what} in {output}: instances.csv, expected.csv, onnx/ and vnnlib/")
            return
        if format == "card":
            from radii.report.card import write_card

            card = write_card(opened, output, where=where)
            if output is None:
                typer.echo(card, nl=False)
            return
        frame = {"radii": radii_frame, "reaches": reaches_frame, "queries": queries_frame}[what](opened, where)
    text = write(frame, format, output)
    if text is not None:
        typer.echo(text, nl=False)
    elif output is not None:
        note(f"{counted(len(frame), 'row')} in {output}")
