"""Which of the stored radii and reaches are meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, select

from radii.store import schema


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Conditions that must all hold; an empty tuple asks nothing. `measure` may be radius or reach.

    >>> Selection(classifier=("mnist-net",), status=("open", "unsolved"))  # doctest: +ELLIPSIS
    Selection(...)
    """

    study: tuple[str, ...] = ()
    classifier: tuple[str, ...] = ()
    dataset: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    label: tuple[int, ...] = ()
    property: tuple[str, ...] = ()
    target: tuple[int, ...] = ()
    norm: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    verifier: tuple[str, ...] = ()
    seed: tuple[int, ...] = ()
    status: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    epsilon: tuple[float, ...] = ()
    measure: tuple[str, ...] = ()


COLUMNS: dict[str, Any] = {
    "classifier": schema.classifiers.c.name,
    "dataset": schema.instances.c.dataset,
    "split": schema.instances.c.split,
    "label": schema.instances.c.label,
    "property": schema.settings.c.property,
    "target": schema.settings.c.target,
    "norm": schema.settings.c.norm,
    "search": schema.settings.c.search,
    "verifier": schema.settings.c.verifier,
    "seed": schema.settings.c.seed,
    "status": schema.radii.c.status,
    "key": schema.units.c.key,
    "epsilon": schema.settings.c.epsilon,
    "measure": case((schema.settings.c.epsilon.is_(None), "radius"), else_="reach"),
}


def chosen(columns: list[Any], where: Selection, finished: bool = True) -> Select[Any]:
    """A query for columns of the selected units in a stable order; without `finished` also units not yet done."""
    return matching(columns, where, finished).order_by(
        schema.classifiers.c.name,
        schema.instances.c.dataset,
        schema.instances.c.split,
        schema.instances.c.index,
        schema.settings.c.id,
        schema.units.c.id,
    )


def matching(columns: list[Any], where: Selection, finished: bool = True) -> Select[Any]:
    """The same in any order."""
    source = (
        schema.units.join(schema.classifiers)
        .join(schema.instances)
        .join(schema.settings)
        .join(schema.radii, schema.radii.c.units_id == schema.units.c.id, isouter=not finished)
    )
    query = select(*columns).select_from(source)
    for name, column in COLUMNS.items():
        if wanted := getattr(where, name):
            query = query.where(column.in_(wanted))
    if where.study:
        plan = select(schema.plans.c.units_id).join(schema.studies).where(schema.studies.c.name.in_(where.study))
        query = query.where(schema.units.c.id.in_(plan))
    return query
