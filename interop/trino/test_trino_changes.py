"""Tables whose schema, partitions and rows change."""

from datetime import date, datetime, time, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from harness.compare import rows
from harness.trino import metadata


@pytest.fixture
def table(sql, namespace):
    """A table of three rows."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INTEGER NOT NULL, place VARCHAR COMMENT 'where', at TIMESTAMP(6), weight REAL)")
    sql(
        f"INSERT INTO {name} VALUES (1, 'oslo', TIMESTAMP '2026-03-01 12:00:00', REAL '0.5'), "
        "(2, 'rome', TIMESTAMP '2026-04-02 12:00:00', REAL '1.5'), (3, 'oslo', TIMESTAMP '2026-04-02 12:00:00', NULL)"
    )
    return name


def test_schema_evolution(sql, iceberg, table):
    sql(f"ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE BIGINT")
    sql(f"ALTER TABLE {table} ALTER COLUMN weight SET DATA TYPE DOUBLE")
    sql(f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL")
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO town")
    sql(f"ALTER TABLE {table} DROP COLUMN at")
    sql(f"ALTER TABLE {table} ADD COLUMN note VARCHAR FIRST")
    sql(f"ALTER TABLE {table} ADD COLUMN tags ARRAY(VARCHAR) AFTER id")
    sql(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS note VARCHAR")
    sql(f"ALTER TABLE {table} DROP COLUMN IF EXISTS at")
    sql(f"INSERT INTO {table} VALUES ('new', {2**40}, ARRAY['a'], 'bern', 2.5)")
    expected = [
        (None, 1, None, "oslo", 0.5),
        (None, 2, None, "rome", 1.5),
        (None, 3, None, "oslo", None),
        ("new", 2**40, ["a"], "bern", 2.5),
    ]
    assert sql(f"SELECT * FROM {table}") == expected
    assert rows(iceberg.load_table(table)) == expected
    assert sql(f"SELECT weight FROM {table} WHERE town = 'rome' AND id < 10") == [(1.5,)]
    assert [row[:2] + row[3:] for row in sql(f"DESCRIBE {table}")] == [
        ("id", "bigint", ""), ("note", "varchar", ""), ("tags", "array(varchar)", ""), ("town", "varchar", "where"), ("weight", "double", ""),
    ]  # fmt: skip
    with pytest.raises(Exception, match="COLUMN_NOT_FOUND"):
        sql(f"ALTER TABLE {table} DROP COLUMN at")
    with pytest.raises(Exception, match="Cannot change column type|Failed to set column type"):
        sql(f"ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE INTEGER")
    assert [len(schema.fields) for schema in iceberg.load_table(table).metadata.schemas] == [4, 4, 4, 4, 4, 3, 4, 5]


def test_nested_schema_evolution(sql, iceberg, namespace):
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INTEGER, size ROW(width INTEGER, deep ROW(x INTEGER)), parts ARRAY(ROW(a INTEGER)))")
    sql(f"INSERT INTO {table} VALUES (1, ROW(10, ROW(100)), ARRAY[ROW(1000)])")
    sql(f"ALTER TABLE {table} ADD COLUMN size.height INTEGER")
    sql(f"ALTER TABLE {table} ADD COLUMN size.deep.y VARCHAR")
    sql(f"ALTER TABLE {table} RENAME COLUMN size.width TO breadth")
    sql(f"ALTER TABLE {table} ALTER COLUMN size.breadth SET DATA TYPE BIGINT")
    sql(f"ALTER TABLE {table} ADD COLUMN parts.element.b INTEGER")
    sql(f"INSERT INTO {table} VALUES (2, ROW({2**40}, ROW(200, 'y'), 5), ARRAY[ROW(2000, 6)])")
    assert sql(f"SELECT * FROM {table}") == [
        (1, (10, (100, None), None), [(1000, None)]),
        (2, (2**40, (200, "y"), 5), [(2000, 6)]),
    ]
    sql(f"ALTER TABLE {table} DROP COLUMN size.deep.x")
    sql(f"ALTER TABLE {table} DROP COLUMN size.height")
    assert sql(f"SELECT size FROM {table} WHERE size.breadth > 10") == [((2**40, ("y",)),)]
    assert [row[1] for row in sql(f"DESCRIBE {table}")] == [
        "integer", "array(row(a integer, b integer))", "row(breadth bigint, deep row(y varchar))",
    ]  # fmt: skip
    assert rows(iceberg.load_table(table), "id", "size") == [
        (1, {"breadth": 10, "deep": {"y": None}}), (2, {"breadth": 2**40, "deep": {"y": "y"}}),
    ]  # fmt: skip


def test_partition_evolution(sql, iceberg, table):
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['month(at)']")
    sql(f"INSERT INTO {table} VALUES (4, 'bern', TIMESTAMP '2026-05-01 00:00:00', REAL '4')")
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['day(at)', 'bucket(id, 4)', 'truncate(place, 2)']")
    sql(f"INSERT INTO {table} VALUES (5, 'york', TIMESTAMP '2026-06-01 00:00:00', REAL '5')")
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['day(at)'], sorted_by = ARRAY['place', 'id DESC']")
    sql(f"INSERT INTO {table} VALUES (6, 'nice', TIMESTAMP '2026-07-01 00:00:00', REAL '6')")
    assert sql(f"SELECT id, place FROM {table}") == [
        (1, "oslo"), (2, "rome"), (3, "oslo"), (4, "bern"), (5, "york"), (6, "nice"),
    ]  # fmt: skip
    assert sql(f"SELECT id FROM {table} WHERE at >= TIMESTAMP '2026-05-01 00:00:00'") == [(4,), (5,), (6,)]
    written = sql(f'SELECT spec_id, sum(record_count) FROM {metadata(table, "files")} GROUP BY spec_id')
    assert written == [(0, 3), (1, 1), (2, 1), (3, 1)]
    loaded = iceberg.load_table(table)
    assert [[str(field.transform) for field in spec.fields] for spec in loaded.metadata.partition_specs] == [
        [], ["month"], ["day", "bucket[4]", "truncate[2]"], ["day"],
    ]  # fmt: skip
    assert [(str(field.direction), field.source_id) for field in loaded.sort_order().fields] == [("ASC", 2), ("DESC", 1)]
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY[]")
    assert iceberg.load_table(table).spec().is_unpartitioned()
    with pytest.raises(Exception, match="Cannot find source column: absent"):
        sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['absent']")


@pytest.mark.parametrize("format", ["PARQUET", "ORC", "AVRO"])
def test_row_changes(sql, iceberg, namespace, format):
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INTEGER, note VARCHAR) WITH (format = '{format}')")
    sql(f"INSERT INTO {table} SELECT id, 'old' FROM UNNEST(sequence(1, 6)) AS s (id)")
    sql(f"DELETE FROM {table} WHERE id = 1")
    sql(f"UPDATE {table} SET note = 'updated' WHERE id = 2")
    merged = sql(
        f"MERGE INTO {table} t USING (VALUES (3, 'merged'), (4, NULL), (7, 'new')) AS s (id, note) ON t.id = s.id "
        "WHEN MATCHED AND s.note IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET note = s.note "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.note)"
    )
    assert merged == [(3,)]
    expected = [(2, "updated"), (3, "merged"), (5, "old"), (6, "old"), (7, "new")]
    assert sql(f"SELECT * FROM {table}") == expected
    files = metadata(table, "files")
    assert sql(f"SELECT content, sum(record_count) FROM {files} GROUP BY content") == [(0, 9), (1, 4)]
    operations = sql(f"SELECT committed_at, operation FROM {metadata(table, 'snapshots')}")
    assert [operation for _, operation in operations] == ["append", "append", "delete", "overwrite", "overwrite"]
    if format == "PARQUET":  # PyIceberg reads position deletes of no other
        assert rows(iceberg.load_table(table)) == expected
    sql(f"TRUNCATE TABLE {table}")
    assert sql(f"SELECT * FROM {table}") == []


def test_delete_of_whole_partitions(sql, namespace):
    """Nothing but metadata is written then."""
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} WITH (partitioning = ARRAY['place']) AS SELECT * FROM (VALUES (1, 'oslo'), (2, 'rome')) AS v (id, place)")
    sql(f"DELETE FROM {table} WHERE place = 'oslo'")
    assert sql(f"SELECT * FROM {table}") == [(2, "rome")]
    assert sql(f"SELECT content, record_count FROM {metadata(table, 'files')}") == [(0, 1)]


def test_format_version_1(sql, iceberg, namespace):
    """Rows of a table of format 1 cannot be changed until it is one of format 2."""
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} WITH (format_version = 1) AS SELECT id FROM UNNEST(sequence(1, 3)) AS s (id)")
    assert iceberg.load_table(table).format_version == 1
    with pytest.raises(Exception, match="require at least format version 2"):
        sql(f"DELETE FROM {table} WHERE id = 2")
    sql(f"ALTER TABLE {table} SET PROPERTIES format_version = 2")
    sql(f"DELETE FROM {table} WHERE id = 2")
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (3,)]


def test_types(sql, iceberg, namespace):
    table = f"{namespace}.types"
    sql(
        f"CREATE TABLE {table} (a BOOLEAN, b INTEGER, c BIGINT, d REAL, e DOUBLE, f DECIMAL(20, 3), g DATE, h TIME(6), "
        "i TIMESTAMP(6), j TIMESTAMP(6) WITH TIME ZONE, k VARCHAR, l VARBINARY, m UUID, n ROW(x INTEGER), o ARRAY(INTEGER), "
        "p MAP(VARCHAR, INTEGER))"
    )
    sql(
        f"INSERT INTO {table} VALUES (true, 1, {2**40}, REAL '3.5', 4.5, DECIMAL '5.125', DATE '2026-01-02', TIME '03:04:05.678901', "
        "TIMESTAMP '2026-01-02 03:04:05.678901', TIMESTAMP '2026-01-02 03:04:05.678901 UTC', 'ü', X'0102', "
        "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59', ROW(1), ARRAY[1, 2], MAP(ARRAY['a'], ARRAY[1]))"
    )
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901)
    scalars = (
        True, 1, 2**40, 3.5, 4.5, Decimal("5.125"), date(2026, 1, 2), time(3, 4, 5, 678901),
        moment, moment.replace(tzinfo=timezone.utc), "ü", b"\x01\x02", UUID("12151fd2-7586-11e9-8f9e-2a86e4085a59"),
    )  # fmt: skip
    assert sql(f"SELECT * FROM {table}") == [(*scalars, (1,), [1, 2], {"a": 1})]
    assert rows(iceberg.load_table(table)) == [(*scalars, {"x": 1}, [1, 2], [("a", 1)])]


def test_comments_and_properties(sql, iceberg, table):
    sql(f"COMMENT ON TABLE {table} IS 'about it'")
    sql(f"COMMENT ON COLUMN {table}.place IS 'town'")
    sql(f"COMMENT ON COLUMN {table}.id IS 'number'")
    loaded = iceberg.load_table(table)
    assert loaded.properties["comment"] == "about it"
    assert [field.doc for field in loaded.schema().fields] == ["number", "town", None, None]
    sql(f"COMMENT ON TABLE {table} IS NULL")
    sql(f"COMMENT ON COLUMN {table}.place IS NULL")
    sql(f"ALTER TABLE {table} SET PROPERTIES format = 'ORC', max_commit_retry = 7")
    loaded = iceberg.load_table(table)
    assert "comment" not in loaded.properties
    assert [field.doc for field in loaded.schema().fields] == ["number", None, None, None]
    assert loaded.properties["write.format.default"] == "ORC"
    found = dict(sql(f"SELECT key, value FROM {metadata(table, 'properties')}"))
    assert found["commit.retry.num-retries"] == "7"
    sql(f"INSERT INTO {table} VALUES (4, 'bern', NULL, NULL)")
    assert sql(f"SELECT file_format, record_count FROM {metadata(table, 'files')}") == [("ORC", 1), ("PARQUET", 3)]


def test_statistics(sql, iceberg, table):
    """They are files of their own, which the table's metadata names."""
    sql(f"ANALYZE {table}")
    distinct = {row[0]: row[2] for row in sql(f"SHOW STATS FOR {table}")}
    assert (distinct["id"], distinct["place"]) == (3, 2)
    [statistics] = iceberg.load_table(table).metadata.statistics
    assert len(statistics.blob_metadata) == 4
    sql(f"ALTER TABLE {table} EXECUTE drop_extended_stats")
    assert iceberg.load_table(table).metadata.statistics == []
