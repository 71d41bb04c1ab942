"""`radii verifiers`: what can answer queries, what it proves, and the line that installs what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from radii.cli.console import emit_json, fitted, table


def verifiers(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The verifiers: what each proves, whether it is here, how to get it, and the properties it takes.

    \b
    Example:
      radii verifiers
      radii radius zoo:mnist5k-standard --data mnist5k --index 0:20 --verifier envelope
    """
    from radii.verifiers.catalogue import available
    from radii.verifiers.command import TEMPLATES
    from radii.verifiers.support import support_table

    found, takes = available(), support_table()
    takes |= dict.fromkeys(TEMPLATES, takes["command"])
    if json:
        emit_json([{**asdict(e), "properties": takes.get(e.name.split()[0], {})} for e in found])
        return
    rows = [(entry.name, "yes" if entry.here else "no", entry.proves) for entry in found]
    lines = table(("verifier", "here", "can say"), rows).splitlines()
    typer.echo(lines[0])
    for line, entry in zip(lines[1:], found, strict=True):
        typer.echo(line)
        typer.echo(fitted(entry.summary))
        if not entry.here and entry.install:
            typer.echo(fitted(f"to get it: {entry.install}"))
    kinds = list(takes["native"])
    able = [(name, *(row[kind] or "–" for kind in kinds)) for name, row in takes.items() if name not in TEMPLATES]
    typer.echo("\nThe norms in which each takes a property (affine and ReLU networks):")
    typer.echo(table(("verifier", *kinds), able))
