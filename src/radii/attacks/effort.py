"""Effort: how much work a minimum-norm attack spends on an instance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from radii._check import choice

_BISECTIONS = 20  # evaluations between the inputs and the points found
_LEAST = 6  # steps of a scout: with fewer it finds nothing


@dataclass(frozen=True, slots=True)
class Effort:
    """The stages of `minimum_norm`.

    `scout` steps are spent by each of `free` scouts that take any class, and by one on each of the `targets` nearest
    classes (as the gradients at the input see them); then, `rounds` times, `restarts` attacks of
    `steps` steps on each of the `keep` nearest of them, from random points as far away as `reaches` say (in units of
    the nearest distance so far; far starts find what near ones miss), gradients leaking as `leaks` say; at last
    `polish` short steps and `project` projections onto the boundary from the best points.
    """

    name: str
    scout: int = 40
    free: int = 5
    targets: int = 16
    keep: int = 9
    restarts: int = 4
    steps: int = 30
    rounds: int = 2
    polish: int = 80
    project: int = 10
    leaks: tuple[float, ...] = (0.0, 0.02, 0.05)
    reaches: tuple[float, ...] = (3.0, 10.0, 1.5, 6.0)

    @staticmethod
    def of(value: Effort | str) -> Effort:
        """The effort for a name: "fast", "standard" or "thorough" (or the effort itself)."""
        return value if isinstance(value, Effort) else _EFFORTS[choice(value, "effort", _EFFORTS)]

    def scouts(self, classes: int) -> int:
        """How many attacks on one instance go first, side by side."""
        return self.free + min(self.targets, classes - 1)

    def passes(self, classes: int) -> float:
        """About how many gradients all scouts together could take in the time of the whole attack."""
        restarts = self.rounds * self.steps * max(1.0, self.keep * self.restarts / self.scouts(classes))
        return self.scout + restarts + self.polish + self.project + _BISECTIONS

    def cut(self, share: float) -> Effort:
        """The same with only a share of its steps."""
        if share >= 1.0:
            return self
        scout, polish, project = (int(share * n) for n in (self.scout, self.polish, self.project))
        return replace(self, scout=max(_LEAST, scout), polish=max(1, polish), project=max(1, project))


_EFFORTS = {
    effort.name: effort
    for effort in (
        Effort("fast", scout=38, free=3, targets=2, rounds=0, polish=18, project=4),
        Effort("standard"),
        Effort("thorough", scout=40, targets=64, keep=12, restarts=16, steps=40, rounds=5, polish=120, project=20),
    )
}
