"""The first rows that the management API shows equal PyIceberg's, for random tables.

Each table has a seed. PyIceberg writes it and changes its schema in between. It does not write tables of version 3. MOORAGE_RANDOM_TABLES asks for more tables
than the short form has (make random-rows).
"""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness import shown
from harness.drawn import Drawn
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, NestedField, StringType, StructType

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]

TABLES = int(os.environ.get("MOORAGE_RANDOM_TABLES", "12"))
CODECS = ["zstd", "gzip", "snappy", "uncompressed", "lz4"]


def evolve(drawn: Drawn, table) -> None:
    """Renames, promotes, moves, drops or adds a column."""
    fields = list(table.schema().fields)
    field = drawn.random.choice(fields)
    with table.update_schema() as update:
        match drawn.random.randint(0, 4):
            case 0:
                update.rename_column(field.name, f"{field.name}r")
            case 1:
                wider = {
                    IntegerType: lambda _: LongType(),
                    FloatType: lambda _: DoubleType(),
                    DecimalType: lambda kind: DecimalType(min(38, kind.precision + 3), kind.scale),
                }.get(type(field.field_type))
                if wider and field.field_id != 1:
                    update.update_column(field.name, wider(field.field_type))
            case 2:
                update.move_first(field.name)
            case 3:
                if len(fields) > 2 and field.field_id != 1:
                    update.delete_column(field.name)
            case 4:
                update.add_column(f"a{drawn.random.getrandbits(30)}", drawn.random.choice([LongType(), StringType(), DoubleType()]))
    structs = [f for f in table.schema().fields if isinstance(f.field_type, StructType)]
    if structs and drawn.random.random() < 0.5:
        outer = drawn.random.choice(structs)
        inner = drawn.random.choice(outer.field_type.fields)
        with table.update_schema() as update:
            update.rename_column((outer.name, inner.name), f"{inner.name}r")
            update.add_column((outer.name, f"n{drawn.random.getrandbits(30)}"), StringType())


@pytest.mark.parametrize("seed", range(TABLES))
def test_random_table(iceberg, catalog_server, namespace, seed):
    drawn = Drawn(seed)
    version = drawn.random.choice([1, 2])
    fields = [NestedField(1, "k", LongType(), required=False), *drawn.fields(drawn.random.randint(1, 7))]
    spec = drawn.random.choice(
        [
            UNPARTITIONED_PARTITION_SPEC,
            PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "bucket")),
            PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "same")),
        ]
    )
    name = f"{namespace}.t"
    properties = {"format-version": str(version), "write.parquet.compression-codec": drawn.random.choice(CODECS)}
    table = iceberg.create_table(name, schema=Schema(*fields), partition_spec=spec, properties=properties)
    assert shown.assert_as_pyiceberg(catalog_server, table, name) == 0
    for _ in range(drawn.random.randint(1, 2)):
        rows = drawn.rows(table.schema(), drawn.random.randint(1, 30))
        keys = pa.array([drawn.random.randint(0, 1) for _ in range(rows.num_rows)], pa.int64())
        # Few partitions, because at most five files are read.
        at = rows.schema.get_field_index(table.schema().find_column_name(1))
        rows = rows.set_column(at, rows.schema.field(at), keys)
        table.append(rows)
        shown.assert_as_pyiceberg(catalog_server, table, name)
        for _ in range(drawn.random.randint(0, 2)):
            evolve(drawn, table)
            shown.assert_as_pyiceberg(catalog_server, table, name)
    for snapshot in table.snapshots():
        shown.assert_as_pyiceberg(catalog_server, table, name, snapshot=snapshot.snapshot_id)


def test_position_deletes(iceberg, catalog_server, query, namespace):
    """DuckDB deletes by position. What it deleted is not shown, but in the snapshot before."""
    table = iceberg.create_table(
        f"{namespace}.t",
        schema=Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType())),
        properties={"format-version": "2"},
    )
    table.append(pa.table({"id": range(150), "name": [f"n{i % 7}" for i in range(150)]}))
    query(f"DELETE FROM ice.{namespace}.t WHERE id % 3 = 1")
    query(f"DELETE FROM ice.{namespace}.t WHERE id < 10")
    table = iceberg.load_table(f"{namespace}.t")
    assert table.inspect.delete_files().num_rows > 0
    assert shown.assert_as_pyiceberg(catalog_server, table, f"{namespace}.t") == 93
    assert shown.assert_as_pyiceberg(catalog_server, table, f"{namespace}.t", snapshot=table.snapshots()[0].snapshot_id) == 150


def test_files_of_another_writer(iceberg, catalog_server, namespace):
    """Files without field ids, of many encodings, that were added to a table: they are read by its name mapping."""
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "x", DoubleType()),
        NestedField(4, "tags", ListType(5, LongType(), element_required=False), required=False),
    )  # fmt: skip
    table = iceberg.create_table(f"{namespace}.t", schema=schema)
    rows = pa.table(
        {
            "id": pa.array([*range(40), None], pa.int64()),
            "name": [f"prefix {i}" for i in range(40)] + [None],
            "x": [i / 3 for i in range(41)],
            "tags": pa.array([[i, None] for i in range(40)] + [None], pa.list_(pa.int64())),
        }
    )
    for number, options in enumerate(
        [
            {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT"}},
            {"use_dictionary": False, "column_encoding": {"name": "DELTA_LENGTH_BYTE_ARRAY"}, "data_page_version": "2.0"},
            {"row_group_size": 7, "data_page_size": 64, "write_page_checksum": True, "data_page_version": "2.0"},
        ]
    ):
        path = f"{table.location()}/added-{number}.parquet"
        with table.io.new_output(path).create() as out:
            pq.write_table(rows, out, **options)
        table.add_files([path])
    assert shown.assert_as_pyiceberg(catalog_server, table, f"{namespace}.t") == 123
