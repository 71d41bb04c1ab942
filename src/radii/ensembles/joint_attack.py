"""The joint minimum-norm attack: the nearest input that fools every one of several members.

Each row minimises the largest of the members' margins, each in units of what it is at the input. Most rows leave open
which class takes a member in, so that it may change on the way; the others push all members to the same class, as
transfer attacks do. Inputs that fool some of the members already are further starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radii._torch import Tensor, torch
from radii.attacks.batches import in_batches, known_surface
from radii.attacks.effort import Effort
from radii.attacks.exact import Floats
from radii.attacks.geometry import Room
from radii.attacks.min_norm import Hunt, noise_of
from radii.attacks.rows import Rows
from radii.attacks.shrink import Schedule, shrinking
from radii.attacks.surrogate import Surface
from radii.ensembles.members import Merged
from radii.problem import Norm

SHARPNESS = (4.0, 20.0, 60.0)  # of the smooth maximum whose gradient is followed, in turns
SAME = 5  # classes that all members are pushed to together, the likeliest first
CANDIDATES = 6  # points to be replayed, nearest first
LATE = Schedule(40, step=(0.4, 0.01), change=(0.1, 0.002))  # from inputs that fool some members


@dataclass(frozen=True, eq=False)
class AllFooled:
    """Every member has another class at least tied with the label; `targets` says which class, −1 for any."""

    members: int
    label: int
    targets: Tensor  # (rows,)
    sharpness: Tensor  # (rows,)
    scale: Tensor  # (members,)

    def margin(self, surface: Surface, x: Tensor) -> Tensor:
        return self._margins(surface.outputs(x)).amax(1)

    def slope(self, surface: Surface, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        def value(outputs: Tensor) -> Tensor:
            margins = self._margins(outputs)
            smooth = torch.logsumexp(margins * self.sharpness[:, None], 1) / self.sharpness
            return margins.amax(1).detach() + smooth - smooth.detach()

        return surface.differentiate(x, leak, value)

    def _margins(self, outputs: Tensor) -> Tensor:
        """The margins of all members (rows, members), in units of those at the input."""
        each = outputs.reshape(len(outputs), self.members, -1)
        others = each.clone()
        others[:, :, self.label] = -torch.inf
        chosen = each.gather(2, self.targets.clamp_min(0)[:, None, None].expand(-1, self.members, 1))[:, :, 0]
        rival = torch.where(self.targets[:, None] < 0, others.amax(2), chosen)
        return (each[:, :, self.label] - rival) / self.scale

    @property
    def free(self) -> Tensor:
        return torch.zeros(len(self), dtype=torch.bool, device=self.targets.device)

    def take(self, index: Tensor) -> AllFooled:
        return AllFooled(self.members, self.label, self.targets[index], self.sharpness[index], self.scale)

    def __len__(self) -> int:
        return len(self.targets)


def nearest_joint(
    merged: Merged,
    x: Floats,
    label: int,
    norm: Norm,
    effort: Effort | str = "standard",
    seed: int = 0,
    starts: Sequence[Floats] = (),
) -> list[Floats]:
    """Points near one input that fool all members as the attack sees it, nearest first; flat arrays."""
    surface, effort = known_surface(merged), Effort.of(effort)
    center = torch.from_numpy(np.array(x, dtype=merged.dtype).reshape(1, -1))
    outputs = surface.outputs(center)[0].reshape(len(merged.members), -1)
    rivals = outputs.clone()
    rivals[:, label] = -torch.inf
    scale = (outputs[:, label] - rivals.amax(1)).abs().clamp_min(1e-3 * outputs.abs().max().clamp_min(1e-6))
    likely = ((rivals - outputs[:, label, None]) / scale[:, None]).amin(0).argsort(descending=True)
    same = likely[: min(SAME, len(likely) - 1)]
    rows = 2 * len(SHARPNESS) + len(same)
    targets = torch.cat([torch.full((rows - len(same),), -1), same])
    sharpness = torch.tensor(SHARPNESS, dtype=center.dtype)[torch.arange(rows) % len(SHARPNESS)]
    hunt = Hunt(merged, surface, norm, effort, noise_of(surface, effort, seed), math.inf)
    found = _rows(hunt, center, AllFooled(len(outputs), label, targets, sharpness, scale))
    if starts:
        first = torch.from_numpy(np.stack([np.asarray(one, dtype=merged.dtype).ravel() for one in starts]))
        aims = AllFooled(len(outputs), label, torch.full((len(first),), -1), sharpness[:1].repeat(len(first)), scale)
        late = _rows(hunt, center, aims)
        late.note(first)
        in_batches(late, first, torch.full_like(late.best, 0.02), shrinking(LATE))
        late.bisect(6)
        found.merge(late, torch.arange(len(first)) % rows)
    hunt.run(found, 1, len(found))
    order = found.best.argsort()[:CANDIDATES]
    return [found.point[i].numpy() for i in order if bool(found.best[i].isfinite())]


def _rows(hunt: Hunt, center: Tensor, aims: AllFooled) -> Rows:
    room = Room(center.expand(len(aims), -1), hunt.low, hunt.high)
    return Rows(hunt.surface, hunt.norm, room, aims)
