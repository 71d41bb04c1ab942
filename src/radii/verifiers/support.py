"""What each verifier takes, as it says itself: asked before anything runs, and the table of `radii verifiers`."""

from __future__ import annotations

import re

from radii.decide import Decider, Measurer, Supporter, supports
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import PIECEWISE
from radii.problem import L1, L2, LINF, Norm, Property
from radii.problem.property import kinds
from radii.verifiers.catalogue import everyone
from radii.verifiers.command import Command

_SIGNS = {LINF: "L∞", L2: "L2", L1: "L1"}


def refuse_unsupported(
    decider: Decider, classifier: Classifier, property: Property, norm: Norm, *, direct: bool
) -> None:
    """Raises `InputError` when the decider says that it cannot answer, naming verifiers that could.

    `direct` is whether radii are measured, which only some verifiers do, rather than asked for over a grid.
    """
    why = supports(decider, property, norm, classifier.operators)
    if why:
        name = re.split(r"[^\w-]", decider.identity)[0]
        raise InputError(
            f"{classifier.name}: expected a verifier for property {property} in norm {norm.name}, got {name}: {why}; "
            + _advice(property, norm, classifier.operators, direct)
        )


def _advice(property: Property, norm: Norm, operators: tuple[str, ...], direct: bool) -> str:
    able = {
        name: decider
        for name, (decider, here) in everyone().items()
        if here and isinstance(decider, Supporter) and not supports(decider, property, norm, operators)
    }
    measuring = [name for name, decider in able.items() if isinstance(decider, Measurer) or not direct]
    asking = [name for name in able if name not in measuring]
    said = [f"use verifier {_or(measuring)}"] if measuring else []
    said += [f"{'or ' if said else 'use '}{_or(asking)} with a grid of ε"] if asking else []
    return ", ".join(said) or "no verifier that is here takes it (see radii verifiers)"


def _or(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def support_table() -> dict[str, dict[str, str]]:
    """Verifier → property → the norms in which it takes it ("" where none), for piecewise-linear networks.

    A verifier of another package that does not say has "?".
    """
    program = Command("program {network} {query}")
    deciders = {name: decider for name, (decider, _) in everyone().items()} | {"command": program}
    return {name: {kind: _norms(decider, cls) for kind, cls in kinds().items()} for name, decider in deciders.items()}


def _norms(decider: Decider, cls: type[Property]) -> str:
    if not isinstance(decider, Supporter):
        return "?"
    try:
        property = cls.example()
    except (InputError, TypeError):
        return "?"
    return " ".join(sign for norm, sign in _SIGNS.items() if not supports(decider, property, norm, PIECEWISE))
