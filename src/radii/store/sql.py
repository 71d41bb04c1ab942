"""The store: an SQLite file by default, a PostgreSQL database by URL; each finished unit is committed at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, delete, select

from radii.errors import Contradiction, StoreError
from radii.store import _claims, _examine, _put, _read, schema
from radii.store._examine import Examined, Missing
from radii.store._log import damaged
from radii.store._put import Alarm
from radii.store._read import Info, Progress
from radii.store._register import Register
from radii.store._rows import chunks, insert_new, upsert
from radii.store.engine import address, connect, guarded, shown
from radii.store.record import ClassifierRecord, RadiusRecord, ReachRecord, Record, Unit, canonical
from radii.store.select import Selection


def open_store(where: str | Path | Store, *, create: bool = True, timeout: float = 30.0) -> Store:
    """The store at a path, an sqlite:/// or a postgresql:// URL; an open store is given back as it is.

    With `create` a missing store is made. `timeout` is how many seconds to wait for a lock or a server.

    >>> with open_store(":memory:") as store:
    ...     store.info().rows["radii"]
    0
    """
    return where if isinstance(where, Store) else Store(where, create=create, timeout=timeout)


class EmptyStoreError(StoreError):
    """There is a database, with nothing in it."""


class Store:
    """Finished units by content key; safe for several processes at once. Open it with `open_store`."""

    def __init__(self, where: str | Path, *, create: bool = True, timeout: float = 30.0) -> None:
        url = address(where)
        self.where = shown(url)
        file = url.get_backend_name() == "sqlite" and url.database
        if file and not create and not Path(file).exists():
            raise StoreError(f"store {self.where}: expected an existing file, got none; check the name")
        if file and damaged(Path(file)):
            raise StoreError(
                f"store {self.where}: expected a write-ahead log that can be read, got damaged bytes in {file}-wal; "
                "restore copies of both files, or move the log away to go on with what the store held before it"
            )
        self.url = url
        self._register = Register()
        self._engine = connect(url, timeout, create)
        try:
            with self.read() as connection:
                ready = schema.is_current(connection)
                if not ready and not create and schema.is_empty(connection):
                    raise EmptyStoreError(
                        f"store {self.where}: expected a radii store, got an empty database; "
                        "check the name, or fill it with `radii run`"
                    )
            if not ready:
                with self.write() as connection:
                    schema.prepare(connection, f"store {self.where}")
        except BaseException:
            self._engine.dispose()
            raise

    def __repr__(self) -> str:
        return f"Store({self.where!r})"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection in a read transaction: everything read in it is of one moment."""
        with guarded(self.where), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a write transaction: all of it is stored, or nothing."""
        try:
            with guarded(self.where), self._engine.connect() as bare:
                connection = bare.execution_options(write=True)
                with connection.begin():
                    yield connection
        except BaseException:
            self._register.forget()
            raise

    # What is to be done

    def plan(self, study: str, units: Sequence[Unit], body: Mapping[str, Any] | None = None) -> None:
        """Record what a study consists of, so that its progress can be seen; replaces its earlier plan."""
        with self.write() as connection:
            row = {"name": study, "body": canonical(dict(body or {}))}
            upsert(connection, schema.studies, [row], key="name")
            number = connection.execute(select(schema.studies.c.id).where(schema.studies.c.name == study)).scalar_one()
            connection.execute(delete(schema.plans).where(schema.plans.c.studies_id == number))
            for part in chunks(dict.fromkeys(self._register.units(connection, units))):
                rows = [{"studies_id": number, "units_id": unit} for unit in part]
                insert_new(connection, schema.plans, rows)

    def pending(self, units: Iterable[Unit], *, retry_before: float | None = None) -> list[Unit]:
        """The units without a result, in their order.

        With `retry_before` (seconds since 1970) also those finished before it and left unsolved, or left open
        under another budget.
        """
        with self.read() as connection:
            return _claims.pending(connection, units, retry_before)

    def claim(
        self, units: Sequence[Unit], owner: str, *, seconds: float = 600.0, retry_before: float | None = None
    ) -> list[Unit]:
        """Those of the pending units that `owner` may now compute: nobody else gets them for that many seconds."""
        who = _claims.Claimant(owner=owner, seconds=seconds, retry_before=retry_before)
        with self.write() as connection:
            return _claims.claim(connection, self._register, units, who)

    def renew(self, owner: str, *, seconds: float = 600.0) -> int:
        """Prolong the owner's claims; call it well before they run out. Says how many there are."""
        with self.write() as connection:
            return _claims.renew(connection, owner, seconds)

    def release(self, owner: str) -> int:
        """Give back the owner's claims; says how many there were."""
        with self.write() as connection:
            return _claims.release(connection, owner)

    def owners(self) -> list[str]:
        """Everybody who holds a claim, run out or not."""
        with self.read() as connection:
            return _claims.owners(connection)

    # What was found out

    def put(self, record: Record) -> None:
        """Store a finished unit for good and drop its claim.

        An earlier result for the unit is narrowed, costs added. If the two cannot both be right the earlier one
        stays, an alarm is stored, and `Contradiction` is raised.
        """
        for alarm in self.put_many([record]):
            raise Contradiction(f"{alarm.classifier}, {alarm.dataset} input {alarm.index}: {alarm.message}")

    def put_many(self, records: Sequence[Record]) -> list[Alarm]:
        """Store finished units in one transaction; what contradicts the store is given back, not raised."""
        with self.write() as connection:
            return _put.put(connection, self._register, records)

    def records(self, where: Selection | None = None) -> Iterator[RadiusRecord]:
        """The selected radii with witnesses, evidence and queries; a row that cannot be read is a `StoreError`."""
        yield from (record for record in self.results(where) if isinstance(record, RadiusRecord))

    def reaches(self, where: Selection | None = None) -> Iterator[ReachRecord]:
        """The selected reaches with their witnesses; a row that cannot be read is a `StoreError`."""
        yield from (record for record in self.results(where) if isinstance(record, ReachRecord))

    def results(self, where: Selection | None = None) -> Iterator[Record]:
        """The selected radii and reaches; a row that cannot be read is a `StoreError`."""
        for item in self.examine(where):
            if item.record is None or item.faults:
                raise StoreError(
                    f"store {self.where}: {item.classifier}, {item.dataset} input {item.index}: {item.faults[0]}; "
                    "`radii check` lists every such row"
                )
            yield item.record

    def examine(self, where: Selection | None = None, evidence: bool = True) -> Iterator[Examined]:
        """The selected rows, a few hundred at a time, each with its record or with what is wrong with it.

        Without `evidence` it is neither read nor looked at: it can be most of a store.
        """
        with self.read() as connection:
            numbers = _read.numbers(connection, where)
        for some in chunks(numbers):
            with self.read() as connection:
                parts = list(_examine.portions(connection, some)) if evidence else [some]
            for part in parts:
                with self.read() as connection:
                    found = _examine.examined(connection, part, evidence)
                yield from found

    def missing(self) -> list[Missing]:
        """Planned units that have no result, and units that had one once."""
        with self.read() as connection:
            return _examine.missing(connection)

    def planned_keys(self, study: str) -> list[str]:
        """The keys of a study's units, finished or not."""
        with self.read() as connection:
            return _examine.planned_keys(connection, study)

    def get(self, key: str) -> RadiusRecord | None:
        """The radius of one unit, or None."""
        return next(self.records(Selection(key=(key,))), None)

    def finish_times(self, keys: Iterable[str]) -> dict[str, float]:
        """When units were finished (seconds since 1970), by key; units without a result are left out."""
        with self.read() as connection:
            return {key: time for part in chunks(keys) for key, time in _read.finish_times(connection, part).items()}

    def classifiers(self) -> list[ClassifierRecord]:
        """Every classifier in the store, by name."""
        with self.read() as connection:
            return _read.classifiers(connection)

    def studies(self) -> dict[str, dict[str, Any]]:
        """The studies in the store: name and the body given to `plan`."""
        with self.read() as connection:
            return _read.studies(connection)

    def planned(self, study: str) -> list[Unit]:
        """The units of a study, finished or not; budgets are not part of a plan."""
        with self.read() as connection:
            parts = [_examine.units(connection, part) for part in chunks(_read.planned(connection, study))]
        return [unit for part in parts for unit in part.values()]

    def alarms(self) -> list[Alarm]:
        """Every contradiction met so far."""
        with self.read() as connection:
            return _read.alarms(connection)

    def progress(self, study: str | None = None) -> list[Progress]:
        """How far every classifier of the study (or of the whole store) is."""
        with self.read() as connection:
            return _read.progress(connection, study)

    def costs(self) -> dict[tuple[str, tuple[str, ...]], tuple[int, float]]:
        """Finished units and their CPU seconds, by classifier and (property, norm, search, verifier, measure)."""
        with self.read() as connection:
            return _read.costs(connection)

    def finished_since(self, moment: float, study: str | None = None) -> int:
        """How many units were finished at that moment (seconds since 1970) or later."""
        with self.read() as connection:
            return _read.finished_since(connection, study, moment)

    def state(self) -> tuple[float | None, ...]:
        """Numbers that change whenever a result, a plan or an alarm is added."""
        with self.read() as connection:
            return _read.state(connection)

    def info(self) -> Info:
        """What the store holds and how large it is."""
        with self.read() as connection:
            return _read.info(connection, self.where)

    # The store itself

    def vacuum(self) -> int:
        """Give unused space back to the disk; says how many bytes were freed."""
        before = self.info().size_bytes
        with guarded(self.where), self._engine.connect() as bare:
            if self._engine.dialect.name == "postgresql":
                bare.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")
            else:
                connection = bare.execution_options(plain=True)
                connection.exec_driver_sql("VACUUM")
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        return max(0, before - self.info().size_bytes)

    def close(self) -> None:
        """Close every connection; safe to call twice."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
