"""The PostgreSQL server of the store's tests, for commands."""

from tests.store.conftest import fresh_database as fresh_database
