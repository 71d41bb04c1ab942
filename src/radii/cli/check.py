"""`radii check`: stored witnesses replayed, contradictions and alarms listed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from radii.cli.console import emit_json, note


def check(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Verify stored results again, without searching; exit code 1 when something is wrong, 3 when not all was seen.

    \b
    Example:
      radii check study.db
    """
    from radii.store import open_store
    from radii.study.audit import audit

    with open_store(store, create=False) as opened:
        found = audit(opened)
    code = 1 if found.wrong else 3 if found.unchecked else 0
    if json:
        emit_json(asdict(found))
        return code
    for one in found.wrong:
        typer.echo(f"wrong: {one.classifier}, {one.dataset} input {one.index}: {one.message}")
    for line, count in _counted([one.message for one in found.unchecked]).items():
        note(f"not checked ({count}): {line}")
    typer.echo(
        f"{found.records} radii: {found.witnesses} witnesses replayed, {found.misclassified} misclassified inputs "
        f"predicted again, {found.proofs} proofs ({found.evidence} with stored evidence), "
        f"{len(found.wrong)} wrong, {len(found.unchecked)} not checked"
    )
    return code


def _counted(lines: list[str]) -> dict[str, int]:
    return {line: lines.count(line) for line in dict.fromkeys(lines)}
