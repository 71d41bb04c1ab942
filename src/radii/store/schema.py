"""The tables of a store, their version, and how an older store becomes a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    inspect,
    select,
)

from radii.errors import StoreError

VERSION = 3
_LOCK = 0x7261646969  # any number that only radii uses

# From a version to the next: each step takes an open transaction.
Steps = Mapping[int, Callable[[Connection], None]]


def _add_reaches(connection: Connection) -> None:
    """Version 2 keeps reaches beside radii; the rows of version 1 are radii, and stay as they are."""
    kind = {"epsilon": "DOUBLE PRECISION", "start": "DOUBLE PRECISION", "resolution": "DOUBLE PRECISION"}
    for table, name in (("settings", "epsilon"), *(("radii", name) for name in REACH)):
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {name} {kind.get(name, 'TEXT')}")


def _add_percent(connection: Connection) -> None:
    """Version 3 keeps relative tolerances; those of older rows are absolute, and stay as they are."""
    connection.exec_driver_sql("ALTER TABLE radii ADD COLUMN tolerance_percent DOUBLE PRECISION")


REACH = ("extremum", "start", "resolution", "unit")  # what a reach has beyond a radius; empty in rows of radii
STEPS: Steps = {1: _add_reaches, 2: _add_percent}

metadata = MetaData()


def _parent(table: str, *, key: bool = False, index: bool = False) -> Column[int]:
    link = ForeignKey(f"{table}.id", ondelete="CASCADE")
    return Column(f"{table}_id", Integer, link, primary_key=key, index=index, nullable=False, autoincrement=False)


about = Table("radii_store", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

classifiers = Table(
    "classifiers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("path", Text, nullable=False),
    Column("metadata", Text, nullable=False),
)
instances = Table(
    "instances",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("split", Text, nullable=False),
    Column("index", Integer, nullable=False),
    Column("label", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    UniqueConstraint("dataset", "split", "index", "fingerprint"),
)
settings = Table(
    "settings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("property", Text, nullable=False),
    Column("target", Integer),
    Column("property_parameters", Text, nullable=False),
    Column("norm", Text, nullable=False),
    Column("search", Text, nullable=False),
    Column("search_parameters", Text, nullable=False),
    Column("verifier", Text, nullable=False),
    Column("identity", Text, nullable=False),
    Column("seed", BigInteger),
    Column("epsilon", Float(53)),  # of the ball whose reach is asked; none for a radius
)
units = Table(
    "units",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    _parent("classifiers"),
    _parent("instances"),
    _parent("settings"),
)
environments = Table(
    "environments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
)
radii = Table(
    "radii",
    metadata,
    _parent("units", key=True),
    Column("lower", Float(53)),
    Column("upper", Float(53)),
    Column("status", Text, nullable=False),
    Column("tolerance", Float(53), nullable=False),
    Column("limit", Float(53)),
    Column("misclassified", Boolean, nullable=False),
    Column("critical_termination", Boolean, nullable=False),
    Column("prediction", Integer),
    Column("proof", Text),
    Column("arithmetic", Text),
    Column("tool", Text),
    Column("note", Text, nullable=False),
    Column("queries", Integer, nullable=False),
    Column("timeouts", Integer, nullable=False),
    Column("memory_errors", Integer, nullable=False),
    Column("cancelled", Integer, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("cpu_seconds", Float(53), nullable=False),
    Column("wall_seconds", Float(53), nullable=False),
    Column("peak_memory", BigInteger, nullable=False),
    Column("budget", Text, nullable=False),
    Column("environments_id", Integer, ForeignKey("environments.id")),
    Column("finished", Float(53), nullable=False),
    Column("extremum", Text),  # of a reach: greatest or least; none for a radius
    Column("start", Float(53)),
    Column("resolution", Float(53)),
    Column("unit", Text),
    Column("tolerance_percent", Float(53)),  # of the upper end, where the tolerance of a radius is relative
)
queries = Table(
    "queries",
    metadata,
    Column("id", Integer, primary_key=True),
    _parent("units", index=True),
    Column("epsilon", Float(53), nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text),
    Column("detail", Text, nullable=False),
    Column("decider", Text, nullable=False),
    Column("cpu_seconds", Float(53), nullable=False),
    Column("wall_seconds", Float(53), nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("peak_memory", BigInteger, nullable=False),
)
witnesses = Table(
    "witnesses",
    metadata,
    _parent("units", key=True),
    Column("x", LargeBinary, nullable=False),
    Column("outputs", LargeBinary, nullable=False),
    Column("distance", Float(53), nullable=False),
    Column("prediction", Integer, nullable=False),
)
evidence = Table(
    "evidence",
    metadata,
    _parent("units", key=True),
    Column("kind", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
claims = Table(
    "claims",
    metadata,
    _parent("units", key=True),
    Column("owner", Text, nullable=False),
    Column("expires", Float(53), nullable=False),
)
studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
)
plans = Table(
    "plans",
    metadata,
    _parent("studies", key=True),
    _parent("units", key=True),
)
alarms = Table(
    "alarms",
    metadata,
    Column("id", Integer, primary_key=True),
    _parent("units"),
    Column("message", Text, nullable=False),
    Column("raised", Float(53), nullable=False),
)
Index("radii_status", radii.c.status)


def prepare(connection: Connection, where: str) -> None:
    """Create the tables of a new store, or bring an older one up to date; a newer or foreign one is refused."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))  # two processes may both find it empty
    there = set(inspect(connection).get_table_names())
    if not there:
        metadata.create_all(connection)
        connection.execute(about.insert().values(name="schema", value=str(VERSION)))
        return
    if about.name not in there:
        raise StoreError(f"{where}: expected a radii store, got a database with other tables; give another name")
    migrate(connection, where, STEPS)


def is_current(connection: Connection) -> bool:
    """Whether nothing has to be prepared; a reader of a finished store need not write to it."""
    return inspect(connection).has_table(about.name) and version_of(connection) == VERSION


def is_empty(connection: Connection) -> bool:
    """Whether the database has no tables at all."""
    return not inspect(connection).get_table_names()


def version_of(connection: Connection) -> int:
    """The schema version that the store was written with."""
    found = connection.execute(select(about.c.value).where(about.c.name == "schema")).scalar_one_or_none()
    try:
        return int(str(found))
    except ValueError:
        raise StoreError(f"store: expected the number of its schema, got {found!r:.80}; restore a copy") from None


def migrate(connection: Connection, where: str, steps: Steps, newest: int = VERSION) -> None:
    """Take the store step by step from its version to the newest, inside the caller's transaction."""
    found = version_of(connection)
    if found > newest:
        raise StoreError(
            f"{where}: expected a store of schema {newest} or older, got schema {found}; upgrade radii to read it"
        )
    for old in range(found, newest):
        steps[old](connection)
        connection.execute(about.update().where(about.c.name == "schema").values(value=str(old + 1)))
