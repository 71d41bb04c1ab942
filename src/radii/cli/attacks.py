"""`radii attacks`: what looks for witnesses, with which options, and the line that installs what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from radii.cli.console import emit_json, table


def attacks(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The attacks by name: what each does, its options, and how to get it.

    A study uses one alone (verifier: {name: attack, attack: pgd, steps: 100}) or within the engine ({name: native,
    attack: pgd}).

    \b
    Example:
      radii attacks
      radii radius zoo:mnist5k-standard --data mnist5k --verifier attack:pgd --grid 0.001:0.1:0.002
    """
    from radii.attacks.names import available

    found = available()
    if json:
        emit_json([asdict(one) for one in found])
        return
    for one in found:
        typer.echo(f"{one.name}: {one.summary}")
        rows = [("options", one.options or "none"), ("properties of", one.takes or "as its package says")]
        typer.echo(table(("", ""), rows if one.here else [*rows, ("install", one.install)]))
