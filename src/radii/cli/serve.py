"""`radii serve`: the report as a live page while studies run."""

from __future__ import annotations

from typing import Annotated

import typer

from radii.cli.console import note


def serve(
    stores: Annotated[list[str], typer.Argument(help="Files or URLs of stores; choose among them in the page.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(envvar="RADII_TOKEN", help="Secret that a reader must give; 16 characters or more.")
    ] = None,
) -> None:
    """Show the report live, on this machine only unless told otherwise; nothing can be changed through it.

    \b
    Example:
      radii serve study.db
    """
    from radii._check import optional
    from radii.report.serve import Served, make_app
    from radii.store import open_store

    served = Served(stores=tuple(stores), host=host, token=token)
    for where in stores:
        open_store(where, create=False).close()
    uvicorn = optional("uvicorn", "serve", "radii serve")
    shown = f"[{host}]" if ":" in host else host
    note(f"http://{shown}:{port}/{'?token=…' if token else ''}  (Ctrl-C ends it)")
    uvicorn.run(make_app(served), host=host, port=port, log_level="warning", server_header=False)
