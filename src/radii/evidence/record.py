"""Recorder: hears of the engine's trees and makes evidence of the ones that prove the radius in the end."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from radii._torch import Tensor, torch
from radii.errors import InputError
from radii.evidence.check import asked, ball_of, check, lowered_of
from radii.evidence.claim import Claim
from radii.evidence.file import Arrays, pack
from radii.evidence.grow import Grower, Hint, Source
from radii.evidence.log import TreeLog
from radii.evidence.prices import GAIN
from radii.evidence.proof import Forest
from radii.evidence.walk import Layer, Walk
from radii.models.classifier import Classifier
from radii.models.graph import Graph
from radii.models.operators import Relu
from radii.problem import Classification, Instance, Norm

MEMORY = 2**30  # bytes of logs
# A sign decided by less than this part of the interval's width counts as undecided: other machines round otherwise.
NEAR = 1e-9


class Condensed(Protocol):
    """What a recorder reads of the engine's form of a network."""

    @property
    def where(self) -> tuple[tuple[int, Tensor], ...]: ...
    @property
    def region(self) -> Any: ...


class Recorder:
    """Collects the logs of one instance; `build` turns what proves the radius into a file."""

    def __init__(
        self, classifier: Classifier, instance: Instance, norm: Norm, target: int | None, arithmetic: str, tool: str
    ) -> None:
        self.classifier, self.instance = classifier, instance
        self.claim = Claim.of(classifier, instance, Classification(target), norm, arithmetic, tool)
        self._number: dict[int, int] = {}
        self._layers: list[TreeLog] = []
        self._best: TreeLog | None = None
        self._radius = 0.0
        self._until = math.inf

    def reads(self, graph: Graph) -> None:
        """Learns which node of the engine's graph is which ReLU."""
        nodes = [i for i, node in enumerate(graph.nodes) if isinstance(node.operator, Relu)]
        self._number = {node: number for number, node in enumerate(nodes)}

    def margins(self, net: Condensed, rows: Tensor) -> TreeLog:
        """A log for a tree whose objectives are these margins."""
        return TreeLog(self._where(net), rows.tolist(), float(net.region.epsilon[0]))

    def layer(self, net: Condensed, early: Condensed, columns: Tensor, sign: Tensor, shift: Tensor) -> TreeLog:
        """A log for a tree whose objectives are sign · z − shift > 0 for these columns of `net`."""
        own = [(number, int(v)) for number, values in self._where(net) for v in values.tolist()]
        labels = [
            (*own[column], int(turn < 0), float(turn * limit))
            for column, turn, limit in zip(columns.tolist(), sign.tolist(), shift.tolist())
        ]
        log = TreeLog(self._where(early), labels, float(net.region.epsilon[0]))
        self._layers.append(log)
        return log

    def proved(self, log: TreeLog, radius: float) -> None:
        """Takes note of the tree that shows the largest radius so far."""
        if radius > self._radius:
            self._best, self._radius = log, radius

    def _where(self, net: Condensed) -> list[tuple[int, Tensor]]:
        return [(self._number[node], values) for node, values in net.where]

    def build(self, radius: float, seconds: float = math.inf) -> bytes:
        """Evidence of a radius that was proven, checked; an `InputError` says why there is none.

        After so many CPU seconds it gives up.
        """
        self._until = time.process_time() + seconds
        if self._best is None or radius > self._radius:
            raise InputError("no tree was recorded that proves the radius")
        if sum(log.bytes for log in (*self._layers, self._best)) > MEMORY:
            raise InputError("the trees are too large to be kept")
        best = self._best
        claim = replace(self.claim, radius=radius, ball=max(radius, best.ball))
        with torch.no_grad():
            arrays = self._arrays(claim, best)
        data = pack(claim.plain(), arrays)
        check(data, self.classifier)
        return data

    def _arrays(self, claim: Claim, best: TreeLog) -> Arrays:
        net = lowered_of(self.classifier)
        arrays: Arrays = {"x": self.instance.x}
        walk = Walk(net.graph, ball_of(self.instance, claim, claim.ball, self.classifier))
        columns: dict[tuple[int, int], int] = {}
        active: dict[int, Tensor] = {}
        hulls = any(log.hulls for log in (*self._layers, best))
        for number, relu in enumerate(walk.relus):
            layer = walk.open(relu)
            hull = _worth(walk, layer) if hulls else layer.which[:0]
            arrays[f"{number}/ends"] = hull.numpy().astype(np.int32)
            walk.tighten(layer, hull)
            self._lemmas(walk, layer, number, arrays, columns, active)
            undecided = _nearly(layer)
            arrays[f"{number}/undecided"] = undecided.numpy().astype(np.int32)
            columns |= {(number, v): walk.network.width + i for i, v in enumerate(undecided.tolist())}
            active[number] = layer.low >= 0
            walk.close(layer, undecided)
        rows = asked(walk, claim, self.classifier.classes, net)
        source = Source(best, columns, active)
        known = {label: Hint(source, place, ()) for place, label in enumerate(best.labels)}
        hints = [known.get(row, Hint(None, 0, ())) for row in range(len(rows.b))]
        ball = ball_of(self.instance, claim, claim.radius, self.classifier)
        _write(arrays, "margin/", Grower(walk.neurons, rows, ball, True, self._until, best.hulls).grow(hints))
        return arrays

    def _lemmas(
        self,
        walk: Walk,
        layer: Layer,
        number: int,
        arrays: Arrays,
        columns: dict[tuple[int, int], int],
        active: dict[int, Tensor],
    ) -> None:
        """Proves of a layer what the engine's hidden trees proved of it."""
        wanted: dict[tuple[int, int], tuple[float, TreeLog, int]] = {}
        for log in self._layers:
            if log.ball < walk.ball.size * (1.0 - 1e-12) or not log.labels or log.labels[0][0] != number:
                continue
            for place, (_, value, side, threshold) in enumerate(log.labels):
                old = float(layer.low[value] if side == 0 else -layer.high[value])
                new = threshold if side == 0 else -threshold
                known = wanted.get((value, side))
                if new > old + 1e-9 * abs(old) and (known is None or new > known[0]):
                    wanted[value, side] = (new, log, place)
        values = torch.tensor([value for value, _ in wanted], dtype=torch.int64)
        arrays[f"{number}/neuron"] = values.numpy().astype(np.int32)
        if not wanted:
            return
        side = torch.tensor([s for _, s in wanted])
        sign = 1.0 - 2.0 * side.double()
        threshold = sign * torch.tensor([new for new, _, _ in wanted.values()], dtype=torch.float64)
        used: dict[int, tuple[TreeLog, set[int]]] = {}
        for _, log, place in wanted.values():
            used.setdefault(id(log), (log, set()))[1].add(place)
        sources = {key: Source(log, columns, active, places) for key, (log, places) in used.items()}
        hints = [Hint(sources[id(log)], place, ()) for _, log, place in wanted.values()]
        rows = layer.rows.pick(layer.place(values)).times(sign).minus(sign * threshold)
        hulls = any(log.hulls for _, log, _ in wanted.values())
        forest = Grower(walk.neurons, rows, walk.ball, False, self._until, hulls).grow(hints)
        arrays[f"{number}/side"] = side.numpy().astype(np.uint8)
        arrays[f"{number}/threshold"] = threshold.numpy()
        _write(arrays, f"{number}/", forest)
        walk.prove(layer, values, side, threshold, forest)


def _nearly(layer: Layer) -> Tensor:
    """The values in question whose sign is undecided, or decided by hardly anything."""
    low, high = layer.low[layer.which], layer.high[layer.which]
    slack = NEAR * (high - low).abs()
    return layer.which[(low < slack) & (high > -slack)]


def _worth(walk: Walk, layer: Layer) -> Tensor:
    """The ends of undecided values that hulls tighten, as `Walk.tighten` takes them."""
    which = layer.undecided
    if not walk.neurons.blocks or not len(which):
        return which[:0]
    ends = torch.stack([2 * which, 2 * which + 1], 1).flatten()
    found = walk.through_hulls(layer, ends)
    old = torch.stack([layer.low[which], -layer.high[which]], 1).flatten()
    width = (layer.high - layer.low)[which].repeat_interleave(2)
    return ends[found > old + GAIN * width]


def _write(arrays: Arrays, prefix: str, forest: Forest) -> None:
    arrays[f"{prefix}kind"] = forest.kind.numpy().astype(np.uint8)
    arrays[f"{prefix}split"] = forest.split.numpy().astype(np.int32)
    arrays[f"{prefix}alpha"] = forest.alpha.numpy()
    arrays[f"{prefix}alpha2"] = forest.alpha2.numpy()
    arrays[f"{prefix}hull"] = forest.hull.numpy().astype(np.uint8)
    arrays[f"{prefix}hull2"] = forest.hull2.numpy().astype(np.uint8)
    for name, kind in (("beta", np.float64), ("beta2", np.float64), ("cut", np.float32)):
        sparse = getattr(forest, name)
        arrays[f"{prefix}{name}/count"] = sparse.count.numpy().astype(np.int32)
        arrays[f"{prefix}{name}/place"] = sparse.place.numpy().astype(np.int32)
        arrays[f"{prefix}{name}/value"] = sparse.value.numpy().astype(kind)
