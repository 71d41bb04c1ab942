"""`radii verifiers`: what can answer queries, what it proves, and the line that installs what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import emit_json, table

if TYPE_CHECKING:
    from radii.verifiers.catalogue import Entry


def verifiers(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The verifiers: what each proves, whether it is here, how to get it, and the properties it takes.

    \b
    Example:
      radii verifiers
      radii radius zoo:mnist5k-standard --data mnist5k --verifier attack --grid 0.001:0.1:0.002
    """
    from radii.verifiers.catalogue import available
    from radii.verifiers.command import TEMPLATES
    from radii.verifiers.support import support_table

    found, takes = available(), support_table()
    takes |= dict.fromkeys(TEMPLATES, takes["command"])
    if json:
        emit_json([{**asdict(e), "properties": takes.get(e.name.split()[0], {})} for e in found])
        return
    rows = [(e.name, "yes" if e.here else "no", e.proves, e.needs, e.summary, _get(e)) for e in found]
    typer.echo(table(("verifier", "here", "can say", "needs", "what it is", "how to get it"), rows))
    kinds = list(takes["native"])
    able = [(name, *(row[kind] or "–" for kind in kinds)) for name, row in takes.items() if name not in TEMPLATES]
    typer.echo("\nThe norms in which each takes a property (networks of affine operators and ReLU):")
    typer.echo(table(("verifier", *kinds), able))


def _get(entry: Entry) -> str:
    """The line that installs what is missing."""
    return "" if entry.here else entry.install
