"""DuckDB with credentials: a key as a token, and as a credential that it exchanges."""

import time

import pytest
from harness import clients
from harness.secured import LIFETIME_SECONDS, attach_duckdb, duckdb_secrets

pytestmark = [pytest.mark.moorage_only]


def life_of_a_table(running, way: str, pause: float = 0) -> None:
    key = running.engineer(f"duckdb-{way}{'-ends' if pause else ''}")
    schema = f"duckdb_{way}{'_ends' if pause else ''}"
    with clients.duckdb_with_extensions() as connection:
        attach_duckdb(connection, running, duckdb_secrets(running, key)[way])
        connection.execute(f"CREATE SCHEMA ice.{schema}")
        connection.execute(f"CREATE TABLE ice.{schema}.events AS SELECT 1 AS id")
        time.sleep(pause)
        connection.execute(f"INSERT INTO ice.{schema}.events VALUES (2)")
        assert sorted(connection.execute(f"SELECT id FROM ice.{schema}.events").fetchall()) == [(1,), (2,)]


@pytest.mark.smoke
@pytest.mark.parametrize("way", ["token", "credential"])
def test_ways(secured_server, way):
    life_of_a_table(secured_server, way)


def test_token_ends(secured_server):
    life_of_a_table(secured_server, "credential", LIFETIME_SECONDS + 1)
