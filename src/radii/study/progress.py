"""A progress bar on stderr for people at a terminal; nothing for anyone else unless it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from radii.problem import Result

Told = Callable[[int, Result], None]


@contextmanager
def shown(progress: Callable[[int, int, Any], None] | bool | None, total: int, name: str) -> Iterator[Told | None]:
    """What to call with (finished, radius): the caller's function, a bar (True, or None at a terminal), or None."""
    if callable(progress):
        yield lambda finished, radius: progress(finished, total, radius)
    elif progress or (progress is None and sys.stderr.isatty()):
        with _bar(total, name) as tell:
            yield tell
    else:
        yield None


@contextmanager
def _bar(total: int, name: str) -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[open]} open"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name or "radii", total=total, open=0)
        still_open = 0

        def tell(finished: int, radius: Result) -> None:
            nonlocal still_open
            still_open += radius.status.value in ("open", "unsolved")
            bar.update(task, completed=finished, open=still_open)

        yield tell
