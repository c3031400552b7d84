"""A table of another engine, attached, listed and read."""

import pytest

pytestmark = pytest.mark.smoke


def test_attach_and_read(query, namespace, table):
    assert query(f"SELECT * FROM ice.{namespace}.events") == [(1, "oslo"), (2, "rome"), (3, "oslo")]
    listed = query("SELECT schema, name, column_names FROM (SHOW ALL TABLES) WHERE database = 'ice'")
    assert (namespace, "events", ["id", "place"]) in listed
    first = table.snapshots()[0].snapshot_id
    assert query(f"SELECT id FROM ice.{namespace}.events AT (VERSION => {first})") == [(1,), (2,)]
