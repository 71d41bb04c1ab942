"""Simulation: the real state machines against recorded or made-up answer times, thousands of instances in seconds.

A `Trial` says for every position of the grid what the verifier would answer and how long that takes. `play` runs one
search on it with k processors of its own, exactly as a cluster would: a query that finishes may cancel others, and what
those have used counts as CPU time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from radii._check import number, whole
from radii.errors import InputError
from radii.problem import Reason, Verdict
from radii.search.grid import Grid
from radii.search.machine import GridSearch


@dataclass(frozen=True, slots=True)
class Trial:
    """One instance: broken from position `turn` on, answered after `seconds` each, except for the `missing`."""

    grid: Grid
    turn: int
    seconds: Sequence[float] = field(repr=False)
    missing: Mapping[int, Reason] = field(default_factory=dict, repr=False)

    def answer(self, position: int, limit: float) -> tuple[Verdict, Reason | None, float]:
        """What the verifier says of a position within the limit, and when."""
        taken = self.seconds[position]
        if taken >= limit:
            return Verdict.UNKNOWN, Reason.TIME, limit
        if position in self.missing:
            return Verdict.UNKNOWN, self.missing[position], taken
        return (Verdict.BROKEN if position >= self.turn else Verdict.ROBUST), None, taken

    @staticmethod
    def recorded(grid: Grid, answers: Mapping[int, tuple[Verdict, float]]) -> Trial:
        """A trial from recorded answers and seconds by position.

        Positions between two recorded ones take the interpolated time (of the logarithm); those whose verdict does
        not follow from the recorded ones are missing.
        """
        if not answers:
            raise InputError("trial: expected at least one recorded answer, got none")
        places = sorted(answers)
        low = max((p for p in places if answers[p][0] is Verdict.ROBUST), default=-1)
        high = min((p for p in places if answers[p][0] is Verdict.BROKEN), default=len(grid))
        if low >= high:
            raise InputError(f"trial: expected monotone answers, got robust at {grid[low]} and broken at {grid[high]}")
        logs = np.log([max(answers[p][1], 1e-9) for p in places])
        seconds = np.exp(np.interp(np.arange(len(grid)), places, logs)).tolist()
        missing = dict.fromkeys(range(low + 1, high), Reason.INCOMPLETE)
        return Trial(grid, high, seconds, missing)


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How answer times are made up: log-normal, with a peak at the radius that falls off on both sides.

    `peak` is the factor at the radius, `width` how many grid steps it takes to fall by e, `spread` the standard
    deviation of the logarithm between instances and `noise` that between queries. `memory` is the share of queries
    that run out of memory. The defaults give times, time-outs and radii of the size of paper 001, section 4.2.
    """

    radius: float = 0.055
    radius_spread: float = 0.5
    easy: float = 60.0
    peak: float = 25.0
    width: float = 12.0
    spread: float = 0.5
    noise: float = 0.7
    memory: float = 0.0

    def trials(self, grid: Grid, count: int, seed: int = 0) -> list[Trial]:
        """Independent instances; the same seed gives the same trials."""
        rng = np.random.default_rng(whole(seed, "seed"))
        radii = self.radius * np.exp(self.radius_spread * rng.standard_normal(whole(count, "count", low=1)))
        turns = np.searchsorted(np.array(grid.epsilons), radii, side="right")
        hard = self.spread * rng.standard_normal(count)
        steps = np.arange(len(grid))
        made = []
        for turn, scale in zip(turns.tolist(), hard.tolist(), strict=True):
            closeness = np.exp(-np.abs(steps - turn + 0.5) / self.width)
            logs = math.log(self.easy) + scale + math.log(self.peak) * closeness
            seconds = np.exp(logs + self.noise * rng.standard_normal(len(grid)))
            lost = np.flatnonzero(rng.random(len(grid)) < self.memory).tolist()
            made.append(Trial(grid, turn, seconds.tolist(), dict.fromkeys(lost, Reason.MEMORY)))
        return made


@dataclass(frozen=True, slots=True)
class Play:
    """How one search went: the ends as positions (-1 and n: absent), its counts and its times."""

    low: int
    high: int
    queries: int
    timeouts: int
    memory_errors: int
    cancelled: int
    cpu_seconds: float
    wall_seconds: float
    critical_termination: bool


def play(trial: Trial, search: GridSearch, limit: float) -> Play:
    """One search to its end, with k processors and `limit` seconds per query."""
    number(limit, "limit", low=0.0, strict=True)
    now = cpu = 0.0
    begun: dict[int, float] = {}
    events: list[tuple[float, int]] = []
    while True:
        for position in search.ask():
            begun[position] = now
            heapq.heappush(events, (now + trial.answer(position, limit)[2], position))
        while events and events[0][1] not in begun:  # cancelled before it finished
            heapq.heappop(events)
        if not events:
            break
        now, position = heapq.heappop(events)
        cpu += now - begun.pop(position)
        verdict, reason, _ = trial.answer(position, limit)
        for redundant in search.tell(position, verdict, reason):
            cpu += now - begun.pop(redundant)
    counts = search.counts
    return Play(
        search.low,
        search.high,
        counts.queries,
        counts.timeouts,
        counts.memory_errors,
        counts.cancelled,
        cpu,
        now,
        search.critical_termination,
    )


def play_direct(trial: Trial, limit: float) -> Play:
    """A model of `search: direct`: one tree that proves all it can and needs the time of its last, hardest proof.

    It is anytime: at the limit it keeps the largest ε whose proof fits into it. The witness from the attack is free.
    """
    provable = [p for p in range(trial.turn) if trial.seconds[p] < limit]
    low = max(provable, default=-1)
    spent = trial.seconds[low] if low == trial.turn - 1 and low >= 0 else (limit if trial.turn else 0.0)
    return Play(low, trial.turn, 1, int(low < trial.turn - 1), 0, 0, spent, spent, False)


@dataclass(frozen=True, slots=True)
class Summary:
    """Table 1 (and the shares of Table 4) over many instances."""

    instances: int
    queries_least: int
    queries_mean: float
    queries_most: int
    cpu_seconds: float
    wall_seconds: float
    timeouts: float
    memory_errors: float
    cancelled_share: float
    closed_share: float

    @staticmethod
    def of(plays: Sequence[Play]) -> Summary:
        """The averages per instance; `closed` are those whose ends are neighbours on the grid or its border."""
        if not plays:
            raise InputError("summary: expected at least one play, got none")
        queries = np.array([p.queries for p in plays])
        return Summary(
            len(plays),
            int(queries.min()),
            float(queries.mean()),
            int(queries.max()),
            float(np.mean([p.cpu_seconds for p in plays])),
            float(np.mean([p.wall_seconds for p in plays])),
            float(np.mean([p.timeouts for p in plays])),
            float(np.mean([p.memory_errors for p in plays])),
            float(sum(p.cancelled for p in plays) / max(1, queries.sum())),
            float(np.mean([p.high - p.low <= 1 for p in plays])),
        )


def compare(
    trials: Sequence[Trial], searches: Mapping[str, Callable[[Grid], GridSearch]], limit: float
) -> dict[str, Summary]:
    """The summary of each search on the same trials, and of `direct`."""
    if not trials:
        raise InputError("compare: expected at least one trial, got none")
    table = {name: Summary.of([play(t, make(t.grid), limit) for t in trials]) for name, make in searches.items()}
    table["direct"] = Summary.of([play_direct(t, limit) for t in trials])
    return table
