"""Facts of a store that a reader must see before any figure: identity, provenance, alarms, evidence, causes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select

from radii.errors import InputError, StoreError
from radii.problem import Proof
from radii.store import schema
from radii.store._put import Alarm
from radii.store._read import Progress
from radii.store._rows import environment_of, sound
from radii.store.record import ClassifierRecord, Environment
from radii.store.sql import Store

_YEAR_10000 = 253402300800.0  # seconds since 1970
_LISTED = "`radii check` lists the rows"


@dataclass(frozen=True)
class Facts:
    """What one store says of itself. Counts are of finished units, or of queries for `reasons`."""

    where: str
    studies: dict[str, dict[str, Any]]
    classifiers: tuple[ClassifierRecord, ...]
    environments: tuple[Environment, ...]
    alarms: tuple[Alarm, ...]
    progress: tuple[Progress, ...]
    proofs: dict[tuple[str, str, str], int]
    evidence: dict[str, int]
    reasons: dict[str, int]
    identities: tuple[str, ...]
    budgets: tuple[str, ...]
    finished: tuple[float, float] | None

    @property
    def claims(self) -> int:
        """How many proven ends rest on an external tool's word alone."""
        return sum(n for (_, arithmetic, _), n in self.proofs.items() if arithmetic == "claim")


def facts(store: Store, studies: Collection[str] = ()) -> Facts:
    """What the store says of itself, read in one moment; plans and progress of these studies, or of all."""
    radii = schema.radii.c
    with store.read() as connection:
        environments = connection.execute(select(schema.environments)).mappings().all()
        proofs = connection.execute(
            select(radii.proof, radii.arithmetic, radii.tool, func.count())
            .where(radii.proof.is_not(None), radii.misclassified.is_(False))
            .where(or_(radii.lower.is_not(None), radii.extremum.is_not(None)))
            .group_by(radii.proof, radii.arithmetic, radii.tool)
        ).all()
        evidence = connection.execute(
            select(schema.evidence.c.kind, func.count()).group_by(schema.evidence.c.kind)
        ).all()
        unknown = select(schema.queries.c.reason, func.count()).where(schema.queries.c.reason.is_not(None))
        reasons = connection.execute(unknown.group_by(schema.queries.c.reason)).all()
        identities = connection.execute(select(schema.settings.c.identity).distinct()).scalars().all()
        budgets = connection.execute(select(radii.budget).distinct()).scalars().all()
        first, last = connection.execute(select(func.min(radii.finished), func.max(radii.finished))).one()
    return Facts(
        where=store.where,
        studies={name: body for name, body in store.studies().items() if not studies or name in studies},
        classifiers=tuple(store.classifiers()),
        environments=tuple(environment_of(sound(row, schema.environments)) for row in environments),
        alarms=tuple(store.alarms()),
        progress=tuple(one for name in studies or (None,) for one in store.progress(name)),
        proofs={_proof(kind, arithmetic, tool): n for kind, arithmetic, tool, n in proofs},
        evidence={row[0]: row[1] for row in evidence},
        reasons={row[0]: row[1] for row in reasons},
        identities=tuple(sorted(filter(None, identities))),
        budgets=tuple(sorted(set(filter(None, budgets)))),
        finished=None if last is None else (moment(first), moment(last)),
    )


def moment(value: Any) -> float:
    """Seconds since 1970, once they are a time that can be written down."""
    if not isinstance(value, (int, float)) or not 0 <= value < _YEAR_10000:
        raise StoreError(f"store: expected finish times in seconds since 1970, got {value!r:.80}; {_LISTED}")
    return float(value)


def _proof(kind: Any, arithmetic: Any, tool: Any) -> tuple[str, str, str]:
    try:
        known = Proof(kind, arithmetic, tool or "")
    except InputError as error:
        raise StoreError(f"store: {error}; {_LISTED}") from None
    return known.kind, known.arithmetic, known.tool
