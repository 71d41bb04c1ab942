"""First look: a specification that a short attack or one pass of linear bounds settles, over numpy arrays.

Loading torch takes a second or two of CPU time. A query that is easy need not wait for it; any other goes on to
`engine/specification.py` as if nobody had looked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from radii.bounds.chain import Bounds, Layer, gradient, layers_of, values
from radii.decide import Clock, replay_spec
from radii.engine.tuning import FirstLook
from radii.errors import UnsupportedOperator
from radii.logit_query import Region, check_spec
from radii.models.classifier import Classifier, with_preprocessing
from radii.problem import Answer, Proof, SpecQuery, Witness

Array = NDArray[np.float64]
Rows = list[slice]  # of each clause, among all rows


def first_look(classifier: Classifier, query: SpecQuery, seed: int, rule: FirstLook) -> Answer | None:
    """BROKEN or ROBUST if it is easy to see, else None: also where the network is no chain of small layers."""
    clock, region = Clock(), Region.box(query)
    check_spec(classifier, query)
    ends = np.concatenate([region.low, region.high])
    chain = classifier.once(("layers", rule.most_weights), lambda: _layers(classifier, rule.most_weights))
    if chain is None or region.empty or not np.isfinite(ends).all():
        return None
    clauses, counts = query.spec.clauses, [len(clause.bounds) for clause in query.spec.clauses]
    rows = np.concatenate([clause.coefficients for clause in clauses])
    limits = np.concatenate([clause.bounds for clause in clauses])
    parts = [slice(end - count, end) for end, count in zip(np.cumsum(counts), counts)]
    layers: list[Layer] = [*chain, (rows, -limits)]
    witness = _attack(classifier, query, region, layers, parts, seed, rule)
    if witness is not None:
        return Answer.broken(witness, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
    lowest = Bounds(layers, region.low, region.high).lowest()
    if all(bool(lowest[part].max() > 0) for part in parts):
        proof = Proof("linear bounds", "real", "radii native")
        return Answer.robust(proof, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
    return None


def _layers(classifier: Classifier, most: int) -> list[Layer] | None:
    from radii.models.from_onnx import read_graph

    try:
        graph = read_graph(classifier.onnx_bytes, classifier.input_shape)
    except UnsupportedOperator:
        return None
    graph = with_preprocessing(graph, classifier.preprocessing)
    return layers_of(graph, most) if graph.logits is graph else None


def _attack(
    classifier: Classifier,
    query: SpecQuery,
    region: Region,
    layers: list[Layer],
    parts: Rows,
    seed: int,
    rule: FirstLook,
) -> Witness | None:
    """Random points and corners of the box, then steps against the sign of the gradient from the best of them."""
    low, high, random = region.low, region.high, np.random.default_rng(seed)
    share = random.random((rule.samples, len(low)))
    share[0], share[1::2] = 0.5, share[1::2].round()
    x = low + (high - low) * share
    with np.errstate(all="ignore"):
        for step in range(rule.steps + 1):
            found = values(layers, x)
            clauses = np.stack([found[-1][:, part].max(1) for part in parts], axis=1)
            order = np.argsort(clauses.min(1), kind="stable")
            for place in order[: rule.replays]:
                if clauses[place].min() <= 0:
                    witness = replay_spec(classifier, query, region.settle(x[place], classifier.dtype))
                    if witness is not None:
                        return witness
            if not step:  # the best starts of every clause go on
                best = np.argsort(clauses, axis=0, kind="stable")[: rule.starts]
                aim = np.broadcast_to(np.arange(len(parts)), best.shape).reshape(-1)[: rule.runs]
                chosen = best.reshape(-1)[: rule.runs]
                x, found = x[chosen], [value[chosen] for value in found]
            towards = np.zeros_like(found[-1])
            for place, clause in enumerate(aim):
                part = parts[clause]
                towards[place, part.start + int(found[-1][place, part].argmax())] = 1.0
            size = rule.step * (1.0 - step / (rule.steps + 1)) ** 2 + rule.least_step
            x = np.clip(x - size * (high - low) * np.sign(gradient(layers, found, towards)), low, high)
    return None
