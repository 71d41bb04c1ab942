"""`radii gate`: pass or fail for a pipeline, by what is guaranteed for unseen inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from radii.cli.console import emit_json, note


def gate(
    store: Annotated[str, typer.Argument(help="File or URL of the store.")],
    robust_accuracy: Annotated[
        list[str], typer.Option(help="SHARE@EPSILON, such as 0.9@0.01 or 0.8@2/255; may be repeated.")
    ],
    confidence: Annotated[float, typer.Option(help="Confidence of the statement about unseen inputs.")] = 0.95,
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Exit with 1 and the reason unless enough unseen inputs are guaranteed to be robust.

    \b
    Example:
      radii gate study.db --robust-accuracy 0.9@0.01 --confidence 0.95
    """
    from radii.cli.selection import chosen
    from radii.store import open_store
    from radii.study.gate import Demand, judge

    demands = [Demand.of(text) for text in robust_accuracy]
    with open_store(store, create=False) as opened:
        found = judge(opened, chosen(opened, study, classifier, None), demands, confidence)
    failed = [one for one in found if not one.passed]
    if json:
        emit_json(
            [
                {
                    "group": one.group,
                    "epsilon": one.demand.epsilon,
                    "asked": one.demand.share,
                    "proven": one.proven,
                    "guaranteed": one.limit,
                    "inputs": one.n,
                    "unfinished": one.missing,
                    "passed": one.passed,
                    "sentence": one.sentence,
                }
                for one in found
            ]
        )
    else:
        for one in found:
            typer.echo(f"{'pass' if one.passed else 'FAIL'}  {one.reason}")
    if failed:
        note(f"radii: gate failed: {failed[0].reason}" + (f" (and {len(failed) - 1} more)" if failed[1:] else ""))
    return 1 if failed else 0
