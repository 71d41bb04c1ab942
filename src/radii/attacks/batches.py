"""Batches: rows of attacks run in pieces that stay in cache and in memory."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from radii._torch import Tensor, torch
from radii.attacks.rows import Rows
from radii.attacks.surrogate import Surface
from radii.models.classifier import Classifier
from radii.models.graph import Graph

_BATCH_VALUES = 2**21  # values of all nodes that one batch of rows may hold: 8 MiB in float32, times a few copies
_SURFACES: WeakKeyDictionary[Graph, dict[str, Surface]] = WeakKeyDictionary()

Move = Callable[[Rows, Tensor, Tensor, Tensor | None], None]


def known_surface(classifier: Classifier, device: torch.device | str = "cpu") -> Surface:
    """The surface of a classifier, made once for each device."""
    surfaces = _SURFACES.setdefault(classifier.graph, {})
    if str(device) not in surfaces:
        surfaces[str(device)] = Surface(classifier.graph, device, classifier.torch_dtype)
    return surfaces[str(device)]


def in_batches(rows: Rows, start: Tensor, leak: Tensor, move: Move, cap: Tensor | None = None) -> None:
    """Runs `move(rows, start, leak, cap)` on one batch of rows after the other and keeps what they find."""
    size = max(16, _BATCH_VALUES // (rows.surface.values + 4 * rows.surface.size))
    for index in torch.split(torch.arange(len(rows), device=rows.best.device), size):
        part = rows.take(index)
        try:
            move(part, start[index], leak[index], None if cap is None else cap[index])
        finally:  # also what was found before the time was over
            rows.best[index], rows.point[index] = part.best, part.point
