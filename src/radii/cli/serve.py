"""`radii serve`: the report as a live page while studies run."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from radii.cli.console import note
from radii.cli.options import DataOption, data_options


def serve(
    stores: Annotated[list[str], typer.Argument(help="Files or URLs of stores; choose among them in the page.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(envvar="RADII_TOKEN", help="Secret that a reader must give; 16 characters or more.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Data set of the inputs, to show the originals.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of that data set's files.")] = None,
    option: DataOption = None,
) -> None:
    """Show the report live, on this machine only unless told otherwise; nothing can be changed through it.

    \b
    Example:
      radii serve study.db
    """
    from radii._check import optional
    from radii.report.prompt import prompt
    from radii.report.serve import make_app
    from radii.report.watch import Served
    from radii.store import open_store

    served = Served(stores=tuple(stores), host=host, token=token, data=data, root=root, options=data_options(option))
    for where in stores:
        open_store(where, create=False).close()
    uvicorn = optional("uvicorn", "serve", "radii serve")
    app = make_app(served)
    with _listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        note(f"http://{shown}:{listener.getsockname()[1]}/{'?token=…' if token else ''}  (Ctrl-C ends it)")
        # Live pages keep their connection open; the end does not wait for them.
        config = uvicorn.Config(
            app, http=prompt(), log_level="warning", server_header=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    """A socket bound to the address."""
    from radii.errors import InputError

    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(
            f"--host {host} --port {port}: expected an address that can be listened on, got {error.strerror or error}; "
            "choose another port, or 0 for any free one"
        ) from None
