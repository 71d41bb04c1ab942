"""`radii train`: networks by a recipe, with checkpoints; and the recipes and methods that there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii.cli.console import emit_json, note, table
from radii.cli.options import Root
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.train.loop import Epoch


def train(
    recipe: Annotated[str | None, typer.Argument(help="A YAML file, or a name that --list shows.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in the output folder.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the run's files; the recipe's name unless given.")
    ] = None,
    root: Root = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs instead of the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed instead of the recipe's.")] = None,
    certify: Annotated[
        int, typer.Option(help="When the run is done, prove this many test inputs, from the first, with the engine.")
    ] = 0,
    seconds: Annotated[float, typer.Option(help="CPU seconds of the engine for each of them.")] = 5.0,
    listing: Annotated[bool, typer.Option("--list", help="The recipes that come with radii, and the methods.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the training card as JSON.")] = False,
    search: Annotated[
        int | None, typer.Option(help="Try this many recipes around this one (needs optuna); run again, it goes on.")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="With a grid: ε at which the robust share R(g) and the mean change D(ḡ) are measured."),
    ] = None,
    inputs: Annotated[int, typer.Option(help="With --measure: test inputs, drawn at random.")] = 200,
    workers: Annotated[int | None, typer.Option(help="With a grid: processes; one per core unless given.")] = None,
    runner: Annotated[str, typer.Option(help="With a grid: local, serial or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="With --runner ray: the cluster's address.")] = None,
    store: Annotated[
        str | None, typer.Option("--from", help="Train a study's network further on its witnesses, and verify again.")
    ] = None,
    study: Annotated[str | None, typer.Option(help="With --from: the study, where the store has several.")] = None,
    classifier: Annotated[str | None, typer.Option(help="With --from: the network, where there are several.")] = None,
    share: Annotated[float, typer.Option(help="With --from: share of inputs whose witnesses are trained on.")] = 0.5,
) -> int:
    """Train a network by a recipe, or all networks of a recipe with a grid; what was stopped goes on with --resume.

    \b
    Examples:
      radii train --list
      radii train mnist5k-ibp --epochs 2 --output nets/ibp
      radii train mnist5k-ibp --epochs 2 --output nets/ibp --resume
      radii train mnist5k-pgd --epochs 1 --from study.db --classifier mnist-net --output nets/further
    """
    if listing:
        _list(json)
        return 0
    if recipe is None:
        raise InputError("recipe: expected a YAML file or a name that --list shows, got none")
    import radii
    from radii.cli.pools import check_runner
    from radii.cli.train_many import measure_options, search_recipes, train_grid
    from radii.train.loop import CHANCE
    from radii.train.recipe import read_recipe

    changes: dict[str, Any] = {key: value for key, value in (("epochs", epochs), ("seed", seed)) if value is not None}
    read = read_recipe(recipe, **changes)
    if root is not None:
        changes["data"] = {**read.data.model_dump(exclude_unset=True), "root": str(root)}
    folder = output if output is not None else Path(read.output or read.name)
    if store is not None:
        from radii.cli.train_from import train_from

        again = read_recipe(recipe, **changes)
        try:
            return train_from(store, again, folder, (study, classifier, share), workers, resume, _tell, json)
        except KeyboardInterrupt:
            note(f"radii: partial: stopped; the same command with --resume goes on: what is in {folder} is kept")
            return 3
    if search is not None or read.grid is not None:
        read = read_recipe(recipe, **changes)  # with the data's root
        try:
            if search is not None:
                search_recipes(read, search, folder, json)
                return 0
            check_runner(runner, {"--address": address})
            asked = measure_options(measure, inputs, seconds, read.seed)
            return train_grid(read, folder, (workers, runner, address), asked, json)
        except KeyboardInterrupt:
            note(f"radii: partial: stopped; the same command goes on: what is in {folder} is kept")
            return 3
    try:
        run = radii.train(recipe, output=folder, resume=resume, progress=_tell, **changes)
    except KeyboardInterrupt:
        note(f"radii: partial: stopped; go on with radii train {recipe} --output {folder} --resume")
        return 3
    found = run.card["accuracies"]
    if certify:
        run.card["accuracies"]["engine"] = _certified(run, found["epsilon"], certify, seconds)
    held_out = found["validation"]
    if held_out["clean"] < CHANCE * held_out.get("guessing", 0.0):  # cards of older versions do not say
        note(
            f"radii: the network is no better than guessing, {100 * held_out['clean']:.1f} % of held-out inputs right; "
            "let ε grow slowly (schedule: {ramp: [0, 5]}), or lower it or the learning rate"
        )
    if json:
        emit_json(run.card)
        return 0
    rows = [(name, *_cells(found[name])) for name in ("validation", "test") if found[name] is not None]
    typer.echo(table(("inputs", "number", "clean", "attacked", "certified by intervals"), rows))
    if certify:
        told = found["engine"]
        typer.echo(f"engine: {told['proven']} of {told['inputs']} test inputs proven, {told['open']} open")
    if "posterior" in run.card:
        typer.echo(_posterior(run.card["posterior"]))
    typer.echo(f"ε = {found['epsilon']:g}; network, card, history and curve in {folder}")
    typer.echo(f"Next: radii radius {folder / run.recipe.name}.onnx --data {run.recipe.data.source} --index 0")
    return 0


def _posterior(body: dict[str, Any]) -> str:
    from radii.train.bayes import Diagnostics

    return Diagnostics(**body).sentence()


def _certified(run: Any, epsilon: float, count: int, seconds: float) -> dict[str, Any]:
    """How many of the first test inputs the engine proves at ε, within so many CPU seconds each."""
    from radii import api
    from radii.train.task import load_split

    data = load_split(run.recipe, "test")
    found = api.measures(
        run.classifier, data[:count], epsilon=epsilon, properties=["classification"], seconds=seconds, samples=1
    )
    row = found.rows[0]
    total = min(count, len(data))
    proven, kept = round(row.proven * total), round(row.not_refuted * total)
    return {"inputs": total, "proven": proven, "open": kept - proven, "seconds": seconds}


def _tell(row: Epoch, epochs: int) -> None:
    shares = ", ".join(f"{name} {cell}" for name, cell in zip(("clean", "attacked", "certified"), _shares(row)))
    note(f"epoch {row.epoch} of {epochs}: loss {row.loss:.4f}, ε {row.epsilon:.4g}, {shares} ({row.seconds:.1f} s)")


def _shares(row: Any) -> list[str]:
    values = (row.clean, row.attacked, row.certified)
    return ["-" if value is None else f"{100 * value:.1f}%" for value in values]


def _cells(found: dict[str, Any]) -> tuple[Any, ...]:
    values = (found["clean"], found["attacked"], found["certified"])
    return found["inputs"], *("-" if value is None else f"{100 * value:.1f}%" for value in values)


def _list(json: bool) -> None:
    from radii.train.methods.base import methods
    from radii.train.recipe import read_recipe, shipped

    recipes = []
    for name in shipped():
        one = read_recipe(name)
        recipes.append(
            {
                "name": name,
                "architecture": one.architecture.name,
                "data": one.data.source,
                "method": one.method["name"],
                "epsilon": one.method.get("epsilon"),
                "epochs": one.epochs,
                "about": one.about,
            }
        )
    known = [{"method": name, "about": cls.about, "bounds": cls.bounds or "-"} for name, cls in methods().items()]
    if json:
        emit_json({"recipes": recipes, "methods": known})
        return
    for rows in (recipes, known):
        typer.echo(table(tuple(rows[0]), [list(row.values()) for row in rows]) + "\n")
