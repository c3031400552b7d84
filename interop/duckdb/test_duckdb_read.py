"""What DuckDB reads: its listings, and tables that PyIceberg and Spark wrote and changed."""

import pyarrow as pa
from harness.compare import ordered
from pyiceberg.types import StringType


def test_listings(query, iceberg, namespace, table):
    iceberg.create_namespace((namespace, "inner"))
    iceberg.create_table((namespace, "inner", "deep"), schema=pa.schema([pa.field("x", pa.int32())])).append(
        pa.table({"x": pa.array([7], pa.int32())})
    )
    schemas = query("SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'ice'")
    assert {(namespace,), (f"{namespace}.inner",)} <= set(schemas)
    listed = query("SELECT schema, name FROM (SHOW ALL TABLES) WHERE database = 'ice'")
    assert {(namespace, "events"), (f"{namespace}.inner", "deep")} <= set(listed)
    assert query(f"SHOW TABLES FROM ice.{namespace}") == [("events",)]
    assert query(f"DESCRIBE ice.{namespace}.events") == [
        ("id", "BIGINT", "YES", None, None, None),
        ("place", "VARCHAR", "YES", None, None, None),
    ]
    assert query(f'SELECT * FROM ice."{namespace}.inner".deep') == [(7,)]


def test_views_are_not_listed(query, namespace, table, view):
    assert query(f"SHOW TABLES FROM ice.{namespace}") == [("events",)]
    assert query("SELECT view_name FROM duckdb_views() WHERE database_name = 'ice'") == []


def test_view_of_its_own(query, namespace, table):
    """DuckDB keeps views itself, which may read tables here."""
    query(f"CREATE VIEW memory.main.seen AS SELECT place, count(*) FROM ice.{namespace}.events GROUP BY place")
    assert query("SELECT * FROM memory.main.seen") == [("oslo", 2), ("rome", 1)]


def test_time_travel(query, namespace, table):
    first = table.snapshots()[0]
    name = f"ice.{namespace}.events"
    assert query(f"SELECT id FROM {name} AT (VERSION => {first.snapshot_id})") == [(1,), (2,)]
    moment = f"make_timestamp({first.timestamp_ms * 1000})"
    assert query(f"SELECT id FROM {name} AT (TIMESTAMP => {moment})") == [(1,), (2,)]


def test_rows_of_pyiceberg(query, iceberg, namespace, table):
    with table.update_schema() as update:
        update.rename_column("place", "town")
        update.add_column("note", StringType())
    table.append(pa.table({"id": [4], "town": ["bern"], "note": ["four"]}))
    table.delete("id = 1")
    expected = [(2, "rome", None), (3, "oslo", None), (4, "bern", "four")]
    assert query(f"SELECT id, town, note FROM ice.{namespace}.events") == expected
    assert query(f"SELECT count(*) FROM ice.{namespace}.events WHERE town = 'bern'") == [(1,)]


def test_rows_of_spark(query, spark, namespace):
    """Partitions that changed, and deletes that are merged on read."""
    name = f"{namespace}.events"
    for statement in (
        f"CREATE TABLE {name} (id INT, place STRING) USING iceberg PARTITIONED BY (place) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT), IF(id < 4, 'oslo', 'rome') FROM range(1, 7)",
        f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)",
        f"INSERT INTO {name} VALUES (7, 'bern')",
        f"DELETE FROM {name} WHERE id IN (2, 5)",
    ):
        spark.sql(statement).collect()
    assert spark.sql(f"SELECT count(*) FROM {name}.delete_files").first()[0] > 0
    expected = ordered(spark.sql(f"SELECT * FROM {name}").collect())
    assert query(f"SELECT * FROM ice.{name}") == expected
    assert [row[0] for row in expected] == [1, 3, 4, 6, 7]


def test_sees_what_others_commit(query, namespace, table):
    name = f"ice.{namespace}.events"
    assert query(f"SELECT count(*) FROM {name}") == [(3,)]
    table.append(pa.table({"id": [4], "place": ["bern"]}))
    assert query(f"SELECT count(*) FROM {name}") == [(4,)]
