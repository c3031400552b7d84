"""A warehouse in S3, read and written by DuckDB."""

import pytest
from harness import clients, s3

pytestmark = pytest.mark.moorage_only


def test_life_of_a_table_in_s3(lake_server, lake_files):
    with clients.duckdb_connection(lake_server, ", ACCESS_DELEGATION_MODE 'none'") as duck:
        duck.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{s3.ACCESS_KEY_ID}', SECRET '{s3.SECRET_ACCESS_KEY}', REGION '{s3.REGION}', "
            f"ENDPOINT '{lake_files.address}', URL_STYLE 'path', USE_SSL false)"
        )
        duck.execute("CREATE SCHEMA ice.duck")
        duck.execute("CREATE TABLE ice.duck.events AS SELECT range AS id FROM range(5)")
        duck.execute("INSERT INTO ice.duck.events VALUES (10)")
        duck.execute("DELETE FROM ice.duck.events WHERE id = 2")
        assert duck.execute("SELECT count(*), sum(id) FROM ice.duck.events").fetchall() == [(5, 18)]
    assert any("/data/" in key for key in lake_files.keys("lake/warehouse/duck"))
