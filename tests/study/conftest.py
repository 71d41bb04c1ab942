"""The PostgreSQL server of the store's tests, for studies."""

from tests.store.conftest import fresh_database as fresh_database
