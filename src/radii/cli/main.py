"""`radii`: finds the command, and turns every outcome into an exit code and at most one line on stderr.

Exit codes: 0 done; 1 done but a requested gate failed; 2 bad input; 3 partial, some work failed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Any

import typer

from radii import __version__
from radii._check import choice
from radii._memory import out_of_memory
from radii.cli.console import PARTIAL, Whole
from radii.errors import InputError, RadiiError, StoreError

# Command -> the module in radii.cli that holds it, in the order of `radii --help`. A module offers either a function
# named like the command (dashes as underscores) or, for a command with sub-commands, a typer.Typer named `app`.
COMMANDS = {
    "demo": "demo",
    "radius": "radius",
    "reach": "reach",
    "ensemble": "ensemble",
    "run": "run",
    "train": "train",
    "status": "status",
    "export": "export",
    "check": "check",
    "gate": "gate",
    "stats": "stats",
    "guarantee": "guarantee",
    "report": "report",
    "serve": "serve",
    "verify": "verify",
    "supports": "supports",
    "store": "store",
    "properties": "properties",
    "verifiers": "verifiers",
    "attacks": "attacks",
    "datasets": "datasets",
    "architectures": "architectures",
}

BAD_INPUT = 2
# Typer carries its own click since 0.20 or so; the base of its usage errors is found, not imported.
_Usage: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class Commands(Whole):
    """A group whose commands are imported when they are asked for, so that `radii` starts fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *_points()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        offered = None if cmd_name in COMMANDS else _points()
        if offered is None:
            module = importlib.import_module(f"radii.cli.{COMMANDS[cmd_name]}")
            found = getattr(module, "app", None) or getattr(module, cmd_name.replace("-", "_"))
        else:
            found = offered[choice(cmd_name, "command", [*COMMANDS, *offered])].load()
        single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        if not isinstance(found, typer.Typer):
            single.command(cmd_name)(found)
        command = typer.main.get_command(found if isinstance(found, typer.Typer) else single)
        command.name = cmd_name
        return command


def _points() -> dict[str, metadata.EntryPoint]:
    """The commands that other packages offer; a name of ours cannot be taken."""
    return {point.name: point for point in metadata.entry_points(group="radii.commands") if point.name not in COMMANDS}


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)  # alone on its line, as the VNN-LIB solver database reads it
        raise typer.Exit


def _name(asked: bool) -> None:
    if asked:
        typer.echo("radii")
        raise typer.Exit


def _root(
    name: Annotated[bool, typer.Option("--name", callback=_name, is_eager=True, help="Print the tool's name.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How far can an input move before a neural network changes its mind?

    Start with `radii demo`. Every command has a --help with an example.
    """


app = typer.Typer(
    cls=Commands,
    name="radii",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback(no_args_is_help=True)(_root)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of one command line."""
    # Small batches on several threads mostly wait for each other; parallel work is done by processes.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        result = app(args=None if arguments is None else list(arguments), prog_name="radii", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except BrokenPipeError:  # the reader of our output went away: `radii ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, typer.Abort):
        return _say("stopped", 130)
    except Exception as error:
        if os.environ.get("RADII_DEBUG"):
            raise
        return _outcome(error)


def _outcome(error: Exception) -> int:
    """The exit code of a failure, after its one line."""
    if isinstance(error, _Usage):
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message(), err=True)
            return BAD_INPUT
        path = getattr(getattr(error, "ctx", None), "command_path", "radii")
        return _say(f"{error.format_message()} (see {path} --help)", BAD_INPUT)
    if isinstance(error, (InputError, StoreError)):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, OSError):
        what = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        return _say(what, BAD_INPUT)
    if isinstance(error, RadiiError):
        return _say(str(error), PARTIAL)
    if out_of_memory(error):
        return _say(f"not enough memory ({error or 'none is left'}); take fewer inputs or workers", PARTIAL)
    kind = type(error).__name__
    return _say(f"internal error ({kind}: {error}); RADII_DEBUG=1 shows where; please report it", PARTIAL)


def _say(message: str, code: int) -> int:
    typer.echo("radii: " + " ".join(message.split()), err=True)
    return code


if __name__ == "__main__":
    main()
