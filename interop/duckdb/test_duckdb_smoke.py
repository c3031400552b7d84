"""A table of another engine, attached, listed and read."""

import re

import pytest
from harness import clients

pytestmark = pytest.mark.smoke


def test_attach_and_read(query, namespace, table):
    assert query(f"SELECT * FROM ice.{namespace}.events") == [(1, "oslo"), (2, "rome"), (3, "oslo")]
    listed = query("SELECT schema, name, column_names FROM (SHOW ALL TABLES) WHERE database = 'ice'")
    assert (namespace, "events", ["id", "place"]) in listed
    first = table.snapshots()[0].snapshot_id
    assert query(f"SELECT id FROM ice.{namespace}.events AT (VERSION => {first})") == [(1,), (2,)]


@pytest.mark.moorage_only
def test_printed_lines(catalog_server, namespace, table):
    """The line for DuckDB that the server prints when it starts. The extensions come from wheels here."""
    [attach] = re.findall(r"^  (ATTACH .*;)$", catalog_server.log.read_text(), re.M)
    [name] = re.findall(r" AS (\w+) ", attach)
    with clients.duckdb_with_extensions() as connection:
        if catalog_server.files.in_s3:
            clients.duckdb_secret(connection, catalog_server.files)
        connection.execute(attach)
        connection.execute(f"INSERT INTO {name}.{namespace}.events VALUES (4, 'bern')")
        assert connection.execute(f"SELECT count(*) FROM {name}.{namespace}.events").fetchall() == [(4,)]
