"""`radii report`: one or more stores as a page, Markdown, a PDF or LaTeX tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import counted, note
from radii.cli.options import DataOption, data_options

if TYPE_CHECKING:
    from radii.report.content import Content
    from radii.report.ensembles import GameSection
    from radii.store import Selection

FORMATS = {"html": ".html", "md": ".md", "pdf": ".pdf", "latex-tables": ".tex"}


def report(
    stores: Annotated[list[str], typer.Argument(help="Files or URLs of stores, or CSV files; several are compared.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; report.html unless given.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="html, md, pdf or latex-tables; from the file's ending.")] = None,
    eps: Annotated[str | None, typer.Option(help="The ε of the tables, such as 0.02 or 8/255.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of guarantees.")] = 0.95,
    study: Annotated[list[str] | None, typer.Option(help="Only this study; may be repeated.")] = None,
    classifier: Annotated[list[str] | None, typer.Option(help="Only this classifier; may be repeated.")] = None,
    data: Annotated[str | None, typer.Option(help="Data set of the inputs, to show the originals.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of that data set's files.")] = None,
    option: DataOption = None,
    view: Annotated[
        list[str] | None,
        typer.Option(help="Add tables of radii stats: compare, classes, fit, cost; may be repeated."),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the report.")] = "Robustness report",
) -> None:
    """Write a report of stored radii and reaches: one file that needs no network.

    \b
    Example:
      radii report study.db -o report.html
      radii report study.db --data mnist5k -o report.html
      radii report study.db --view compare --view classes -o report.md
    """
    from radii._check import choice, epsilon
    from radii.errors import InputError
    from radii.report import documents
    from radii.report.content import gather, named
    from radii.report.page import Options, datasets_for
    from radii.report.stats_tables import EXTRA
    from radii.stats._arrays import level

    level(confidence)
    endings = {ending: name for name, ending in FORMATS.items()}
    if output is not None and format is None:
        choice(output.suffix, "--output: ending", endings)
    kind = choice(format or endings[output.suffix if output else ".html"], "--format", FORMATS)
    target = output or Path("report" + FORMATS[kind])
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(f"--output: expected a file in an existing folder, got {target}")
    size = None if eps is None else epsilon(eps, "--eps")
    views = tuple(choice(name, "--view", EXTRA) for name in view or ())
    where = _selection(stores, study or [], classifier or [])
    content = gather(stores, where, title=title)
    content = replace(content, games=_games(stores, study or []))
    sets = datasets_for(content, data, root, data_options(option)) if data else ()
    options = Options(eps=size, confidence=confidence, data=sets, views=views)
    if sets:
        content = named(content, sets[0].class_names)
    documents.write(content, target, kind, options)
    for line in content.alarms:
        note(f"alarm: {line}")
    if content.empty and not content.reaches:
        note("no finished radius in these stores: the report says so, and nothing else")
    note(
        f"{target}: {counted(len(content.series), 'network')}{_reached(content)}, {target.stat().st_size / 1e6:.2f} MB"
    )


def _reached(content: Content) -> str:
    many = len(content.reaches)
    return f", {many} distribution{'' if many == 1 else 's'} of reaches" if many else ""


def _selection(stores: list[str], studies: list[str], classifiers: list[str]) -> Selection:
    """The selection of these names; one that none of the stores has is refused with the nearest."""
    from radii._check import choice
    from radii.report.content import opened
    from radii.report.sheets import is_sheet, sheet_series
    from radii.store import Selection

    known: dict[str, list[str]] = {"--study": [], "--classifier": []}
    for address in stores:
        if is_sheet(address):
            known["--classifier"] += (str(one.question["classifier"]) for one in sheet_series(address))
            continue
        with opened(address) as store:
            known["--study"] += store.studies()
            known["--classifier"] += (one.name for one in store.classifiers())
    return Selection(
        study=tuple(choice(name, "--study", known["--study"]) for name in studies),
        classifier=tuple(choice(name, "--classifier", known["--classifier"]) for name in classifiers),
    )


def _games(stores: list[str], studies: list[str]) -> tuple[GameSection, ...]:
    """The sections of the ensembles in these stores; one whose networks or inputs are gone says so."""
    from radii.errors import RadiiError
    from radii.report.content import opened
    from radii.report.sheets import is_sheet

    found = []
    for address in stores:
        if is_sheet(address):
            continue
        with opened(address) as store:
            from radii.study.ensemble_stored import KIND, ensembles, stored_game

            for name, body in ensembles(store).items():
                if studies and name not in studies:
                    continue
                from radii.report.ensembles import GameSection, section

                try:
                    game, said = stored_game(store, name, body), body[KIND]
                    found.append(section(name, game, said.get("epsilon") or (), said.get("alpha") or ()))
                except RadiiError as error:
                    found.append(GameSection(name, (), trouble=f"The ensemble is not shown: {error}"))
    return tuple(found)
