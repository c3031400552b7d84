"""Tables whose schema, properties and rows change."""

import pyarrow as pa
import pytest
from harness.compare import rows
from py4j.protocol import Py4JJavaError
from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform


@pytest.fixture
def table(sql, namespace):
    """A table of three rows."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT NOT NULL, place STRING COMMENT 'where', weight FLOAT, moment TIMESTAMP(6))")
    sql(
        f"INSERT INTO {name} VALUES (1, 'oslo', CAST(0.5 AS FLOAT), TIMESTAMP '2026-03-01 12:00:00'), "
        "(2, 'rome', CAST(1.5 AS FLOAT), TIMESTAMP '2026-04-02 12:00:00')"
    )
    sql(f"INSERT INTO {name} (id, place) VALUES (3, 'oslo')")
    return name


def test_schema_evolution(sql, iceberg, table):
    sql(f"ALTER TABLE {table} MODIFY (id BIGINT NOT NULL, weight DOUBLE)")
    sql(f"ALTER TABLE {table} RENAME place TO town")
    sql(f"ALTER TABLE {table} DROP moment")
    sql(f"ALTER TABLE {table} ADD (tags ARRAY<STRING>, size ROW<width INT, height INT> COMMENT 'in metres')")
    sql(f"ALTER TABLE {table} MODIFY town STRING COMMENT 'the town' FIRST")
    sql(f"ALTER TABLE {table} MODIFY tags ARRAY<STRING> AFTER id")
    sql(f"ALTER TABLE {table} ADD PRIMARY KEY (id) NOT ENFORCED")
    sql(f"INSERT INTO {table} VALUES ('bern', {2**40}, ARRAY['a', 'b'], CAST(2.5 AS DOUBLE), ROW(1, 2))")
    columns = "town, id, CAST(tags AS STRING), weight, size.width, size.height"
    assert sql(f"SELECT {columns} FROM {table}") == [
        ("bern", 2**40, "[a, b]", 2.5, 1, 2),
        ("oslo", 1, None, 0.5, None, None),
        ("oslo", 3, None, None, None, None),
        ("rome", 2, None, 1.5, None, None),
    ]
    assert sql(f"SELECT town FROM {table} WHERE weight > 1 AND id < 10") == [("rome",)]
    schema = iceberg.load_table(table).schema()
    assert [field.name for field in schema.fields] == ["town", "id", "tags", "weight", "size"]
    assert schema.identifier_field_names() == {"id"}
    assert {field.name: field.doc for field in schema.fields if field.doc} == {"town": "the town", "size": "in metres"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("MODIFY id STRING", "Cannot change column type: id: int -> string"),
        ("MODIFY weight FLOAT NOT NULL", "Cannot change column nullability"),
        ("ADD again INT NOT NULL", "cannot add required column without a default value"),
        ("DROP absent", "does not exist in the base table"),
        ("ADD place INT", "already exists in the table"),
    ],
)
def test_changes_that_are_refused(sql, iceberg, table, change, fault):
    """What Iceberg refuses leaves the table as it was."""
    before = iceberg.load_table(table).metadata
    with pytest.raises(Py4JJavaError, match=fault):
        sql(f"ALTER TABLE {table} {change}")
    assert iceberg.load_table(table).metadata == before


def test_properties(sql, iceberg, table):
    sql(f"ALTER TABLE {table} SET ('owner.team' = 'a', 'read.split.target-size' = '1000')")
    sql(f"ALTER TABLE {table} RESET ('read.split.target-size')")
    properties = iceberg.load_table(table).properties
    assert properties["owner.team"] == "a"
    assert "read.split.target-size" not in properties
    sql(f"ALTER TABLE {table} SET ('format-version' = '3')")
    assert iceberg.load_table(table).format_version == 3
    sql(f"INSERT INTO {table} (id, place) VALUES (4, 'bern')")
    assert sql(f"SELECT id FROM {table}") == [(1,), (2,), (3,), (4,)]
    with pytest.raises(Py4JJavaError, match="downgrade"):
        sql(f"ALTER TABLE {table} SET ('format-version' = '2')")


def test_location(sql, iceberg, catalog_server, table):
    beside = iceberg.load_table(table).location() + "_elsewhere"
    sql(f"ALTER TABLE {table} SET ('location' = '{beside}')")
    sql(f"INSERT INTO {table} (id, place) VALUES (4, 'bern')")
    assert sql(f"SELECT id FROM {table}") == [(1,), (2,), (3,), (4,)]
    assert catalog_server.files.list(f"{beside}/data")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_overwrite(sql, iceberg, namespace, version):
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INT, place STRING) PARTITIONED BY (place) WITH ('format-version' = '{version}')")
    sql(f"INSERT INTO {table} VALUES (1, 'oslo'), (2, 'rome')")
    # The partitions for which there are rows.
    sql(f"INSERT OVERWRITE {table} VALUES (3, 'oslo')")
    assert sql(f"SELECT * FROM {table}") == [(2, "rome"), (3, "oslo")]
    # The partition that is named.
    sql(f"INSERT OVERWRITE {table} PARTITION (place = 'rome') SELECT 4")
    assert sql(f"SELECT * FROM {table}") == [(3, "oslo"), (4, "rome")]
    sql(f"INSERT INTO {table} PARTITION (place = 'bern') SELECT id FROM {table}")
    expected = [(3, "bern"), (3, "oslo"), (4, "bern"), (4, "rome")]
    assert sql(f"SELECT * FROM {table}") == expected
    assert rows(iceberg.load_table(table)) == expected
    assert [snapshot.summary.operation.value for snapshot in iceberg.load_table(table).snapshots()] == [
        "append", "overwrite", "overwrite", "append",
    ]  # fmt: skip


def test_overwrite_whole_table(sql, table):
    sql(f"INSERT OVERWRITE {table} (id, place) SELECT id * 10, place FROM {table} WHERE id < 3")
    assert sql(f"SELECT id, place FROM {table}") == [(10, "oslo"), (20, "rome")]


def test_no_row_changes(sql, table):
    """Iceberg takes no DELETE, UPDATE or TRUNCATE from Flink."""
    for statement in (f"DELETE FROM {table} WHERE id = 1", f"UPDATE {table} SET place = 'x'", f"TRUNCATE TABLE {table}"):
        with pytest.raises(Py4JJavaError, match="has not yet implemented|hasn't implemented"):
            sql(statement)
    assert sql(f"SELECT id FROM {table}") == [(1,), (2,), (3,)]


def test_types(sql, iceberg, namespace):
    table = f"{namespace}.types"
    sql(
        f"CREATE TABLE {table} (a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g DATE, h TIMESTAMP_LTZ(6), "
        "i TIMESTAMP(6), j STRING, k BYTES, l ROW<x INT>, m ARRAY<INT>, n MAP<STRING, INT>, o TIME, p BINARY(2), q TINYINT, r SMALLINT)"
    )
    sql(
        f"INSERT INTO {table} VALUES (true, 1, 2, CAST(3.5 AS FLOAT), 4.5, 5.125, DATE '2026-01-02', "
        "TO_TIMESTAMP_LTZ(1767323045678, 3), TIMESTAMP '2026-01-02 03:04:05.678901', 'ü', X'0102', ROW(1), ARRAY[1, 2], "
        "MAP['a', 1], TIME '03:04:05', X'0304', CAST(6 AS TINYINT), CAST(7 AS SMALLINT))"
    )
    names = "abcdefghijklmnopqr"
    [row] = sql(f"SELECT {', '.join(f'CAST({name} AS STRING)' for name in names)} FROM {table}")
    assert row == (
        "TRUE", "1", "2", "3.5", "4.5", "5.125", "2026-01-02", "2026-01-02 03:04:05.678000", "2026-01-02 03:04:05.678901",
        "ü", "\x01\x02", "(1)", "[1, 2]", "{a=1}", "03:04:05", "\x03\x04", "6", "7",
    )  # fmt: skip
    types = {field.name: str(field.field_type) for field in iceberg.load_table(table).schema().fields}
    assert " ".join(types[name] for name in "hiopqr") == "timestamptz timestamp time fixed[2] int int"
    arrow = iceberg.load_table(table).scan().to_arrow().to_pylist()
    assert (arrow[0]["b"], str(arrow[0]["f"]), arrow[0]["k"], arrow[0]["m"]) == (1, "5.125", b"\x01\x02", [1, 2])


def test_rows_cross_engines(sql, iceberg, namespace):
    """What Flink writes PyIceberg reads, and the other way round, over changes of the schema by both."""
    sql(f"CREATE TABLE {namespace}.events (id BIGINT, place STRING) PARTITIONED BY (place)")
    sql(f"INSERT INTO {namespace}.events VALUES (1, 'oslo')")
    table = iceberg.load_table(f"{namespace}.events")
    table.append(pa.table({"id": [2, 3], "place": ["rome", "oslo"]}))
    with table.update_schema() as update:
        update.rename_column("id", "number")
    sql(f"ALTER TABLE {namespace}.events ADD note STRING")
    sql(f"INSERT INTO {namespace}.events VALUES (4, 'bern', 'four')")
    iceberg.load_table(f"{namespace}.events").delete("number = 3")
    expected = [(1, "oslo", None), (2, "rome", None), (4, "bern", "four")]
    assert sql(f"SELECT * FROM {namespace}.events") == expected
    assert rows(iceberg.load_table(f"{namespace}.events")) == expected


def test_partitions_of_others(sql, iceberg, namespace):
    """Partitions by a transform, which Flink has no words for: it writes and reads them."""
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INT, place STRING, moment TIMESTAMP(6))")
    sql(f"INSERT INTO {table} VALUES (1, 'oslo', TIMESTAMP '2026-03-01 12:00:00')")
    with iceberg.load_table(table).update_spec() as update:
        update.add_field("id", BucketTransform(4), "part")
        update.add_field("place", TruncateTransform(2), "start")
        update.add_field("moment", DayTransform(), "day")
    sql(f"INSERT INTO {table} VALUES (2, 'rome', TIMESTAMP '2026-03-02 12:00:00'), (3, 'oslo', TIMESTAMP '2026-03-01 12:00:00')")
    assert sql(f"SELECT id FROM {table} WHERE moment < TIMESTAMP '2026-03-02 00:00:00'") == [(1,), (3,)]
    assert sql(f"SELECT spec_id, SUM(record_count) FROM {namespace}.`events$files` GROUP BY spec_id") == [(0, 1), (1, 2)]
    assert rows(iceberg.load_table(table), "id", "place") == [(1, "oslo"), (2, "rome"), (3, "oslo")]
