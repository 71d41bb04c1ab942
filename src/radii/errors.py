"""Every exception radii raises on purpose.

    RadiiError
    ├── InputError            the user gave something that cannot be used      (exit code 2)
    │   ├── ModelError        a network file or module
    │   │   └── UnsupportedOperator   names every operator that cannot be handled
    │   ├── DataError         a data set, image, label or selection
    │   ├── FormatError       a VNN-LIB, study, witness or evidence file; carries line and column
    │   └── ToolMissing       an optional package or program is not installed; carries the install line
    ├── StoreError            the result store cannot be opened, read or written (exit code 2)
    ├── RunnerError           the processes that do the work cannot be started or kept (exit code 3)
    ├── TrainingError         a training run diverged or cannot be kept; says what is left (exit code 3)
    └── Contradiction         a proof and a witness cannot both be right

Time-outs, exhausted memory and solver failures are not exceptions: they are answers (UNKNOWN with a reason).
"""

from __future__ import annotations


class RadiiError(Exception):
    """Base of everything raised on purpose by radii."""


class InputError(RadiiError):
    """What the user gave cannot be used; the message says what was expected, what was got and what to do."""


class ModelError(InputError):
    """A network cannot be loaded or does not fit the data."""


class UnsupportedOperator(ModelError):
    """The network holds operators that radii cannot handle; all of them are listed at once."""

    def __init__(self, message: str, operators: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.operators = operators


class DataError(InputError):
    """A data set, an input, a label or a selection cannot be used."""


class FormatError(InputError):
    """A file does not follow its format; `line` and `column` count from 1 when they are known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        where = "" if line is None else f" (line {line}" + ("" if column is None else f", column {column}") + ")"
        super().__init__(message + where)
        self.line = line
        self.column = column


class ToolMissing(InputError):
    """An optional package or external program is needed and not here."""

    def __init__(self, tool: str, install: str, purpose: str = "") -> None:
        super().__init__(f"{tool} is not installed{' (' + purpose + ')' if purpose else ''}: {install}")
        self.tool = tool
        self.install = install


class StoreError(RadiiError):
    """The result store cannot be opened, read or written; nothing that was stored is lost."""


class RunnerError(RadiiError):
    """The processes that do the work cannot be started or kept; what was finished before stays."""


class TrainingError(RadiiError):
    """A training run diverged or its checkpoint cannot be written; the last good one stays."""


class Contradiction(RadiiError):
    """A proof and a replayed witness contradict each other: one of them is wrong."""
