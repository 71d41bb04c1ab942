"""Splits work between processes: a unit is claimed before it is computed, and a claim runs out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from radii.problem import Status
from radii.store import schema
from radii.store._register import Register
from radii.store._rows import chunks
from radii.store.record import Unit, canonical

SKEW = 60.0  # seconds by which clocks of different machines may differ


def pending(connection: Connection, units: Iterable[Unit], retry_before: float | None) -> list[Unit]:
    """The units without a result, in their order.

    With `retry_before` also those finished before that time and left unsolved, or left open under another budget.
    """
    found: list[Unit] = []
    table, now = schema.radii, clock(connection)
    for part in chunks(units):
        known = select(schema.units.c.key, table.c.status, table.c.budget, table.c.finished).join_from(
            schema.units, table
        )
        rows = connection.execute(known.where(schema.units.c.key.in_([unit.key for unit in part])))
        done = {key: rest for key, *rest in rows}
        found += [unit for unit in part if unit.key not in done or _again(unit, (retry_before, now), *done[unit.key])]
    return found


def _again(unit: Unit, times: tuple[float | None, float], status: str, budget: str, finished: float) -> bool:
    retry_before, now = times
    # A result from the future was stored while a clock was ahead; it counts as an old one.
    if retry_before is None or retry_before <= finished <= now + SKEW:
        return False
    return status == Status.UNSOLVED or (status == Status.OPEN and budget != canonical(dict(unit.budget)))


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """Who claims, for how many seconds, and whether finished units may be tried again (see `pending`)."""

    owner: str
    seconds: float
    retry_before: float | None = None


def claim(connection: Connection, register: Register, units: Sequence[Unit], who: Claimant) -> list[Unit]:
    """Those of the pending units that the claimant now holds."""
    wanted = pending(connection, units, who.retry_before)
    if not wanted:
        return []
    now = clock(connection)
    table = schema.claims
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    held: dict[str, Unit] = {}
    # One order for everybody: two processes that claim the same units must not wait for each other.
    pairs = sorted(zip(register.units(connection, wanted), wanted, strict=True), key=lambda pair: pair[0])
    for number, unit in pairs:
        insert = dialect.insert(table).values(units_id=number, owner=who.owner, expires=now + who.seconds)
        free = or_(table.c.expires <= now, table.c.owner == who.owner)
        values = {"owner": insert.excluded.owner, "expires": insert.excluded.expires}
        statement = insert.on_conflict_do_update(index_elements=["units_id"], set_=values, where=free)
        if connection.execute(statement.returning(table.c.units_id)).first() is not None:
            held[unit.key] = unit
    # Another process may have finished a unit, and dropped its claim, between our look and our claim.
    still = {unit.key for unit in pending(connection, held.values(), who.retry_before)}
    late = [number for number, unit in pairs if unit.key in held and unit.key not in still]
    if late:
        connection.execute(delete(table).where(table.c.units_id.in_(late), table.c.owner == who.owner))
    return [unit for unit in wanted if unit.key in still]


def renew(connection: Connection, owner: str, seconds: float) -> int:
    """How many claims of the owner were prolonged; a process calls this well before they run out."""
    table = schema.claims
    expires = clock(connection) + seconds
    done = connection.execute(update(table).where(table.c.owner == owner).values(expires=expires))
    return done.rowcount


def release(connection: Connection, owner: str) -> int:
    """How many claims of the owner were given back."""
    return connection.execute(delete(schema.claims).where(schema.claims.c.owner == owner)).rowcount


def owners(connection: Connection) -> list[str]:
    """Everybody who holds a claim."""
    return list(connection.execute(select(schema.claims.c.owner).distinct()).scalars())


def clock(connection: Connection) -> float:
    """Seconds since 1970 by the one clock that all users of the store share."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())
    return time.time()
