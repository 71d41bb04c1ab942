"""`radii store`: join stores, look into one, give space back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from radii.cli.console import Whole, counted, emit_json, note, table

app = typer.Typer(
    cls=Whole,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="""Join stores, look into one, or give unused space back.

    \b
    Example:
      radii store merge all.db machine1.db machine2.db
      radii store info all.db
    """,
)


@app.command()
def merge(
    target: Annotated[str, typer.Argument(help="The store that gets everything; made when missing.")],
    sources: Annotated[list[str], typer.Argument(help="Stores to read.")],
) -> int:
    """Bring the results of other stores into one; the better end of each radius is kept.

    \b
    Example:
      radii store merge all.db machine1.db machine2.db
    """
    from contextlib import ExitStack

    from radii.store import merge as join
    from radii.store import open_store

    with ExitStack() as stack:
        others = [stack.enter_context(open_store(source, create=False)) for source in sources]
        done = join(stack.enter_context(open_store(target)), others)
    note(f"{counted(done.added, 'unit')} added, {done.known} were there already")
    for old, new in done.renamed.items():
        note(f"classifier {old!r} is another network in {target}: it is now {new!r}")
    for alarm in done.alarms:
        note(f"alarm: {alarm.classifier}, {alarm.dataset} input {alarm.index}: {alarm.message}")
    return 3 if done.alarms else 0


@app.command()
def info(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What a store holds and how large it is.

    \b
    Example:
      radii store info all.db
    """
    from radii.store import open_store

    with open_store(store, create=False) as opened:
        found = opened.info()
    if json:
        emit_json(asdict(found))
        return
    typer.echo(f"{found.where}: schema {found.schema}, {found.size_bytes / 2**20:.2f} MiB")
    typer.echo(table(("table", "rows"), sorted(found.rows.items())))
    typer.echo(table(("status", "radii"), found.statuses.items()))
    if found.studies:
        typer.echo(f"studies: {', '.join(found.studies)}")


@app.command()
def vacuum(store: Annotated[str, typer.Argument(help="File or URL of the store.")]) -> None:
    """Give unused space back to the disk.

    \b
    Example:
      radii store vacuum study.db
    """
    from radii.store import open_store

    with open_store(store, create=False) as opened:
        note(f"{opened.vacuum() / 2**20:.2f} MiB freed")
