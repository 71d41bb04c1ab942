"""Runners map picklable functions over keyed tasks: in process, on local processes, on a Ray cluster."""

from __future__ import annotations

from radii.runners._measure import measured
from radii.runners.base import Failure, Limits, Outcome, Reason, Runner, Task
from radii.runners.order import fair_order
from radii.runners.processes import ProcessRunner
from radii.runners.ray import RayRunner, Request
from radii.runners.serial import SerialRunner

__all__ = [
    "Failure",
    "Limits",
    "Outcome",
    "ProcessRunner",
    "RayRunner",
    "Reason",
    "Request",
    "Runner",
    "SerialRunner",
    "Task",
    "fair_order",
    "measured",
]
