"""`radii ensemble`: a set of classifiers against attacks that are chosen at random."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import PARTIAL, counted, emit_json, note, sometimes, table
from radii.cli.options import Address, RunnerName, StudyStore, Workers
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.ensembles.game import Game
    from radii.study.ensemble import EnsembleRun
    from radii.study.ensemble_file import EnsembleFile

_SHOWN = 8  # rows of a curve on the terminal


def ensemble(
    study: Annotated[Path, typer.Argument(help="Ensemble study (YAML), see docs/ensembles.md.")],
    store: StudyStore = None,
    runner: RunnerName = "local",
    workers: Workers = None,
    address: Address = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also try unsolved radii again, and open ones after a change of budget.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: one object for each ε.")] = False,
) -> int:
    """What the best randomised attack gets from an ensemble, and how the ensemble should be mixed against it.

    \b
    Example:
      radii ensemble game.yaml --store game.db --workers 2
    """
    from radii.cli.pools import check_runner, local, other
    from radii.runners import Request
    from radii.store import open_store
    from radii.study.ensemble import EnsembleRun
    from radii.study.ensemble_file import planned_body, read_ensemble, resolved
    from radii.study.stop import Stop

    check_runner(runner, {"--address": address})
    said = read_ensemble(study)
    settings = said.settings()
    sources, members, instances = resolved(said, study.resolve().parent, sometimes())
    if said.method != "decomposed":
        from radii.cli.ensemble_encoded import answer

        if store is not None or workers is not None or retry or runner == "ray":
            raise InputError(f"method {said.method}: expected no --store, --workers, --retry or ray: nothing is stored")
        return answer(said, settings, members, instances, json)
    where = store or str(study.with_suffix(".db"))
    with ExitStack() as stack:
        pool = local(workers) if runner == "local" else other(runner, address, Request())
        opened, chosen = stack.enter_context(open_store(where)), stack.enter_context(pool)
        stop = stack.enter_context(Stop())
        say = sometimes()
        work = EnsembleRun(
            members,
            instances,
            settings,
            opened,
            chosen,
            tuple(said.epsilon),
            said.width,
            stop,
            retry,
            sources=sources,
            name=said.name,
            body=planned_body(said, sources, study.resolve().parent),
            progress=lambda found, asked: say(f"{said.name}: {found} of {asked} radii asked for so far"),
        )
        game = work.run()
    sizes = said.epsilon or _sizes(game, said)
    rows = [_row(game, size, said) for size in sizes]
    if json:
        emit_json(rows)
    else:
        _show(game, rows, said)
    return _end(work, game, where)


def _sizes(game: Game, said: EnsembleFile) -> list[float]:
    """Where a whole curve is shown: at the ends of its pieces."""
    top = said.search.limit or game.steps[-1]
    return [end for _, end, _, _ in game.curve(top)] if top > 0 else [0.0]


def _row(game: Game, epsilon: float, said: EnsembleFile) -> dict[str, Any]:
    row = game.result(epsilon)
    if said.alpha:
        row["robust"] = {f"{level:g}": game.robust(epsilon, level) for level in said.alpha}
    return row


def _show(game: Game, rows: list[dict[str, Any]], said: EnsembleFile) -> None:
    names = game.names
    typer.echo(f"{said.name}: {len(names)} members, {counted(len(game.instances), 'input')}, norm {game.norm.name}\n")
    shown = rows if len(rows) <= _SHOWN else [rows[k * (len(rows) - 1) // (_SHOWN - 1)] for k in range(_SHOWN)]
    heads = ("epsilon", "value at least", "at most", "attacks", "best single", "uniform", *names)
    body = [
        (r["epsilon"], *r["value"], len(r["attacks"]), r["best_single"]["loss"], r["uniform"], *r["mix"]) for r in shown
    ]
    typer.echo(table(heads, body))
    if len(shown) < len(rows):
        typer.echo(f"({len(shown)} of {len(rows)} steps; --json has them all)")
    typer.echo("\nvalue: expected loss of the best member under the best attack; best single, uniform: without the mix")
    for level in said.alpha:
        proven, broken = game.radius(level)
        text = "not broken" if broken is None else f"broken at {broken:.6g}"
        typer.echo(f"alpha {level:g}: robust up to {proven:.6g}, {text}")
        for row in rows if said.epsilon else ():
            verdict = {True: "robust", False: "not robust", None: "open"}[row["robust"][f"{level:g}"]]
            typer.echo(f"  ({row['epsilon']:g}, {level:g}): {verdict}")


def _end(work: EnsembleRun, game: Game, where: str) -> int:
    done = f"{game.searches} radii in {game.cpu_seconds:.1f} CPU seconds"
    for line in work.failures[:5]:
        note(f"failed: {line}")
    if work.stopped or work.failures:
        why = "stopped" if work.stopped else f"{len(work.failures)} radii failed"
        note(f"radii: partial: {why}, {done}, kept in {where}: run the same command again to go on")
        return PARTIAL
    note(f"done: {done}, kept in {where}")
    return 0
