"""Tables whose schema, partitions and rows change."""

from datetime import datetime

import pytest
from harness import server, shown


@pytest.fixture
def table(sql, namespace):
    """A table of three rows."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT NOT NULL, place STRING COMMENT 'where', at TIMESTAMP_NTZ, weight FLOAT) USING iceberg")
    sql(
        f"INSERT INTO {name} VALUES (1, 'oslo', TIMESTAMP_NTZ'2026-03-01 12:00:00', 0.5), "
        "(2, 'rome', TIMESTAMP_NTZ'2026-04-02 12:00:00', 1.5), (3, 'oslo', TIMESTAMP_NTZ'2026-04-02 12:00:00', NULL)"
    )
    return name


def test_schema_evolution(sql, table):
    sql(f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT")
    sql(f"ALTER TABLE {table} ALTER COLUMN weight TYPE DOUBLE")
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO town")
    sql(f"ALTER TABLE {table} DROP COLUMN at")
    sql(f"ALTER TABLE {table} ADD COLUMNS (size STRUCT<width: INT>, tags ARRAY<STRING> AFTER id)")
    sql(f"ALTER TABLE {table} ADD COLUMN size.height INT COMMENT 'in metres'")
    sql(f"ALTER TABLE {table} ALTER COLUMN town FIRST")
    sql(f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL")
    sql(f"INSERT INTO {table} VALUES ('bern', {2**40}, array('a'), 2.5, named_struct('width', 1, 'height', 2))")
    assert sql(f"SELECT town, id, tags, weight, size FROM {table}") == [
        ("bern", 2**40, ["a"], 2.5, (1, 2)),
        ("oslo", 1, None, 0.5, None),
        ("oslo", 3, None, None, None),
        ("rome", 2, None, 1.5, None),
    ]
    assert sql(f"SELECT town FROM {table} WHERE weight > 1 AND id < 10") == [("rome",)]
    described = {row[0]: row[1:] for row in sql(f"DESCRIBE TABLE {table}")}
    assert described["town"] == ("string", "where")
    assert described["size"][0] == "struct<width:int,height:int>"


def test_partition_evolution(sql, table):
    sql(f"ALTER TABLE {table} ADD PARTITION FIELD months(at)")
    sql(f"INSERT INTO {table} VALUES (4, 'bern', TIMESTAMP_NTZ'2026-05-01 00:00:00', 4)")
    sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD months(at) WITH days(at) AS day")
    sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    sql(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(2, place) AS place_start")
    sql(f"INSERT INTO {table} VALUES (5, 'york', TIMESTAMP_NTZ'2026-06-01 00:00:00', 5)")
    sql(f"ALTER TABLE {table} DROP PARTITION FIELD bucket(4, id)")
    sql(f"ALTER TABLE {table} WRITE ORDERED BY place, id DESC")
    sql(f"INSERT INTO {table} VALUES (6, 'nice', TIMESTAMP_NTZ'2026-07-01 00:00:00', 6)")
    assert sql(f"SELECT id, place FROM {table}") == [
        (1, "oslo"), (2, "rome"), (3, "oslo"), (4, "bern"), (5, "york"), (6, "nice"),
    ]  # fmt: skip
    assert sql(f"SELECT id FROM {table} WHERE at >= TIMESTAMP_NTZ'2026-05-01 00:00:00'") == [(4,), (5,), (6,)]
    written = sql(f"SELECT spec_id, sum(record_count) FROM {table}.files GROUP BY spec_id")
    assert written == [(0, 3), (1, 1), (4, 1), (5, 1)]


def test_hidden_partitioning_and_overwrite(sql, namespace):
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INT, at TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (days(at), bucket(2, id))")
    sql(f"INSERT INTO {table} VALUES (1, TIMESTAMP_NTZ'2026-03-01 12:00:00'), (2, TIMESTAMP_NTZ'2026-03-02 12:00:00')")
    sql(f"INSERT OVERWRITE {table} VALUES (9, TIMESTAMP_NTZ'2026-03-03 12:00:00')")
    assert sql(f"SELECT * FROM {table}") == [(9, datetime(2026, 3, 3, 12))]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
def test_row_changes(sql, catalog_server, namespace, mode, version):
    table = f"{namespace}.events"
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    sql(f"CREATE TABLE {table} (id INT, note STRING) USING iceberg TBLPROPERTIES ('format-version' = '{version}', {modes})")
    # One file of several rows, so that a change touches a part of it.
    sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'old' FROM range(1, 7)")
    sql(f"DELETE FROM {table} WHERE id = 1")
    sql(f"UPDATE {table} SET note = 'updated' WHERE id = 2")
    sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (3, 'merged'), (4, NULL), (7, 'new') AS v (id, note)) s ON t.id = s.id "
        "WHEN MATCHED AND s.note IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET note = s.note "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [(2, "updated"), (3, "merged"), (5, "old"), (6, "old"), (7, "new")]
    assert sql(f"SELECT * FROM {table}") == expected
    deletes = sql(f"SELECT count(*) FROM {table}.delete_files")
    assert (deletes != [(0,)]) == (mode == "merge-on-read")
    if catalog_server.name != server.Reference.name:
        found = shown.answer(catalog_server, table)
        assert sorted(map(tuple, found["rows"])) == expected and found["complete"]
    assert sql(f"SELECT count(*) FROM {table}.snapshots") == [(4,)]


def test_types(sql, namespace):
    table = f"{namespace}.types"
    sql(
        f"CREATE TABLE {table} (a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g DATE, "
        "h TIMESTAMP, i TIMESTAMP_NTZ, j STRING, k BINARY, l STRUCT<x: INT>, m ARRAY<INT>, n MAP<STRING, INT>) USING iceberg"
    )
    sql(
        f"INSERT INTO {table} VALUES (true, 1, 2, 3.5, 4.5, 5.125, DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05.678901', "
        "TIMESTAMP_NTZ'2026-01-02 03:04:05.678901', 'ü', X'0102', named_struct('x', 1), array(1, 2), map('a', 1))"
    )
    [row] = sql(f"SELECT * EXCEPT (g, h) FROM {table}")
    assert [*row[:5], str(row[5]), *row[6:]] == [
        True, 1, 2, 3.5, 4.5, "5.125", datetime(2026, 1, 2, 3, 4, 5, 678901), "ü", bytearray(b"\x01\x02"),
        (1,), [1, 2], {"a": 1},
    ]  # fmt: skip


def test_properties(sql, table):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'a', 'read.split.target-size' = '1000')")
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('read.split.target-size')")
    properties = dict(sql(f"SHOW TBLPROPERTIES {table}"))
    assert properties["owner.team"] == "a"
    assert "read.split.target-size" not in properties
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
    assert dict(sql(f"SHOW TBLPROPERTIES {table}"))["format-version"] == "3"
    sql(f"INSERT INTO {table} VALUES (4, 'bern', NULL, NULL)")
    # Version 3 gives every row an id.
    assert [row[0] for row in sql(f"SELECT _row_id FROM {table} WHERE id = 4")] != [None]
    assert sql(f"SELECT id FROM {table}") == [(1,), (2,), (3,), (4,)]
