"""The checker: from a classifier and a piece of evidence alone, whether the claimed radius is proven. No search.

It shares with the engine the graph of the network and nothing else: its own lowering, intervals, lines, ball and
rounding. The trees, slopes and multipliers in the file say where to look; what is found there is computed anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.errors import FormatError, InputError
from radii.evidence.ball import Ball
from radii.evidence.claim import Claim
from radii.evidence.file import Arrays, unpack
from radii.evidence.float32 import float32_error, refuse
from radii.evidence.lowering import Lowered, lowered
from radii.evidence.network import Rows
from radii.evidence.proof import CUT_SPLIT, Forest, Sparse, lowest
from radii.evidence.walk import Walk
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance


def read_claim(data: bytes) -> Claim:
    """What a piece of evidence claims; nothing is checked but its digest and its form."""
    return Claim.read(unpack(data)[0])


def check(data: bytes, classifier: Classifier) -> Claim:
    """The claim of a piece of evidence, once it is proven; an `InputError` says in one line why it is refused."""
    body, arrays = unpack(data)
    claim = Claim.read(body)
    if claim.classifier != classifier.fingerprint:
        raise InputError(
            f"evidence: expected a classifier with fingerprint {claim.classifier}, got {classifier.fingerprint}"
        )
    instance = _instance(claim, arrays, classifier)
    net = lowered_of(classifier)
    if claim.arithmetic == "float32":
        refuse(classifier.graph, net.curved)
    try:
        with torch.no_grad():
            low = _margins(claim, instance, arrays, classifier, net)
    except (IndexError, RuntimeError, OverflowError) as error:
        raise FormatError(f"evidence: expected trees that fit the network, got {error}") from None
    if not bool((low > 0).all()):
        raise InputError(
            f"evidence: expected a proof of radius {claim.radius!r}, got one that leaves "
            f"{int((~(low > 0)).sum())} of {len(low)} margins open"
        )
    return claim


def lowered_of(classifier: Classifier) -> Lowered:
    """The classifier's lowered graph, made once."""
    return classifier.once("lowered by the checker", lambda: lowered(classifier.graph))


def _instance(claim: Claim, arrays: Arrays, classifier: Classifier) -> Instance:
    x = arrays.get("x")
    if x is None or x.dtype != np.float32 or x.size != classifier.size or not np.isfinite(x).all():
        raise FormatError(f"evidence: expected an input of {classifier.size} finite numbers")
    instance = Instance(x.reshape(classifier.input_shape), claim.label)
    if instance.fingerprint != claim.instance:
        raise InputError("evidence: expected the input and label that it names, got others")
    return instance


def ball_of(instance: Instance, claim: Claim, size: float, classifier: Classifier) -> Ball:
    """The ball of a size around the instance, in the claim's norm."""
    center = torch.from_numpy(instance.x.astype(np.float64).ravel())
    return Ball.around(center, claim.norm, size, classifier.domain)


def margin_rows(claim: Claim, classes: int, net: Lowered) -> tuple[Tensor, Tensor]:
    """Rows over the outputs and what each must exceed.

    Where outputs are cut to [l, h], cut(a) > cut(b) means a > b, a > l and b < h.
    """
    unit = torch.eye(classes, dtype=torch.float64)
    targets = list(Classification(claim.target).targets(classes, claim.label))
    rows = [unit[claim.label] - unit[t] for t in targets]
    shift = [0.0] * len(rows)
    if math.isfinite(net.low):
        rows, shift = [*rows, unit[claim.label]], [*shift, net.low]
    if math.isfinite(net.high):
        rows, shift = [*rows, *(-unit[targets])], [*shift, *([-net.high] * len(targets))]
    return torch.stack(rows), torch.tensor(shift, dtype=torch.float64)


def asked(walk: Walk, claim: Claim, classes: int, net: Lowered) -> Rows:
    """The margins as rows; for float32 arithmetic, less what its rounding can take from them."""
    wanted, shift = margin_rows(claim, classes, net)
    rows = walk.outputs(wanted)
    if claim.arithmetic == "float32":
        error = float32_error(walk.network)
        if not bool(error.isfinite().all()):
            raise InputError("evidence: expected outputs that stay finite in float32, got some that may overflow")
        rows = rows.minus((wanted.abs() @ error) * (1.0 + 2.0**-20))
    return rows.minus(shift)


def _margins(claim: Claim, instance: Instance, arrays: Arrays, classifier: Classifier, net: Lowered) -> Tensor:
    walk = Walk(net.graph, ball_of(instance, claim, claim.ball, classifier))
    for number, relu in enumerate(walk.relus):
        undecided = _index(arrays, f"{number}/undecided", net.graph.nodes[relu].size, increasing=True)
        values = _index(arrays, f"{number}/neuron", net.graph.nodes[relu].size)
        layer = walk.open(relu, torch.cat([undecided, values]))
        if claim.version > 1:
            hull = _index(arrays, f"{number}/ends", 2 * net.graph.nodes[relu].size, increasing=True)
            if not bool(torch.isin(hull // 2, layer.which).all()):
                raise FormatError(f"evidence: expected {number}/ends to name neurons that are in question")
            walk.tighten(layer, hull)
        if len(values):
            side = _index(arrays, f"{number}/side", 2)
            threshold = _floats(arrays, f"{number}/threshold")
            if len(side) != len(values) or len(threshold) != len(values):
                raise FormatError("evidence: expected a side and a threshold for every neuron")
            walk.prove(layer, values, side, threshold, read_forest(arrays, f"{number}/", walk.network.width, claim))
        if bool((~torch.isin(layer.undecided, undecided)).any()):
            raise InputError("evidence: expected all other neurons to have one sign, got some that are undecided")
        walk.close(layer, undecided)
    rows = asked(walk, claim, classifier.classes, net)
    ball = ball_of(instance, claim, claim.radius, classifier)
    return lowest(walk.neurons, rows, read_forest(arrays, "margin/", walk.network.width, claim), ball)


def read_forest(arrays: Arrays, prefix: str, width: int, claim: Claim) -> Forest:
    """A group's trees from the arrays of a file, every index checked."""
    alpha, alpha2 = (_slopes(arrays, prefix + name, width) for name in ("alpha", "alpha2"))
    return Forest(
        kind=_index(arrays, f"{prefix}kind", CUT_SPLIT + 1),
        split=_index(arrays, f"{prefix}split", width),
        alpha=alpha,
        beta=_sparse(arrays, f"{prefix}beta", len(alpha), width),
        hull=_flags(arrays, f"{prefix}hull", len(alpha), claim),
        alpha2=alpha2,
        beta2=_sparse(arrays, f"{prefix}beta2", len(alpha2), width),
        hull2=_flags(arrays, f"{prefix}hull2", len(alpha2), claim),
        cut=_sparse(arrays, f"{prefix}cut", None, 2 * width),
    )


def _flags(arrays: Arrays, name: str, count: int, claim: Claim) -> Tensor:
    if claim.version == 1:
        return torch.zeros(count, dtype=torch.bool)
    flags = _index(arrays, name, 2)
    if len(flags) != count:
        raise FormatError(f"evidence: expected {name} to say yes or no {count} times, got {len(flags)}")
    return flags == 1


def _sparse(arrays: Arrays, name: str, rows: int | None, places: int) -> Sparse:
    count, place = _index(arrays, f"{name}/count", 2**31), _index(arrays, f"{name}/place", places)
    value = _floats(arrays, f"{name}/value")
    if (rows is not None and len(count) != rows) or int(count.sum()) != len(place) or len(place) != len(value):
        raise FormatError(f"evidence: expected {name} to have as many pairs as it counts")
    return Sparse(count, place, value)


def _array(arrays: Arrays, name: str, dimensions: int = 1) -> NDArray[Any]:
    if name not in arrays or arrays[name].ndim != dimensions:
        raise FormatError(f"evidence: expected {name} with {dimensions} dimensions, got none or another")
    return arrays[name]


def _index(arrays: Arrays, name: str, below: int, increasing: bool = False) -> Tensor:
    array = _array(arrays, name)
    whole = array.dtype in (np.dtype("|u1"), np.dtype("<i4"))
    if not whole or (array.size and (array.min() < 0 or array.max() >= below)):
        raise FormatError(f"evidence: expected {name} to hold numbers from 0 to {below - 1}")
    if increasing and array.size and not (np.diff(array) > 0).all():
        raise FormatError(f"evidence: expected {name} to increase")
    return torch.from_numpy(array.astype(np.int64))


def _floats(arrays: Arrays, name: str) -> Tensor:
    array = _array(arrays, name)
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise FormatError(f"evidence: expected {name} to hold finite numbers")
    return torch.from_numpy(array.astype(np.float64))


def _slopes(arrays: Arrays, name: str, width: int) -> Tensor:
    array = _array(arrays, name, 2)
    if array.dtype != np.uint8 or array.shape[1] != width:
        raise FormatError(f"evidence: expected {name} to hold {width} slopes per row")
    return torch.from_numpy(array.copy())
