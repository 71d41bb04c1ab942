"""`radii architectures`: the papers' network architectures, ready to train."""

from __future__ import annotations

from typing import Annotated

import typer

from radii.cli.console import emit_json, table


def architectures(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The papers' architectures that radii can build as torch modules, and the networks that come trained.

    \b
    Example:
      radii architectures
      python -c "from radii.models.zoo import architecture; print(architecture('convSmall').build(seed=0))"
    """
    from radii import zoo
    from radii.models.zoo import architectures as known

    rows = [
        {
            "name": item.name,
            "dataset": item.dataset,
            "input": "x".join(map(str, item.input_shape)),
            "classes": item.classes,
            "parameters": item.parameters,
            "paper": item.paper,
            "note": item.note,
        }
        for item in known()
    ]
    trained = [{"name": zoo.PREFIX + name, **card} for name, card in zoo.cards().items()]
    if json:
        emit_json({"architectures": rows, "trained": trained})
        return
    shown = ("name", "dataset", "input", "classes", "parameters", "paper")
    typer.echo(table(shown, [[row[key] for key in shown] for row in rows]))
    typer.echo("\nTrained networks that come with radii:")
    typer.echo(
        table(
            ("network", "shape", "trained at ε", "test images right"),
            [(c["name"], c["shape"], c["epsilon"], f"{c['test_correct']} of {c['test_inputs']}") for c in trained],
        )
    )
