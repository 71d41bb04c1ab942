"""The game at one ε: the attacker fools sets of members, the defender picks a member, as a linear program.

The attacker chooses for every point j a distribution q_j over the sets that can be fooled there, and gets the least,
over members c, of the mean over points of Σ_S q_j(S)·[c ∈ S]. Only the largest sets matter. The dual is the defender's:
min over mixes w of mean_j max_S Σ_{c ∈ S} w_c. Every solution comes with both: `low` is what q earns and `high` what w
allows, each computed from the solution itself, so that the value lies between whatever the solver's rounding did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from radii.ensembles.facts import Masks
from radii.errors import RadiiError

GAP = 1e-7  # between the two ends of one program: more is a failure of the solver
DUST = 1e-9  # probabilities below this are rounding

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimal attack's distributions over sets and the defender's optimal mix."""

    sets: tuple[Masks, ...]  # of each point
    chances: tuple[Floats, ...]  # of each point's sets
    mix: Floats  # (members,)

    @cached_property
    def low(self) -> float:
        """What the attacker's distributions earn against the best member."""
        total = np.zeros(len(self.mix))
        for sets, chances in zip(self.sets, self.chances):
            total += chances @ bits(sets, len(self.mix))
        return float(total.min()) / len(self.sets)

    @cached_property
    def high(self) -> float:
        """What the best answers earn against the defender's mix."""
        return float(np.mean(gains(self.sets, self.mix)))


def solve(sets: Sequence[Masks], members: int) -> Solution:
    """The game in which point j can be attacked by any of sets[j]; a vertex of the program, so that few are mixed."""
    points, counts = len(sets), [len(one) for one in sets]
    if max(counts) == 1:  # the attacker has no choice: the defender takes the member that is fooled least
        best = np.argmin(bits(np.concatenate(list(sets)), members).sum(0))
        return Solution(tuple(sets), tuple(np.ones(1) for _ in sets), np.eye(members)[best])
    columns = sum(counts)
    place = np.repeat(np.arange(points), counts)
    fooled = bits(np.concatenate(list(sets)), members)
    from scipy.optimize import linprog  # half a second to load

    # Variables: the chances of all sets, then v. Maximise v with v·points − Σ q·[c ∈ S] ≤ 0 for every member c.
    earn = np.column_stack([-fooled.T, np.full(members, float(points))])
    once = np.column_stack([(place == np.arange(points)[:, None]).astype(np.float64), np.zeros(points)])
    cost = np.r_[np.zeros(columns), -1.0]
    found = linprog(cost, earn, np.zeros(members), once, np.ones(points), bounds=(0.0, None), method="highs-ds")
    if not found.success or found.x is None:
        raise RadiiError(f"ensemble: the linear program of the game was not solved ({found.message})")
    chances = np.where(found.x[:-1] > DUST, found.x[:-1], 0.0)
    mix = np.clip(-found.ineqlin.marginals, 0.0, None)
    mix = np.where(mix * points > DUST, mix, 0.0)
    mix = mix / mix.sum() if mix.sum() > 0 else np.full(members, 1.0 / members)
    parts = np.split(chances, np.cumsum(counts)[:-1])
    solution = Solution(tuple(sets), tuple(part / part.sum() for part in parts), mix)
    if solution.high - solution.low > GAP:
        raise RadiiError(
            f"ensemble: expected the attacker's and the defender's program to agree, got {solution.low!r} and "
            f"{solution.high!r}"
        )
    return solution


def bits(masks: Masks, members: int) -> Floats:
    """Sets as rows of zeros and ones."""
    found: Floats = (masks[:, None] >> np.arange(members) & 1).astype(np.float64)
    return found


def gains(sets: Sequence[Masks], mix: Floats) -> Floats:
    """What the best set of each point earns against a mix."""
    return np.array([float((bits(one, len(mix)) @ mix).max()) for one in sets])
