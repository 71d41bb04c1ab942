"""`radii run`: a study, from where it was left."""

from __future__ import annotations

import re
import shlex
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import PARTIAL, counted, note, sometimes, table
from radii.cli.options import Address, RunnerName, StudyStore, Workers
from radii.errors import RunnerError, StoreError

if TYPE_CHECKING:
    from radii.runners import Runner
    from radii.store import Store
    from radii.study.file import StudyFile
    from radii.study.plan import Plan
    from radii.study.run import Summary


def run(
    study: Annotated[Path, typer.Argument(help="Study file (YAML), see docs/study.md.")],
    store: StudyStore = None,
    runner: RunnerName = "local",
    workers: Workers = None,
    address: Address = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also try unsolved units again, and open ones after a change of budget.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON event per line on stdout.")] = False,
    request: Annotated[
        list[str] | None,
        typer.Option(help="Ray: what a task occupies, such as cpus=2, gpus=0.25, memory=4GiB; may be repeated."),
    ] = None,
) -> int:
    """Find the radii that a study asks for; what the store has already is not done again.

    \b
    Example:
      radii run study.yaml --store study.db --workers 4
    """
    from radii.cli.pools import check_runner, local, other, requested
    from radii.study.file import read_study

    check_runner(runner, {"--address": address, "--request": request})
    occupies = requested(request or [])
    where = store or str(study.with_suffix(".db"))
    said = read_study(study)  # before anything heavy is loaded
    if sys.stderr.isatty():
        note(f"{study}: loading networks and inputs")
    with ExitStack() as stack:
        # The workers load their modules while this process loads the networks and the inputs.
        pool = stack.enter_context(local(workers)) if runner == "local" and not dry_run else None
        plan = _resolved(said, study, light=dry_run)
        if dry_run:
            return _foretell(plan, where, workers, retry, json)
        from radii.store import open_store

        opened = stack.enter_context(open_store(where))
        chosen = pool or stack.enter_context(other(runner, address, occupies))
        return _report(_go(plan, opened, chosen, retry, json), opened.where, json)


def _resolved(said: StudyFile, path: Path, light: bool) -> Plan:
    from radii.study.plan import resolve

    plan = resolve(said, path.resolve().parent, sometimes(), light)
    for line in plan.alarms:
        note(f"alarm: {line}")
    return plan


def _go(plan: Plan, store: Store, runner: Runner, retry: bool, json: bool) -> Summary:
    from radii.cli.live import event, shown
    from radii.study.run import Run
    from radii.study.stop import Stop
    from radii.study.tally import Tally

    work = Run(plan, store, runner, Stop(), retry, _command())
    remaining = work.prepare()
    tally = Tally(plan, store, remaining, retry)
    if json:
        body = {"study": plan.name, "store": store.where, "planned": tally.planned, "done": tally.done}
        event({"event": "begin", **body, "workers": runner.workers})
    else:
        _announce(plan, store, remaining, runner.workers if remaining else 1)
    with work.stop, shown(tally, json) as display:
        work.listen, work.idle, work.tick = display.finished, display.idle, display.tick
        try:
            return work.run()
        except (StoreError, RunnerError) as error:
            # What was stored stays: the run is partial, not badly asked.
            work.summary.stopped, work.summary.trouble = True, str(error)
            return work.summary


def _announce(plan: Plan, store: Store, remaining: int, workers: int) -> None:
    """The resolved plan, before it starts."""
    from radii.cli.live import span
    from radii.study.describe import plan_lines
    from radii.study.estimate import forecast

    note(f"{plan.name}: {counted(len(plan.units), 'unit')}, {remaining} to do, in {store.where}")
    for line in plan_lines(plan):
        note(f"  {line}")
    found = forecast(plan, store, workers) if remaining else None
    if found is not None and found.seconds is not None:
        alike = counted(found.samples, "similar unit")
        note(f"  about {span(found.seconds)} on {counted(workers, 'worker')}, from {alike}")


def _command() -> str:
    """The command line for the record, without the password of a database."""
    return re.sub(r"(://[^:/@\s]+):[^@/\s]+@", r"\1:***@", shlex.join(["radii", *sys.argv[1:]]))


def _report(summary: Summary, where: str, json: bool) -> int:
    from radii.cli.live import event

    again = "run the same command again to go on" if summary.stopped else "add --retry to try those again"
    if json:
        counts = {"done": summary.done, "known": summary.known, "theirs": summary.theirs, "planned": summary.planned}
        failed = {"failed": len(summary.failures), "alarms": len(summary.alarms), "stopped": summary.stopped}
        event({"event": "end", **counts, **failed, "trouble": summary.trouble or None})
    for failure in summary.failures[:5]:
        unit = failure.unit.record
        note(f"failed: {unit.classifier.name}, {unit.instance.dataset} input {unit.instance.index}: {failure.failure}")
    for alarm in summary.alarms:
        note(f"alarm: {alarm.classifier}, {alarm.dataset} input {alarm.index}: {alarm.message}")
    if summary.complete:
        before = summary.known + summary.theirs
        note(f"done: {counted(summary.done, 'unit')} now, {before} before or by others, in {where}")
        return 0
    left = summary.planned - summary.known - summary.theirs - summary.done
    what = [summary.trouble] if summary.trouble else []
    what += [f"{counted(left, 'unit')} left"] if summary.stopped else []
    what += [f"{counted(len(summary.failures), 'unit')} failed"] if summary.failures else []
    what += [f"{counted(len(summary.alarms), 'contradiction')} (radii check {where})"] if summary.alarms else []
    note(f"radii: partial: {', '.join(what)}; {counted(summary.done, 'unit')} stored in {where}; {again}")
    return PARTIAL


def _there(where: str) -> bool:
    """Whether a store can be there: a file that is, or any server."""
    if "://" not in where:
        return Path(where).exists()
    from radii.store.engine import address

    url = address(where)
    return url.get_backend_name() != "sqlite" or Path(url.database or "").exists()


def _foretell(plan: Plan, where: str, workers: int | None, retry: bool, json: bool) -> int:
    from radii.cli.console import emit_json
    from radii.cli.live import span
    from radii.runners.processes import cores
    from radii.study.describe import plan_lines
    from radii.study.estimate import forecast

    many = workers or cores()
    before = time.time() if retry else None
    found = forecast(plan, None, many)
    if _there(where):  # a dry run makes no file and no tables
        from radii.store import EmptyStoreError, open_store

        with suppress(EmptyStoreError), open_store(where, create=False) as opened:
            found, where = forecast(plan, opened, many, before), opened.where
    if json:
        body = {"study": plan.name, "units": len(plan.units), "missing": found.missing, "done": found.done}
        emit_json({**body, "skipped": plan.skipped, "seconds": found.seconds, "at_most_seconds": found.most})
        return 0
    for line in plan_lines(plan):
        typer.echo(line)
    rows = [(name, count, found.done[name], found.missing[name]) for name, count in plan.counts().items()]
    typer.echo("\n" + table(("classifier", "units", "done", "to do"), rows))
    typer.echo(f"\n{plan.name}: {counted(len(plan.units), 'unit')}, {found.total} to do, in {where}")
    if plan.skipped:
        typer.echo(f"{counted(plan.skipped, 'input')} left out: the label is the target")
    if found.seconds is not None:
        typer.echo(
            f"about {span(found.seconds)} on {counted(many, 'worker')}, from {counted(found.samples, 'similar unit')}"
        )
    elif found.total:
        typer.echo("no estimate: nothing similar is finished yet")
    if found.most is not None and found.total:
        typer.echo(f"at most about {span(found.most)} by the budget")
    return 0
