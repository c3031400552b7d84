"""Schemas, partition specs, sort orders and properties that change while the rows stay."""

from datetime import datetime

import pyarrow as pa
from harness.compare import ordered, rows
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortDirection
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, TruncateTransform
from pyiceberg.types import (
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "place", StringType(), doc="where it was"),
    NestedField(3, "at", TimestampType()),
    NestedField(4, "weight", FloatType()),
    identifier_field_ids=[1],
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("place", pa.string()),
        pa.field("at", pa.timestamp("us")),
        pa.field("weight", pa.float32()),
    ]
)
MARCH = datetime(2026, 3, 1, 12)
APRIL = datetime(2026, 4, 2, 12)


def three_rows() -> pa.Table:
    return pa.table(
        {"id": [1, 2, 3], "place": ["oslo", "rome", "oslo"], "at": [MARCH, APRIL, APRIL], "weight": [0.5, 1.5, None]},
        schema=ARROW,
    )


def test_schema_evolution(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    table.append(three_rows())
    start = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.update_column("weight", DoubleType())
        update.rename_column("place", "town")
        update.delete_column("at")
        update.add_column("tags", ListType(10, StringType(), element_required=False))
        update.add_column("size", StructType(NestedField(11, "width", LongType(), required=False)))
    with table.update_schema() as update:
        update.move_first("town")
        update.add_column(("size", "height"), LongType(), doc="in metres")
        update.add_column("names", MapType(20, StringType(), 21, LongType(), value_required=False))

    table = iceberg.load_table(f"{namespace}.events")
    assert [field.name for field in table.schema().fields] == ["town", "id", "weight", "tags", "size", "names"]
    assert table.schema().find_field("size.height").doc == "in metres"
    assert table.schema().find_field("id").field_type == LongType()
    assert table.schema().find_field("town").doc == "where it was"
    assert table.schema().identifier_field_ids == [1]
    assert len(table.schemas()) == 3
    table.append(
        pa.table(
            {
                "town": ["bern"],
                "id": pa.array([2**40], pa.int64()),
                "weight": pa.array([2.5], pa.float64()),
                "tags": [["a", "b"]],
                "size": [{"width": 1, "height": 2}],
                "names": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
            },
            schema=table.schema().as_arrow(),
        )
    )
    assert rows(table, "id", "town", "weight") == [
        (1, "oslo", 0.5), (2, "rome", 1.5), (3, "oslo", None), (2**40, "bern", 2.5),
    ]  # fmt: skip
    assert rows(table, "tags", row_filter="id > 3") == [(["a", "b"],)]
    assert rows(table, "size", row_filter="id > 3") == [({"width": 1, "height": 2},)]
    # The old snapshot is read with the schema that it was written with.
    assert rows(table, "id", "place", "at", snapshot_id=start)[0] == (1, "oslo", MARCH)


def test_schema_changed_and_changed_back(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    with table.update_schema() as update:
        update.rename_column("place", "town")
    with table.update_schema() as update:
        update.rename_column("town", "place")
    table = iceberg.load_table(f"{namespace}.events")
    assert table.schema().schema_id == 0, "an equal schema was stored twice"
    assert len(table.schemas()) == 2


def test_partition_evolution(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    table.append(three_rows())
    with table.update_spec() as update:
        update.add_field("at", MonthTransform(), "at_month")
    table.append(three_rows())
    with table.update_spec() as update:
        update.remove_field("at_month")
        update.add_field("id", BucketTransform(4), "id_bucket")
        update.add_field("place", TruncateTransform(2), "place_start")
    table.append(three_rows())
    with table.update_spec() as update:
        update.rename_field("place_start", "place_prefix")

    table = iceberg.load_table(f"{namespace}.events")
    expected = ordered((row["id"], row["place"]) for row in three_rows().to_pylist())
    assert rows(table, "id", "place") == ordered(expected * 3)
    assert rows(table, "id", row_filter="place = 'rome'") == [(2,)] * 3
    assert rows(table, "id", row_filter=f"at < '{APRIL.isoformat()}'") == [(1,)] * 3
    assert len(table.specs()) == 4
    assert [field.name for field in table.spec().fields] == ["id_bucket", "place_prefix"]
    assert table.last_partition_id() == 1002
    # Each file was written under the spec of its time.
    assert {entry["spec_id"] for entry in table.inspect.partitions().to_pylist()} == {0, 1, 2}


def test_partitioned_and_sorted_create(iceberg, namespace):
    spec = PartitionSpec(
        PartitionField(source_id=3, field_id=1000, transform=DayTransform(), name="at_day"),
        PartitionField(source_id=2, field_id=1001, transform=IdentityTransform(), name="place"),
    )
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, partition_spec=spec)
    with table.update_sort_order() as update:
        update.asc("id", IdentityTransform())
        update.desc("place", IdentityTransform())
    table.append(three_rows())
    table = iceberg.load_table(f"{namespace}.events")
    assert [field.name for field in table.spec().fields] == ["at_day", "place"]
    assert [(field.source_id, field.direction) for field in table.sort_order().fields] == [
        (1, SortDirection.ASC),
        (2, SortDirection.DESC),
    ]
    partitions = [tuple(row["partition"].values()) for row in table.inspect.partitions().to_pylist()]
    assert ordered(partitions) == [
        (MARCH.date(), "oslo"), (APRIL.date(), "oslo"), (APRIL.date(), "rome"),
    ]  # fmt: skip


def test_dynamic_partition_overwrite(iceberg, namespace):
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="place"))
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, partition_spec=spec)
    table.append(three_rows())
    table.dynamic_partition_overwrite(
        pa.table({"id": [9], "place": ["oslo"], "at": [APRIL], "weight": [9.0]}, schema=ARROW)
    )
    assert rows(iceberg.load_table(f"{namespace}.events"), "id", "place") == [(2, "rome"), (9, "oslo")]


def test_staged_create(iceberg, namespace):
    name = f"{namespace}.events"
    with iceberg.create_table_transaction(name, schema=SCHEMA, properties={"made": "in one"}) as create:
        assert not iceberg.table_exists(name)
        with create.update_schema() as update:
            update.add_column("note", StringType())
        create.append(three_rows().append_column("note", pa.array(["a", "b", "c"])))
    table = iceberg.load_table(name)
    assert rows(table, "id", "note") == [(1, "a"), (2, "b"), (3, "c")]
    assert table.properties["made"] == "in one"


def test_properties(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, properties={"a": "1", "b": "2"})
    with table.transaction() as change:
        change.set_properties({"b": "3", "c": "ü \u0001"})
        change.remove_properties("a")
    properties = iceberg.load_table(f"{namespace}.events").properties
    assert {key: properties.get(key) for key in "abc"} == {"a": None, "b": "3", "c": "ü \u0001"}


def test_format_versions(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, properties={"format-version": "1"})
    assert table.format_version == 1
    table.append(three_rows())
    with table.transaction() as change:
        change.upgrade_table_version(2)
    table = iceberg.load_table(f"{namespace}.events")
    assert table.format_version == 2
    table.append(three_rows())
    assert rows(table, "id") == [(1,), (1,), (2,), (2,), (3,), (3,)]
    third = iceberg.create_table(f"{namespace}.third", schema=SCHEMA, properties={"format-version": "3"})
    assert third.format_version == 3
    with third.transaction() as change:
        change.set_properties(still="three")
    assert iceberg.load_table(f"{namespace}.third").format_version == 3


def test_row_changes(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    table.append(three_rows())
    table.overwrite(pa.table({"id": [7], "place": ["bern"], "at": [MARCH], "weight": [7.0]}, schema=ARROW), "id >= 3")
    assert rows(table, "id") == [(1,), (2,), (7,)]
    change = pa.table({"id": [2, 8], "place": ["nice", "york"], "at": [MARCH] * 2, "weight": [0.0] * 2}, schema=ARROW)
    outcome = table.upsert(change)
    assert (outcome.rows_updated, outcome.rows_inserted) == (1, 1)
    table.delete("place = 'oslo'")
    assert rows(iceberg.load_table(f"{namespace}.events"), "id", "place") == [(2, "nice"), (7, "bern"), (8, "york")]
