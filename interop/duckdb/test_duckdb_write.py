"""What DuckDB writes, one table at a time."""

import tomllib
from pathlib import Path

import pytest
from harness import clients
from harness.compare import rows

REFUSED = tomllib.loads((Path(__file__).parent / "refused.toml").read_text())["refused"]


def test_life_of_a_table(query, iceberg, namespace):
    name = f"ice.{namespace}.made"
    query(f"CREATE TABLE {name} (id INTEGER, place VARCHAR)")
    query(f"INSERT INTO {name} VALUES (1, 'oslo'), (2, 'rome'), (3, 'bern')")
    query(f"ALTER TABLE {name} ADD COLUMN note VARCHAR")
    query(f"UPDATE {name} SET note = 'two' WHERE id = 2")
    query(f"DELETE FROM {name} WHERE id = 3")
    assert query(f"SELECT * FROM {name}") == [(1, "oslo", None), (2, "rome", "two")]
    assert rows(iceberg.load_table(f"{namespace}.made")) == [(1, "oslo", None), (2, "rome", "two")]
    query(f"ALTER TABLE {name} RENAME TO renamed")
    assert iceberg.list_tables(namespace) == [(namespace, "renamed")]
    query(f"DROP TABLE ice.{namespace}.renamed")
    assert iceberg.list_tables(namespace) == []


def test_schemas(query, iceberg, namespace):
    query(f"CREATE SCHEMA ice.{namespace}_made")
    assert iceberg.namespace_exists(f"{namespace}_made")
    query(f"DROP SCHEMA ice.{namespace}_made")
    assert not iceberg.namespace_exists(f"{namespace}_made")


def test_create_as_select(query, iceberg, namespace, table):
    """Writes manifests below <location>/metadata of a staged create, before its commit."""
    query(f"CREATE TABLE ice.{namespace}.copy AS SELECT * FROM ice.{namespace}.events WHERE id > 1")
    assert rows(iceberg.load_table(f"{namespace}.copy")) == [(2, "rome"), (3, "oslo")]


def test_transaction_on_one_table(query, iceberg, namespace):
    name = f"ice.{namespace}.made"
    query("BEGIN")
    query(f"CREATE TABLE {name} (id INTEGER)")
    query(f"INSERT INTO {name} VALUES (1)")
    query(f"INSERT INTO {name} VALUES (2)")
    assert not iceberg.table_exists(f"{namespace}.made")
    query("COMMIT")
    assert rows(iceberg.load_table(f"{namespace}.made")) == [(1,), (2,)]
    query("BEGIN")
    query(f"INSERT INTO {name} VALUES (3)")
    query("ROLLBACK")
    assert rows(iceberg.load_table(f"{namespace}.made")) == [(1,), (2,)]


def test_conflict_is_an_error(catalog_server, query, iceberg, namespace, table):
    """DuckDB does not try again: a row that another writer added first makes its commit fail."""
    name = f"ice.{namespace}.events"
    with clients.duckdb_connection(catalog_server) as other:
        query("BEGIN")
        query(f"INSERT INTO {name} VALUES (10, 'lost')")
        other.execute(f"INSERT INTO {name} VALUES (11, 'kept')")
        with pytest.raises(Exception, match="(?i)conflict|has changed|409"):
            query("COMMIT")
    assert rows(iceberg.load_table(f"{namespace}.events"), "id") == [(1,), (2,), (3,), (11,)]


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_refused(query, iceberg, namespace, table, view, case):
    """What DuckDB cannot do here, in its own words; nothing changes."""
    before = iceberg.load_table(f"{namespace}.events").metadata_location
    with pytest.raises(Exception) as fault:
        query(case["statement"].format(namespace=f"ice.{namespace}"))
    assert case["error"] in str(fault.value)
    assert iceberg.load_view(f"{namespace}.seen") == view
    assert iceberg.load_table(f"{namespace}.events").metadata_location == before
