"""The first rows that the management API shows equal those that Spark and PyIceberg read, for random tables.

Each table has a seed. Spark writes it, deletes, updates and merges rows, and changes its schema in between. MOORAGE_RANDOM_TABLES
asks for more tables than the short form has (make random-rows).
"""

import os

import pyarrow as pa
import pytest
from harness import shown
from harness.drawn import Drawn
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]

TABLES = int(os.environ.get("MOORAGE_RANDOM_TABLES", "6"))
CODECS = ["zstd", "gzip", "snappy", "uncompressed", "lz4_raw"]
# The types by which Spark knows one of Iceberg's. It stores all of a line as the same type.
WORDS = {
    BooleanType: ["BOOLEAN"],
    IntegerType: ["INT", "SMALLINT", "TINYINT"],
    LongType: ["BIGINT"],
    FloatType: ["FLOAT"],
    DoubleType: ["DOUBLE"],
    DateType: ["DATE"],
    TimestampType: ["TIMESTAMP_NTZ"],
    TimestamptzType: ["TIMESTAMP"],
    StringType: ["STRING", "VARCHAR(400)", "CHAR(400)"],
    BinaryType: ["BINARY"],
}
WIDER = {
    IntegerType: lambda _: "BIGINT",
    FloatType: lambda _: "DOUBLE",
    DecimalType: lambda kind: f"DECIMAL({min(38, kind.precision + 3)}, {kind.scale})",
}
# Types and defaults of columns that are added to a table of format 3. A text is read as a value of the type.
DEFAULTS = [
    ("int", 7), ("long", -(2**40)), ("float", 0.25), ("double", -1e300), ("boolean", True), ("string", "ü\n\"none\""),
    ("date", "1960-02-29"), ("timestamp", "1969-12-31T23:59:59.999999"), ("timestamptz", "2026-03-01T12:00:00.000001+00:00"),
    ("decimal(9, 2)", "-12.30"), ("decimal(30, 5)", "1234567890123456789.00001"),
]  # fmt: skip


class SparkDrawn(Drawn):
    """Types that Spark has, as it writes them."""

    def primitive(self):
        precision = self.random.randint(1, 38)
        return self.random.choice([*(kind() for kind in WORDS), DecimalType(precision, self.random.randint(0, precision))])

    def kind(self, depth: int = 0):
        drawn = super().kind(depth)
        return self.primitive() if isinstance(drawn, UUIDType) else drawn

    def inner_required(self) -> bool:
        return False

    def word(self, kind) -> str:
        """A type in SQL."""
        match kind:
            case DecimalType():
                return f"DECIMAL({kind.precision}, {kind.scale})"
            case ListType():
                return f"ARRAY<{self.word(kind.element_type)}>"
            case MapType():
                return f"MAP<{self.word(kind.key_type)}, {self.word(kind.value_type)}>"
            case StructType():
                return f"STRUCT<{', '.join(self.column(f, ':') for f in kind.fields)}>"
        return self.random.choice(WORDS[type(kind)])

    def column(self, field, separator: str = "") -> str:
        return f"{field.name}{separator} {self.word(field.field_type)}{' NOT NULL' * field.required}"


class Table:
    """One table of Spark, changed by chance. Its first column is called k, if nothing has renamed it, and counts the rows."""

    def __init__(self, spark, iceberg, name: str, seed: int):
        self.drawn = SparkDrawn(seed)
        self.chance = self.drawn.random
        self.name, self.rows, self.added = name, 0, 0
        self._spark, self._iceberg = spark, iceberg
        self.version = self.chance.choice([1, 2, 2, 3, 3, 3])
        mode = "copy-on-write" if self.version == 1 else "merge-on-read"
        properties = {
            "format-version": self.version,
            **{f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")},
            "write.delete.granularity": self.chance.choice(["file", "partition"]),
            # One file each time: at most five are read.
            "write.distribution-mode": "none",
            "write.parquet.compression-codec": self.chance.choice(CODECS),
            "write.parquet.page-row-limit": self.chance.choice([3, 20000]),
            "write.parquet.dict-size-bytes": self.chance.choice([64, 2097152]),
        }
        columns = [self.drawn.column(field) for field in self.drawn.fields(self.chance.randint(1, 7))]
        parts = self.chance.choice(["", "", "PARTITIONED BY (bucket(2, k))", "PARTITIONED BY (truncate(20, k))"])
        self.files = 2 if parts else 1  # that one statement adds
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.sql(f"CREATE TABLE {name} (k BIGINT, {', '.join(columns)}) USING iceberg {parts} TBLPROPERTIES ({listed})")

    def sql(self, statement: str):
        return self._spark.sql(statement)

    def schema(self):
        return self._iceberg.load_table(self.name).schema()

    def key(self) -> str:
        return self.schema().find_column_name(1)

    def append(self) -> None:
        rows = self.drawn.rows(self.schema(), self.chance.randint(1, 30))
        at = rows.schema.get_field_index(self.key())
        keys = range(self.rows, self.rows + rows.num_rows)
        rows = rows.set_column(at, rows.schema.field(at), [list(keys)])
        self.rows += rows.num_rows
        frame = self._spark.createDataFrame(rows, self._spark.table(self.name).schema)
        # Otherwise the data would be of several partitions, and so of several files.
        frame.coalesce(1).sortWithinPartitions(self.key()).writeTo(self.name).append()

    def delete(self) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {self.some()}")

    def update(self) -> None:
        optional = [f.name for f in self.schema().fields if not f.required and f.field_id != 1]
        change = f"{self.chance.choice(optional)} = NULL" if optional else f"{self.key()} = {self.key()} + 1"
        self.sql(f"UPDATE {self.name} SET {change} WHERE {self.some()}")

    def merge(self) -> None:
        key = self.key()
        self.sql(
            f"MERGE INTO {self.name} t USING (SELECT {key} AS s FROM {self.name} WHERE {self.some()}) ON t.{key} = s "
            f"WHEN MATCHED AND s % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.{key} = s + 1000"
        )

    def some(self) -> str:
        by = self.chance.choice([2, 3, 7])
        return f"{self.key()} % {by} = {self.chance.randrange(by)}"

    def evolve(self) -> None:
        """Renames, promotes, moves, drops or adds a column."""
        fields = list(self.schema().fields)
        field = self.chance.choice(fields)
        alter, new = f"ALTER TABLE {self.name}", f"a{self.added}"
        self.added += 1
        match self.chance.randint(0, 5):
            case 0:
                self.sql(f"{alter} RENAME COLUMN {field.name} TO {field.name}r")
            case 1:
                if type(field.field_type) in WIDER:
                    self.sql(f"{alter} ALTER COLUMN {field.name} TYPE {WIDER[type(field.field_type)](field.field_type)}")
            case 2:
                self.sql(f"{alter} ALTER COLUMN {field.name} FIRST")
            case 3:
                if len(fields) > 2 and field.field_id != 1:
                    self.sql(f"{alter} DROP COLUMN {field.name}")
            case 4:
                self.sql(f"{alter} ADD COLUMN {new} {self.drawn.word(self.drawn.kind())}")
            case 5:
                if self.version == 3:
                    self.add_with_default(new)
        structs = [f for f in self.schema().fields if isinstance(f.field_type, StructType)]
        if structs and self.chance.random() < 0.5:
            outer = self.chance.choice(structs)
            inner = self.chance.choice(outer.field_type.fields).name
            self.sql(f"{alter} RENAME COLUMN {outer.name}.{inner} TO {inner}r")
            self.sql(f"{alter} ADD COLUMN {outer.name}.{new} STRING")

    def add_with_default(self, name: str) -> None:
        """Adds a column with a default by the Java client: Spark's SQL has no words for that."""
        jvm = self._spark._jvm.org.apache.iceberg
        text, value = self.chance.choice(DEFAULTS)
        kind = jvm.types.Types.fromPrimitiveString(text)
        default = jvm.expressions.Expressions.lit(value).to(kind)
        change = jvm.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, f"ice.{self.name}").updateSchema()
        if self.chance.random() < 0.5:
            change.addColumn(name, kind, default).commit()
        else:
            change.addRequiredColumn(name, kind, default).commit()
        self.sql(f"REFRESH TABLE {self.name}")

    def upgrade(self) -> None:
        """Vectors then take the place of files of deletes by position."""
        self.version = 3
        self.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('format-version' = '3')")

    def assert_shown(self, server, **asked) -> int:
        """Asserts that the shown rows are those that Spark and PyIceberg read, and returns how many there are."""
        table = self._iceberg.load_table(self.name)
        scan = table.scan(snapshot_id=asked["snapshot"]) if asked else table.scan()
        at = f"VERSION AS OF {asked['snapshot']}" if asked else ""
        # As toArrow, which refuses a struct that is null and has a required field. collect would lose the order of maps.
        batches = self.sql(f"SELECT * FROM {self.name} {at}")._collect_as_arrow(empty_list_if_zero_records=False)
        if not any(has_inner_struct(field.field_type) for field in scan.projection().fields):
            shown.assert_as_pyiceberg(server, table, self.name, **asked)
        return shown.assert_shown(server, self.name, scan.projection(), pa.Table.from_batches(batches), **asked)


def has_inner_struct(kind) -> bool:
    """Whether a type has structs in lists or maps. PyIceberg 0.12 reads a list or map of structs that is null as an empty one."""
    match kind:
        case StructType():
            return any(has_inner_struct(field.field_type) for field in kind.fields)
        case ListType():
            return isinstance(kind.element_type, StructType) or has_inner_struct(kind.element_type)
        case MapType():
            return isinstance(kind.value_type, StructType) or has_inner_struct(kind.value_type)
    return False


@pytest.mark.parametrize("seed", range(TABLES))
def test_random_table(spark, iceberg, catalog_server, namespace, seed):
    table = Table(spark, iceberg, f"{namespace}.t", seed)
    assert table.assert_shown(catalog_server) == 0
    room = 5  # files that are read
    for _ in range(table.chance.randint(1, 2)):
        table.append()
        room -= table.files
        for _ in range(table.chance.randint(0, 2)):
            table.evolve()
        if table.version == 2 and table.chance.random() < 0.2:
            table.upgrade()
        change = table.chance.choice([table.delete, table.update, table.merge])
        if change == table.delete or room >= 2 * table.files:
            change()
            room -= 0 if change == table.delete else table.files
        table.assert_shown(catalog_server)
    for _ in range(table.chance.randint(0, 2)):
        table.evolve()
    table.assert_shown(catalog_server)
    for snapshot in iceberg.load_table(table.name).snapshots():
        table.assert_shown(catalog_server, snapshot=snapshot.snapshot_id)


@pytest.mark.parametrize("kind, value", [("VARIANT", "parse_json('{\"a\": [1, null]}')"), ("VOID", "NULL")])
def test_types_of_format_3(sql, catalog_server, namespace, kind, value):
    """Types that PyIceberg does not write: they are shown as Spark reads them, or the answer has the reason why not."""
    table = f"{namespace}.t"
    sql(f"CREATE TABLE {table} (id INT, v {kind}) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    sql(f"INSERT INTO {table} SELECT 1, {value}")
    try:
        assert shown.answer(catalog_server, table)["rows"] == [[1, None]] and kind == "VOID"
    except shown.NotShown as reason:
        assert kind == "VARIANT" and "variant" in str(reason)
