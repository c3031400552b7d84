"""A warehouse in S3, read and written by DuckDB."""

import pytest
from harness import clients

pytestmark = pytest.mark.moorage_only


def test_life_of_a_table_in_s3(lake_server, lake_files):
    with clients.duckdb_connection(lake_server) as duck:
        duck.execute("CREATE SCHEMA ice.duck")
        duck.execute("CREATE TABLE ice.duck.events AS SELECT range AS id FROM range(5)")
        duck.execute("INSERT INTO ice.duck.events VALUES (10)")
        duck.execute("DELETE FROM ice.duck.events WHERE id = 2")
        assert duck.execute("SELECT count(*), sum(id) FROM ice.duck.events").fetchall() == [(5, 18)]
    assert any("/data/" in key for key in lake_files.list("s3://lake/warehouse/duck"))
