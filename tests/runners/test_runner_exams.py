"""Every runner sits the exam."""

from __future__ import annotations

from radii.runners import ProcessRunner, Runner, SerialRunner
from radii.testing.runner_exam import RunnerExam


class TestSerial(RunnerExam):
    def make(self, workers: int) -> Runner:
        return SerialRunner()


class TestProcesses(RunnerExam):
    def make(self, workers: int) -> Runner:
        return ProcessRunner(workers)
