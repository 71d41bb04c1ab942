"""`radii status`: how far the studies in a store are."""

from __future__ import annotations

from typing import Annotated

import typer

from radii.cli.console import emit_json, table

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
        alarms = opened.alarms()
    if json:
        emit_json(
            {
                "studies": [
                    {
                        "study": name,
                        "classifier": row.classifier,
                        "planned": row.planned,
                        "done": row.done,
                        "claimed": row.claimed,
                        **{one: row.statuses.get(one, 0) for one in _STATUSES},
                    }
                    for name, rows in found.items()
                    for row in rows
                ],
                "alarms": len(alarms),
            }
        )
        return
    rows = [
        (name or "-", row.classifier, row.planned, row.done, row.claimed, *(row.statuses.get(s, 0) for s in _STATUSES))
        for name, each in found.items()
        for row in each
    ]
    typer.echo(table(("study", "classifier", "planned", "done", "claimed", *_STATUSES), rows))
    if alarms:
        typer.echo(f"{len(alarms)} alarms: radii check {store}")
