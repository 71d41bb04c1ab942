"""Gives every classifier, instance, setting, unit and environment its row, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select, tuple_

from radii.errors import StoreError
from radii.store import schema
from radii.store._rows import CHUNK, chunks, classifier_row, environment_row, insert_new, setting_row, vars_of
from radii.store.record import ClassifierRecord, Environment, InstanceRecord, Unit

_PLACE = ("dataset", "split", "index", "fingerprint")


class Register:
    """Row numbers of what is stored, remembered so that a finished unit costs few statements."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[Any, int]] = {}

    def forget(self) -> None:
        """Drop what is remembered, after a transaction that was rolled back."""
        self._ids.clear()

    def units(self, connection: Connection, units: Sequence[Unit]) -> list[int]:
        """The row numbers of the units in their order; new units are added."""
        known = self._known(connection, schema.units, ("key",), [unit.key for unit in units])
        fresh = {unit.key: unit for unit in units if unit.key not in known}
        if fresh:
            self._add_units(connection, list(fresh.values()))
        known = self._ids[schema.units.name]
        return [known[unit.key] for unit in units]

    def environment(self, connection: Connection, environment: Environment) -> int:
        """The row number of an environment; a new one is added."""
        records = {environment.key: environment}
        return self._rows(connection, schema.environments, ("key",), records, environment_row)[environment.key]

    def _add_units(self, connection: Connection, units: list[Unit]) -> None:
        classifiers = self._classifiers(connection, {u.classifier.fingerprint: u.classifier for u in units})
        places = {_place(u.instance): u.instance for u in units}
        instances = self._rows(connection, schema.instances, _PLACE, places, vars_of)
        asked = {u.setting.key: u.setting for u in units}
        settings = self._rows(connection, schema.settings, ("key",), asked, setting_row)
        for part in chunks(units):
            rows = [
                {
                    "key": unit.key,
                    "classifiers_id": classifiers[unit.classifier.fingerprint],
                    "instances_id": instances[_place(unit.instance)],
                    "settings_id": settings[unit.setting.key],
                }
                for unit in part
            ]
            insert_new(connection, schema.units, rows)
        self._known(connection, schema.units, ("key",), [unit.key for unit in units])

    def _classifiers(self, connection: Connection, records: dict[str, ClassifierRecord]) -> dict[Any, int]:
        table = schema.classifiers
        names = {record.name for record in records.values()}
        for part in chunks(names):
            for row in connection.execute(select(table).where(table.c.name.in_(part))).mappings():
                mine = next(r for r in records.values() if r.name == row["name"])
                if mine.fingerprint != row["fingerprint"]:
                    raise StoreError(
                        f"classifier {mine.name!r} ({mine.path or 'no file'}) has changed since the store was made: "
                        f"expected fingerprint {row['fingerprint'][:12]}, got {mine.fingerprint[:12]}; "
                        "use a new store or give the classifier another name"
                    )
        if len(names) < len(records):
            raise StoreError("classifiers: expected different names for different networks, got one name twice")
        return self._rows(connection, table, ("fingerprint",), records, classifier_row)

    def _rows(
        self,
        connection: Connection,
        table: Table,
        columns: tuple[str, ...],
        records: dict[Any, Any],
        row: Callable[[Any], dict[str, Any]],
    ) -> dict[Any, int]:
        """Row numbers by key; `row` makes the row of a record that is not there yet."""
        known = self._known(connection, table, columns, records)
        missing = [key for key in records if key not in known]
        for part in chunks(missing):
            insert_new(connection, table, [row(records[key]) for key in part])
        return self._known(connection, table, columns, missing) if missing else known

    def _known(
        self, connection: Connection, table: Table, columns: tuple[str, ...], keys: Iterable[Any]
    ) -> dict[Any, int]:
        """What is remembered of the table after a look for the keys that are not."""
        known = self._ids.setdefault(table.name, {})
        key = table.c[columns[0]] if len(columns) == 1 else tuple_(*(table.c[name] for name in columns))
        for part in chunks((key for key in keys if key not in known), CHUNK // len(columns)):
            found = select(table.c.id, *(table.c[name] for name in columns)).where(key.in_(part))
            for number, *values in connection.execute(found):
                known[values[0] if len(columns) == 1 else tuple(values)] = number
        return known


def _place(instance: InstanceRecord) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in _PLACE)
