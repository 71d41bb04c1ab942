"""The runners of `radii run`: local workers, this process, or a Ray cluster with what each task occupies there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from radii._check import byte_size, choice, number
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.runners import Request, Runner


def check_runner(name: str, ray_only: Mapping[str, Any]) -> None:
    """Refuses a runner that does not exist, and options that only a Ray cluster has without one."""
    choice(name, "--runner", ("local", "ray", "serial"))
    for option, value in ray_only.items():
        if value and name != "ray":
            raise InputError(f"{option}: expected it only with --runner ray; add --runner ray or remove it")


def local(workers: int | None) -> Runner:
    """Warm local workers, which begin to load at once."""
    from radii.runners import ProcessRunner
    from radii.study.preload import PRELOAD

    pool = ProcessRunner(workers, threads=1, preload=PRELOAD)
    pool.warm()
    return pool


def other(name: str, address: str | None, request: Request) -> Runner:
    """The serial runner, or a Ray cluster."""
    from radii.runners import RayRunner, SerialRunner
    from radii.study.preload import PRELOAD

    return SerialRunner() if name == "serial" else RayRunner(address, request=request, preload=PRELOAD)


def requested(texts: Sequence[str]) -> Request:
    """What a task occupies, from texts such as cpus=2, gpus=0.25, memory=4GiB or a cluster's own NAME=AMOUNT."""
    from radii.runners import Request

    found: dict[str, Any] = {"resources": {}}
    for text in texts:
        name, sign, amount = text.partition("=")
        if not sign or not name:
            raise InputError(f"--request: expected NAME=AMOUNT such as cpus=2 or memory=4GiB, got {text!r}")
        if name == "memory":
            found["memory_bytes"] = byte_size(amount, "--request memory")
        elif name in ("cpus", "gpus"):
            found[name] = number(amount, f"--request {name}", low=0.0)
        else:
            found["resources"][name] = number(amount, f"--request {name}", low=0.0, strict=True)
    return Request(**found)
