"""`radii verifiers`: what can answer queries, what it proves, and the line that installs what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from radii.cli.console import emit_json, table


def verifiers(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The verifiers: what each proves, whether it is here, and how to get it.

    \b
    Example:
      radii verifiers
      radii radius zoo:mnist5k-standard --data mnist5k --verifier attack
    """
    from radii.verifiers.catalogue import available

    found = available()
    if json:
        emit_json([asdict(entry) for entry in found])
        return
    rows = [(e.name, "yes" if e.here else "no", e.proves, e.summary, "" if e.here else e.install) for e in found]
    typer.echo(table(("verifier", "here", "can say", "what it is", "how to get it"), rows))
