"""The loop of a worker process: receive a call, say that it begins, run it, send the outcome."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection

from radii.runners._measure import cpu_seconds, measured
from radii.runners.base import Failure, Outcome, Reason

BEGIN = b"begin"
_SET_PDEATHSIG = 1  # from linux/prctl.h


def serve(link: Connection) -> None:
    """Answer calls until the other side closes the link."""
    while True:
        try:
            key, call = pickle.loads(link.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            function, args = pickle.loads(call)
        except Exception as error:
            message = f"the worker cannot load the function or its arguments: {type(error).__name__}: {error}"
            outcome = Outcome(key=key, failure=Failure(reason=Reason.ERROR, message=message))
        else:
            # Imports are done by now; the task's clock and its CPU account start here.
            link.send_bytes(BEGIN + pickle.dumps(cpu_seconds()))
            outcome = measured(key, function, args)
        link.send_bytes(_reply(outcome))


def _reply(outcome: Outcome) -> bytes:
    try:
        return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        message = f"the result cannot be sent back: {type(error).__name__}: {error}"
        failure = Failure(reason=Reason.ERROR, message=message)
        return pickle.dumps(dataclasses.replace(outcome, value=None, failure=failure))


def settle(environment: dict[str, str]) -> None:
    """Make this forked process a worker: own process group, deaf to Ctrl-C, gone when its parent is gone."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.update(environment)
    os.dup2(2, 1)  # standard output belongs to the caller's data; what tasks print goes to standard error
