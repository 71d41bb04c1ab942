"""`radii run`: a study, from where it was left."""

from __future__ import annotations

import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import note, table

if TYPE_CHECKING:
    from radii.runners import Runner
    from radii.store import Store
    from radii.study.plan import Plan
    from radii.study.run import Summary

PARTIAL = 3


def run(
    study: Annotated[Path, typer.Argument(help="Study file (YAML), see docs/study.md.")],
    store: Annotated[
        str | None, typer.Option(help="File or postgresql:// URL; NAME.db beside the study file unless given.")
    ] = None,
    runner: Annotated[str, typer.Option(help="local, ray or serial.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Local worker processes; one a core unless given.")] = None,
    address: Annotated[str | None, typer.Option(help="Ray cluster: auto, HOST:PORT or ray://HOST:PORT.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also try unsolved units again, and open ones after a change of budget.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON event a line on stdout.")] = False,
) -> int:
    """Find the radii that a study asks for; what the store has already is not done again.

    \b
    Example:
      radii run study.yaml --store study.db --workers 4
    """
    from radii._check import choice
    from radii.store import open_store
    from radii.study.plan import load_plan

    choice(runner, "--runner", ("local", "ray", "serial"))
    if address is not None and runner != "ray":
        from radii.errors import InputError

        raise InputError("--address: expected it only with --runner ray; add --runner ray or remove it")
    plan = load_plan(study)
    where = store or str(study.with_suffix(".db"))
    for line in plan.alarms:
        note(f"alarm: {line}")
    if dry_run:
        return _foretell(plan, where, workers, retry, json)
    with open_store(where) as opened, _runner(runner, workers, address) as chosen:
        return _report(_go(plan, opened, chosen, retry, json), opened.where, json)


def _runner(name: str, workers: int | None, address: str | None) -> Runner:
    from radii.runners import ProcessRunner, RayRunner, SerialRunner
    from radii.study.work import PRELOAD

    if name == "serial":
        return SerialRunner()
    if name == "ray":
        return RayRunner(address, preload=PRELOAD)
    return ProcessRunner(workers, threads=1, preload=PRELOAD)


def _go(plan: Plan, store: Store, runner: Runner, retry: bool, json: bool) -> Summary:
    from radii.cli.live import event, shown
    from radii.study.run import Run
    from radii.study.stop import Stop
    from radii.study.tally import Tally

    tally = Tally(plan, store)
    if json:
        body = {"study": plan.name, "store": store.where, "planned": tally.planned, "done": tally.done}
        event({"event": "begin", **body, "workers": runner.workers})
    else:
        note(f"{plan.name}: {tally.planned} units, {tally.done} done before; store {store.where}")
    with Stop() as stop, shown(tally, json) as display:
        work = Run(plan, store, runner, stop, retry, _command(), display.finished)
        work.idle = display.idle
        return work.run()


def _command() -> str:
    """The command line for the record, without the password of a database."""
    return re.sub(r"(://[^:/@\s]+):[^@/\s]+@", r"\1:***@", shlex.join(["radii", *sys.argv[1:]]))


def _report(summary: Summary, where: str, json: bool) -> int:
    from radii.cli.live import event

    again = "run the same command again to go on" if summary.stopped else "add --retry to try those again"
    if json:
        counts = {"done": summary.done, "known": summary.known, "theirs": summary.theirs, "planned": summary.planned}
        failed = {"failed": len(summary.failures), "alarms": len(summary.alarms), "stopped": summary.stopped}
        event({"event": "end", **counts, **failed})
    for failure in summary.failures[:5]:
        unit = failure.work.unit
        note(f"failed: {unit.classifier.name}, {unit.instance.dataset} input {unit.instance.index}: {failure.failure}")
    for alarm in summary.alarms:
        note(f"alarm: {alarm.classifier}, {alarm.dataset} input {alarm.index}: {alarm.message}")
    if summary.complete:
        note(f"done: {summary.done} units now, {summary.known + summary.theirs} before or by others, in {where}")
        return 0
    left = summary.planned - summary.known - summary.theirs - summary.done
    what = [f"{left} units are left"] if summary.stopped else []
    what += [f"{len(summary.failures)} units failed"] if summary.failures else []
    what += [f"{len(summary.alarms)} contradictions (radii check {where})"] if summary.alarms else []
    note(f"radii: partial: {', '.join(what)}; {summary.done} units were stored in {where}; {again}")
    return PARTIAL


def _foretell(plan: Plan, where: str, workers: int | None, retry: bool, json: bool) -> int:
    from radii.cli.console import emit_json
    from radii.cli.live import span
    from radii.runners.processes import cores
    from radii.store import open_store
    from radii.study.estimate import forecast

    many = workers or cores()
    before = time.time() if retry else None
    if "://" not in where and not Path(where).exists():
        found = forecast(plan, None, many)  # a dry run makes no file
    else:
        with open_store(where, create=False) as opened:
            found, where = forecast(plan, opened, many, before), opened.where
    if json:
        body = {"study": plan.name, "units": len(plan.works), "missing": found.missing, "done": found.done}
        emit_json({**body, "skipped": plan.skipped, "seconds": found.seconds, "at_most_seconds": found.most})
        return 0
    rows = [(name, count, found.done[name], found.missing[name]) for name, count in plan.counts().items()]
    typer.echo(table(("classifier", "units", "done", "to do"), rows))
    typer.echo(f"\n{plan.name}: {len(plan.works)} units, {found.total} to do, in {where}")
    if plan.skipped:
        typer.echo(f"{plan.skipped} inputs are left out: their label is the target")
    if found.seconds is not None:
        typer.echo(f"about {span(found.seconds)} on {many} workers, from {found.samples} similar units")
    elif found.total:
        typer.echo("no estimate: nothing similar is finished yet")
    if found.most is not None and found.total:
        typer.echo(f"at most about {span(found.most)} by the budget")
    return 0
