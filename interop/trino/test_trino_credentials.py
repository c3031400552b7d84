"""Trino with credentials, and one Trino that asks for each of its users."""

import json
import time

import pytest
from harness.compare import ordered
from harness.secured import LIFETIME_SECONDS, curl, trino_catalog
from trino.exceptions import TrinoQueryError

pytestmark = pytest.mark.moorage_only

# The alias of an issuer whose subjects are Trino's users. None of its tokens is ever shown: nobody asks for its keys.
ALIAS = "staff"
ISSUER = f"{ALIAS}=http://127.0.0.1:9/staff,audience=moorage"


@pytest.fixture(scope="session")
def staff_server():
    """A server that knows Trino's users by an issuer of theirs."""
    from harness.secured import Secured

    with Secured(["--issuer", ISSUER]) as running:
        yield running


def life_of_a_table(engine, running, name: str, pause: float) -> None:
    key = running.engineer(f"trino-{name}")
    catalog = engine.add(trino_catalog(running, key))
    engine.execute(f"CREATE SCHEMA {catalog}.trino_{name}")
    engine.execute(f"CREATE TABLE {catalog}.trino_{name}.events (id BIGINT)")
    engine.execute(f"INSERT INTO {catalog}.trino_{name}.events VALUES (1)")
    time.sleep(pause)
    engine.execute(f"INSERT INTO {catalog}.trino_{name}.events VALUES (2)")
    assert ordered(engine.execute(f"SELECT id FROM {catalog}.trino_{name}.events")) == [(1,), (2,)]
    # Trino's views read with the rights of their owner, who may replace them.
    for column in ["id", "id + 1 AS id"]:
        engine.execute(f"CREATE OR REPLACE VIEW {catalog}.trino_{name}.seen AS SELECT {column} FROM {catalog}.trino_{name}.events")
    assert ordered(engine.execute(f"SELECT id FROM {catalog}.trino_{name}.seen")) == [(2,), (3,)]


@pytest.mark.smoke
def test_credential(engine, secured_server):
    life_of_a_table(engine, secured_server, "smoke", 0)


def test_token_ends(engine, secured_server):
    life_of_a_table(engine, secured_server, "ends", 2 * LIFETIME_SECONDS)


def test_two_users(engine, staff_server):
    """Ann owns a table and Bob may read another one of hers: each sees through one Trino what is theirs."""
    key = staff_server.key("trino")
    staff_server.command("grant", "impersonate", "on", "server", "to", key.principal)
    # Trino asks in its own name what the warehouse is; this shows it that and nothing in it.
    staff_server.command("grant", "delegate", "on", "warehouse", "default", "to", key.principal)
    put = curl(
        staff_server, f"/management/v1/principals/{key.principal}", "-X", "PUT", "-H", "Content-Type: application/json",
        "-H", f"Authorization: Bearer {staff_server.admin.text}", "-d", json.dumps({"speaks-for": ALIAS}),
    )  # fmt: skip
    assert put.endswith("\n200"), put
    staff_server.command("grant", "create", "on", "warehouse", "default", "to", f"{ALIAS}:ann")
    catalog = engine.add(trino_catalog(staff_server, key, **{"iceberg.rest-catalog.session": "USER"}))

    def ann(statement: str) -> list[tuple]:
        return ordered(engine.execute(statement.replace("@", catalog), user="ann"))

    def bob(statement: str) -> list[tuple]:
        return ordered(engine.execute(statement.replace("@", catalog), user="bob"))

    ann("CREATE SCHEMA @.harbour")
    ann("CREATE TABLE @.harbour.ships AS SELECT 1 AS id")
    ann("CREATE TABLE @.harbour.wages AS SELECT 100 AS id")
    with pytest.raises(TrinoQueryError):
        bob("SELECT * FROM @.harbour.ships")
    staff_server.command("grant", "read", "on", "table", "default.harbour.ships", "to", f"{ALIAS}:bob")
    assert bob("SELECT * FROM @.harbour.ships") == [(1,)]
    for refused in ["SELECT * FROM @.harbour.wages", "INSERT INTO @.harbour.ships VALUES (2)", "DROP TABLE @.harbour.ships"]:
        with pytest.raises(TrinoQueryError):
            bob(refused)
    assert ann("SELECT * FROM @.harbour.wages") == [(100,)]
