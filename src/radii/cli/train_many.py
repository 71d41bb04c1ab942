"""What `radii train` does with many networks: a hyper-parameter search, and a grid with its measures."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from radii.cli.console import emit_json, note, table
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.train.hyperparameters import Trial
    from radii.train.recipe import Recipe

NETWORKS = "networks.csv"
PICTURE = "networks.png"


def search_recipes(recipe: Recipe, trials: int, folder: Path, json: bool) -> Path:
    """Tries recipes around one, prints the trials and writes the best as a recipe file; its path."""
    import yaml

    from radii.train.checkpoint import write_atomically
    from radii.train.hyperparameters import search

    def tell(trial: Trial, count: int) -> None:
        note(
            f"trial {trial.number + 1} of {count}: {trial.state}, score {_share(trial.score)}, {_values(trial.values)}"
        )

    found = search(recipe, trials, folder, progress=tell)
    body = found.best.model_dump(mode="json", exclude_unset=True, exclude={"output"})
    file = folder / f"{recipe.name}-best.yaml"
    write_atomically(file, yaml.safe_dump(body, sort_keys=False, allow_unicode=True).encode())
    if json:
        emit_json({"best": str(file), "score": found.score, "judged": found.judged, "trials": len(found.trials)})
    else:
        rows = [(one.number + 1, one.state, _share(one.score), _values(one.values)) for one in found.trials]
        typer.echo(table(("trial", "state", f"{found.judged} (held out)", "values"), rows))
        typer.echo(f"best: {_share(found.score)} {found.judged} on held-out training inputs; recipe in {file}")
        typer.echo(f"Next: radii train {file}")
    return file


def train_grid(
    recipe: Recipe,
    folder: Path,
    pools: tuple[int | None, str, str | None],
    measure: dict[str, Any] | None,
    json: bool,
) -> int:
    """Trains every network of a grid, measures them if asked, and prints a row per network; the exit code.

    `pools` are the workers, the runner's name and the address of a Ray cluster.
    """
    from radii.cli.pools import local, other, requested
    from radii.study.trade_off import Settings, measured_file
    from radii.train.grid import members, train_members

    (workers, runner, address), options = pools, None
    if measure is not None:
        Settings(**measure)
        part = recipe.data
        where = {"split": "test", **({"root": part.root} if part.root else {}), **part.options}
        options = {"settings": measure, "source": part.source, "data": where}
    chosen = members(recipe, folder)
    note(f"{len(chosen)} networks, {sum(one.trained for one in chosen)} of them trained before")
    rows, failed = [], []
    pool = local(workers) if runner == "local" else other(runner, address, requested(()))
    for done, one in enumerate(train_members(chosen, pool, None if options is None else measured_file, options), 1):
        if one.failure:
            failed.append(one)
            note(f"{done} of {len(chosen)}: {one.member.recipe.name}: failed: {one.failure}")
            continue
        note(f"{done} of {len(chosen)}: {one.member.recipe.name}")
        rows.append({"network": str(one.member.network), **one.member.values, **_accuracies(one), **(one.value or {})})
    rows.sort(key=lambda row: [one.network for one in chosen].index(Path(row["network"])))
    if rows:
        _show(rows, list(recipe.grid or {}), folder, json, None if measure is None else measure["confidence"])
    if failed:
        note(f"radii: partial: {len(failed)} of {len(chosen)} networks failed; the same command goes on with them")
        return 3
    return 0


def _show(rows: list[dict[str, Any]], keys: list[str], folder: Path, json: bool, confidence: float | None) -> None:
    from radii.train.checkpoint import write_atomically

    text = io.StringIO()
    lines = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    write_atomically(folder / NETWORKS, text.getvalue().encode())
    if json:
        emit_json(rows)
    else:
        shown = [*keys, "accuracy" if confidence is not None else "clean"]
        shown += (
            ["proven", "not_broken", "robust_low", "robust_high", "change_low", "change_high"] if confidence else []
        )
        typer.echo(table(tuple(shown), [[_cell(row[name]) for name in shown] for row in rows]))
    if confidence is None:
        return
    from radii.report.style import save
    from radii.report.trade_off import middles, sentence, trade_off

    save(trade_off(rows, keys, confidence), folder / PICTURE)
    if not json:
        accuracy = [row["accuracy"] for row in rows]
        for name, label in (("robust", "R(g)"), ("change", "D(ḡ)")):
            typer.echo(f"accuracy and {label}: {sentence(_array(accuracy), middles(rows, name), confidence)}")
        typer.echo(f"rows in {folder / NETWORKS}, picture in {folder / PICTURE}")


def _accuracies(one: Any) -> dict[str, Any]:
    import json

    card = json.loads((one.member.folder / "card.json").read_text(encoding="utf-8"))
    found = card["accuracies"]["test"] or card["accuracies"]["validation"]
    zero = card["weights"]["zero"] / card["weights"]["all"]
    return {"clean": found["clean"], "attacked": found["attacked"], "certified": found["certified"], "zero": zero}


def _array(values: list[float]) -> Any:
    import numpy as np

    return np.array(values)


def _cell(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float) and abs(value) <= 1 else value


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}%"


def _values(values: Any) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
    )


def measure_options(epsilon: str | None, inputs: int, seconds: float, seed: int) -> dict[str, Any] | None:
    """The settings of `radii.study.trade_off` that options say; None without an ε."""
    from radii._check import epsilon as check_epsilon

    if epsilon is None:
        return None
    if seconds < 0:
        raise InputError(f"seconds: expected CPU seconds per input, or 0 for attacks alone, got {seconds:g}")
    size = check_epsilon(epsilon)
    return {
        "epsilon": size,
        "inputs": inputs,
        "proofs": seconds > 0,
        "seconds": max(seconds, 1e-3),
        "confidence": 0.95,
        "seed": seed,
    }
