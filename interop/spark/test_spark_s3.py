"""A warehouse in S3, read and written by Spark. It is given keys; everything else it learns from the server."""

import pytest
from harness import clients
from harness.compare import eventually

pytestmark = pytest.mark.moorage_only


@pytest.mark.parametrize("io", [{}, {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}], ids=["default", "S3FileIO"])
def test_life_of_a_table_in_s3(spark, sql, lake_server, lake_files, numbers, io):
    lake = f"lake{next(numbers)}"
    clients.add_spark_catalog(spark, lake, lake_server, **io)
    namespace = f"of_{lake}"
    table = f"{lake}.{namespace}.events"
    sql(f"CREATE NAMESPACE {lake}.{namespace}")
    sql(
        f"CREATE TABLE {table} (id INT, place STRING) USING iceberg PARTITIONED BY (place) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'a b/%' FROM range(1, 4)")
    sql(f"INSERT INTO {table} VALUES (4, 'rome')")
    sql(f"DELETE FROM {table} WHERE id = 2")
    assert sql(f"SELECT * FROM {table}") == [(1, "a b/%"), (3, "a b/%"), (4, "rome")]
    assert sql(f"SELECT count(*) FROM {table}.delete_files") == [(1,)]
    sql(f"CALL {lake}.system.rewrite_data_files(table => '{namespace}.events', options => map('rewrite-all', 'true'))")
    assert sql(f"SELECT * FROM {table}") == [(1, "a b/%"), (3, "a b/%"), (4, "rome")]

    location = f"s3://lake/warehouse/{namespace}/events"
    assert len(lake_files.list(location)) > 8
    sql(f"DROP TABLE {table} PURGE")
    assert eventually(lambda: lake_files.list(location) == [])
    sql(f"DROP NAMESPACE {lake}.{namespace}")
