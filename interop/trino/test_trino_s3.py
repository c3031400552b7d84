"""A warehouse in S3, read and written by Trino's own file system. It is given the endpoint and keys."""

import pytest
from harness import clients
from harness.compare import eventually

pytestmark = pytest.mark.moorage_only


def test_life_of_a_table_in_s3(engine, sql, lake_server, lake_files, numbers):
    lake = engine.add(clients.trino_catalog(lake_server))
    namespace = f"trino{next(numbers)}"
    table = f"{lake}.{namespace}.events"
    sql(f"CREATE SCHEMA {lake}.{namespace}")
    sql(f"CREATE TABLE {table} (id INTEGER, place VARCHAR) WITH (partitioning = ARRAY['place'])")
    sql(f"INSERT INTO {table} SELECT id, 'a b/%' FROM UNNEST(sequence(1, 3)) AS s (id)")
    sql(f"INSERT INTO {table} VALUES (4, 'rome')")
    sql(f"DELETE FROM {table} WHERE id = 2")
    assert sql(f"SELECT * FROM {table}") == [(1, "a b/%"), (3, "a b/%"), (4, "rome")]
    files = f'{lake}.{namespace}."events$files"'
    assert sql(f"SELECT content, sum(record_count) FROM {files} GROUP BY content") == [(0, 4), (1, 1)]
    sql(f"ALTER TABLE {table} EXECUTE optimize")
    assert sql(f"SELECT content, sum(record_count) FROM {files} GROUP BY content") == [(0, 3)]
    sql(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    sql(f"ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert sql(f"SELECT * FROM {table}") == [(1, "a b/%"), (3, "a b/%"), (4, "rome")]

    location = f"s3://lake/warehouse/{namespace}"
    assert len(lake_files.list(location)) > 8
    sql(f"DROP TABLE {table}")
    assert eventually(lambda: lake_files.list(location) == [])
    sql(f"DROP SCHEMA {lake}.{namespace}")
