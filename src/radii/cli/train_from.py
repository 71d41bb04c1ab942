"""What `radii train --from STORE` does: one turn of the cycle of verification and training, and its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from radii.cli.console import PARTIAL, emit_json, note, table

if TYPE_CHECKING:
    from radii.study.cycle import Side
    from radii.study.run import Finished
    from radii.train.recipe import Recipe


def train_from(
    store: str,
    recipe: Recipe,
    folder: Path,
    chosen: tuple[str | None, str | None, float],
    workers: int | None,
    resume: bool,
    tell: Any,
    json: bool,
) -> int:
    """Trains further on a study's witnesses, asks the study again and prints both; `chosen`: study, network, share."""
    from radii.cli.pools import local
    from radii.store import open_store
    from radii.study.cycle import turn, violations

    study, classifier, share = chosen
    with open_store(store, create=False) as opened:
        found = violations(opened, study, classifier, recipe.name)
        note(f"{found.study}: {len(found)} witnesses against {found.classifier.name}, replayed")
        if found.lost:
            note(f"alarm: {found.lost} more did not replay and are left out (radii check {store})")
        with local(workers) as pool:
            done = turn(
                opened, found, recipe, folder, share=share, resume=resume, runner=pool, progress=tell, listen=_heard
            )
    rows = [_row(one) for one in done.sides]
    if json:
        body = {"network": str(done.network), "study": done.study, "witnesses": done.witnesses, "sides": rows}
        emit_json(body)
    else:
        heads = ("inputs", "number", "right before", "right after", "mean radius before", "after", "p")
        cells = ("inputs", "number", "right_before", "right_after", "mean_before", "mean_after", "p")
        typer.echo(table(heads, [[row[name] for name in cells] for row in rows]))
        for one in done.sides:
            typer.echo(f"{one.name}: {one.comparison.statement()}")
        typer.echo(f"trained on {done.witnesses} witnesses; network and card in {folder}")
        typer.echo(f"Next: radii stats compare {store}")
    if not done.summary.complete:
        note(f"radii: partial: radii are missing in {store}; the same command with --resume goes on")
        return PARTIAL
    return 0


def _row(one: Side) -> dict[str, Any]:
    test = one.comparison.test
    found: dict[str, Any] = {"inputs": one.name, "number": len(one.before)}
    for when, dist in (("before", one.before), ("after", one.after)):
        mean = dist.mean()
        found[f"right_{when}"] = int(dist.correct.sum())
        found[f"mean_{when}"] = f"{mean.lower:.4f} to {'?' if mean.upper is None else format(mean.upper, '.4f')}"
    found["p"] = f"{test.p_value:.2g} [{test.p_low:.2g}, {test.p_high:.2g}]"
    return found


def _heard(finished: Finished) -> None:
    unit = finished.unit.record.instance
    note(f"{unit.dataset} input {unit.index}: {finished.result.status.value}")
