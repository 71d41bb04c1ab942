"""`radii datasets`: what data there are, and how to get those that are missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from radii.cli.console import Whole, emit_json, table

app = typer.Typer(cls=Whole, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def datasets(
    context: typer.Context,
    root: Annotated[Path | None, typer.Option(help="Folder to look for the files of data sets in.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The data sets that can be named, whether they are here, and the line that gets them.

    \b
    Example:
      radii datasets
      radii datasets fetch mnist --root data
    """
    if context.invoked_subcommand is not None:
        return
    from radii.data.sources.registry import SOURCES

    rows = [
        {
            "name": source.name,
            "splits": list(source.splits),
            "about": source.about,
            "here": source.present(root),
            "get": source.how(root),
            "options": list(source.options),
            "format": source.format,
        }
        for source in SOURCES.values()
    ]
    if json:
        emit_json(rows)
        return
    named = [row for row in rows if not row["format"]]
    typer.echo(
        table(
            ("data set", "here", "what it is", "how to get it"),
            [(r["name"], "yes" if r["here"] else "no", r["about"], r["get"]) for r in named],
        )
    )
    typer.echo("\nFiles and folders can be given by path; the formats:")
    typer.echo(table(("format", "what it reads"), [(r["name"], r["about"]) for r in rows if r["format"]]))


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the data set.")],
    root: Annotated[Path | None, typer.Option(help="Folder to put it in; the user's cache unless given.")] = None,
) -> None:
    """Download a data set with checksum and resume.

    \b
    Example:
      radii datasets fetch mnist --root data/mnist
    """
    from rich.console import Console
    from rich.progress import Progress

    from radii.data.fetch import fetch_dataset

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(name)
        place = fetch_dataset(name, root, lambda have, total: bar.update(task, completed=have, total=total))
    typer.echo(place)
