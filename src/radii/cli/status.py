"""`radii status`: how far the studies in a store are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import emit_json, table

if TYPE_CHECKING:
    from radii.store import Progress

_RECENT = 60.0  # seconds over which the pace is taken
_STATUSES = ("closed", "open", "robust", "misclassified", "unsolved")


def status(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    study: Annotated[str | None, typer.Option(help="Only this study.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """How far is a study, from another shell or after it ended?

    \b
    Example:
      radii status study.db
    """
    from radii._check import choice
    from radii.store import open_store

    with open_store(store, create=False) as opened:
        names = list(opened.studies())
        if study is not None:
            names = [choice(study, "--study", names)]
        found = {name: opened.progress(name) for name in names} or {"": opened.progress()}
        recent = {name: opened.finished_since(time.time() - _RECENT, name or None) for name in found}
        alarms = opened.alarms()
    if json:
        listed = [_plain(name, row) for name, rows in found.items() for row in rows]
        emit_json({"studies": listed, "finished_last_minute": recent, "alarms": len(alarms)})
        return
    rows = [tuple(_plain(name or "-", row).values()) for name, each in found.items() for row in each]
    typer.echo(table(("study", "classifier", "planned", "done", "claimed", *_STATUSES, "width"), rows))
    for name, each in found.items():
        if line := _pace(each, recent[name]):
            typer.echo(f"{name or 'all'}: {line}")
    if alarms:
        typer.echo(f"{len(alarms)} alarms: radii check {store}")


def _plain(study: str, row: Progress) -> dict[str, Any]:
    counts = {one: row.statuses.get(one, 0) for one in _STATUSES}
    place = {"study": study, "classifier": row.classifier, "planned": row.planned, "done": row.done}
    return {**place, "claimed": row.claimed, **counts, "width": row.width}


def _pace(rows: list[Progress], finished: int) -> str:
    """How fast it goes; nothing when all is done."""
    from radii.cli.live import span

    left = sum(row.planned - row.done for row in rows)
    if not left:
        return ""
    if not finished:
        busy = sum(row.claimed for row in rows)
        doing = f"{busy} in work, none finished in the last minute" if busy else "nobody is working on it"
        return f"{left} left, {doing}"
    return f"{left} left, {finished} finished in the last minute, about {span(left * _RECENT / finished)} to go"
