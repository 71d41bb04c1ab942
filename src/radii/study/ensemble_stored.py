"""Games that a store holds: found again from its plans, networks and inputs, without any search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radii.ensembles.game import Game
from radii.errors import InputError
from radii.problem import Norm
from radii.store import Selection, Store
from radii.study.ensemble import EnsembleRun
from radii.study.ensemble_file import of_interest
from radii.study.settings import RadiusSettings
from radii.study.sources import Source, inputs

KIND = "ensemble"  # the key that sets the body of an ensemble's study apart


def ensembles(store: Store) -> dict[str, dict[str, Any]]:
    """The ensembles in a store, by the names of their studies."""
    return {name: body for name, body in store.studies().items() if KIND in body}


def stored_game(store: Store, name: str, body: Mapping[str, Any]) -> Game:
    """The game of a stored ensemble; networks or inputs that are gone are an `InputError` that names them."""
    said = body[KIND]
    try:
        sources = tuple(Source(**one) for one in said["members"])
        settings = RadiusSettings(norm=Norm.of(said["norm"]), tolerance=said["tolerance"], limit=said["limit"])
    except (TypeError, KeyError) as error:
        raise InputError(f"ensemble {name}: expected a plan that this version knows, got {error}") from None
    members = tuple(one.load(check=False) for one in sources)
    instances = of_interest(inputs(body["data"][0], body["seed"]).instances, members, body["data"][0])
    run = EnsembleRun(members, instances, settings, store, epsilons=tuple(said["epsilon"]), sources=sources)
    return run.recall(store.records(Selection(study=(name,))))
