"""`radii ensemble` with the method milp or smt: what the encodings of the paper answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from radii.cli.console import PARTIAL, counted, emit_json, note, sometimes, table

if TYPE_CHECKING:
    from radii.ensembles.encoded import EncodedGame
    from radii.models.classifier import Classifier
    from radii.problem import Instance
    from radii.study.ensemble_file import EnsembleFile
    from radii.study.settings import RadiusSettings


def answer(
    said: EnsembleFile,
    settings: RadiusSettings,
    members: tuple[Classifier, ...],
    instances: tuple[Instance, ...],
    json: bool,
) -> int:
    """Asks the encoding at every size and prints what it says."""
    from radii.ensembles.encoded import encoded

    say = sometimes()
    budget = settings.budget
    game = encoded(
        members,
        instances,
        settings.norm,
        said.epsilon,
        said.form(),
        budget.seconds,
        budget.memory,
        tell=lambda done, size: say(f"{said.name}: {done} of {len(said.epsilon)} sizes, now {size:g}"),
    )
    rows = [_row(game, size, said.alpha) for size in game.answers]
    if json:
        emit_json(rows)
    else:
        _show(game, rows, said)
    open_ones = [row for row in rows if row["reason"] is not None]
    for row in open_ones:
        note(f"open at {row['epsilon']:g}: {row['detail'] or row['reason']} ({row['reason']})")
    note(f"{'partial' if open_ones else 'done'}: {game.cpu_seconds:.1f} CPU seconds")
    return PARTIAL if open_ones else 0


def _row(game: EncodedGame, epsilon: float, alpha: list[float]) -> dict[str, Any]:
    row = game.result(epsilon)
    if alpha:
        row["robust"] = {f"{level:g}": game.robust(epsilon, level) for level in alpha}
    return row


def _show(game: EncodedGame, rows: list[dict[str, Any]], said: EnsembleFile) -> None:
    form = game.form
    typer.echo(
        f"{said.name}: {len(game.names)} members, {counted(len(game.instances), 'input')}, norm {game.norm.name}, "
        f"{form.method} with {counted(form.attacks, 'attack')}, objective {form.objective}\n"
    )
    words = {True: "robust", False: "not robust", None: "open"}
    heads = ("epsilon", "value at least", "at most", *(f"alpha {level:g}" for level in said.alpha))
    body = [(r["epsilon"], *r["value"], *(words[r["robust"][f"{a:g}"]] for a in said.alpha)) for r in rows]
    typer.echo(table(heads, body))
    if not game.enough:
        typer.echo(f"\nbounds hold for {counted(form.attacks, 'attack')}; {len(game.names)} are as good as any number")
