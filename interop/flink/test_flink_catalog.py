"""Names: databases, tables as they are made, CTAS, copies, rename, drop."""

import pytest
from harness import clients, flink
from harness.compare import rows
from harness.views import version
from harness.writers import one_wins
from py4j.protocol import Py4JJavaError
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField


def test_databases(sql, iceberg, namespace):
    other = f"{namespace}_other"

    def properties() -> dict[str, str]:
        found = iceberg.load_namespace_properties(other)
        return {name: found[name] for name in found if name != "location"}

    sql(f"CREATE DATABASE {other} COMMENT 'about it' WITH ('team' = 'a', 'stage' = 'test')")
    sql(f"CREATE DATABASE IF NOT EXISTS {other}")
    with pytest.raises(Py4JJavaError, match="DatabaseAlreadyExistException"):
        sql(f"CREATE DATABASE {other}")
    assert (other,) in sql("SHOW DATABASES")
    assert properties() == {"comment": "about it", "team": "a", "stage": "test"}
    sql(f"ALTER DATABASE {other} SET ('team' = 'b')")
    assert properties() == {"comment": "about it", "team": "b", "stage": "test"}
    sql(f"CREATE TABLE {other}.events (id INT)")
    with pytest.raises(Py4JJavaError, match="DatabaseNotEmptyException"):
        sql(f"DROP DATABASE {other}")
    sql(f"DROP TABLE {other}.events")
    sql(f"DROP DATABASE {other}")
    assert (other,) not in sql("SHOW DATABASES")
    sql(f"DROP DATABASE IF EXISTS {other}")
    with pytest.raises(Py4JJavaError, match="DatabaseNotExistException"):
        sql(f"DROP DATABASE {other}")


def test_base_namespace(session, iceberg, catalog_server, namespace):
    """Databases have one level; a catalog can begin deeper."""
    below = session(flink.BATCH)
    below.run(flink.catalog("below", catalog_server, **{"base-namespace": f"{namespace}.middle"}))
    iceberg.create_namespace((namespace, "middle"))
    below.run("CREATE DATABASE below.leaf")
    below.run("CREATE TABLE below.leaf.events (id INT)")
    below.run("INSERT INTO below.leaf.events VALUES (1)")
    assert below.run("SHOW DATABASES IN below") == [("leaf",)]
    assert rows(iceberg.load_table((namespace, "middle", "leaf", "events"))) == [(1,)]


@pytest.mark.parametrize("format", [1, 2, 3])
def test_create_table(sql, iceberg, namespace, format):
    table = f"{namespace}.events"
    sql(
        f"CREATE TABLE {table} (id BIGINT NOT NULL COMMENT 'which', place STRING NOT NULL, note STRING, "
        "PRIMARY KEY (id, place) NOT ENFORCED) COMMENT 'what happened' PARTITIONED BY (place) "
        f"WITH ('format-version' = '{format}', 'write.format.default' = 'avro', 'owner.team' = 'a')"
    )
    made = iceberg.load_table(table)
    assert made.format_version == format
    assert made.schema().identifier_field_names() == {"id", "place"}
    assert [(field.name, field.required, field.doc) for field in made.schema().fields] == [
        ("id", True, "which"), ("place", True, None), ("note", False, None),
    ]  # fmt: skip
    assert [(field.name, str(field.transform)) for field in made.spec().fields] == [("place", "identity")]
    # The codec is what every new table gets. Iceberg drops the comment.
    codec = {"write.parquet.compression-codec": "zstd"}
    assert made.properties == {"write.format.default": "avro", "owner.team": "a"} | codec
    sql(f"INSERT INTO {table} VALUES (1, 'oslo', 'one'), (2, 'rome', CAST(NULL AS STRING))")
    assert sql(f"SELECT * FROM {table}") == [(1, "oslo", "one"), (2, "rome", None)]
    [(statement,)] = sql(f"SHOW CREATE TABLE {table}")
    assert "PRIMARY KEY (`id`, `place`) NOT ENFORCED" in statement
    assert "PARTITIONED BY (`place`)" in statement
    sql(f"CREATE TABLE IF NOT EXISTS {table} (other INT)")
    with pytest.raises(Py4JJavaError, match="TableAlreadyExistException"):
        sql(f"CREATE TABLE {table} (other INT)")
    assert iceberg.load_table(table).metadata.table_uuid == made.metadata.table_uuid


def test_create_like(sql, iceberg, namespace):
    sql(f"CREATE TABLE {namespace}.events (id INT, place STRING) PARTITIONED BY (place) WITH ('owner.team' = 'a')")
    sql(f"INSERT INTO {namespace}.events VALUES (1, 'oslo')")
    sql(f"CREATE TABLE {namespace}.other LIKE {namespace}.events")
    assert sql(f"SELECT * FROM {namespace}.other") == []
    made = iceberg.load_table(f"{namespace}.other")
    assert made.properties["owner.team"] == "a"
    assert made.schema() == iceberg.load_table(f"{namespace}.events").schema()
    assert [field.name for field in made.spec().fields] == ["place"]
    sql(f"INSERT INTO {namespace}.other SELECT id + 1, place FROM {namespace}.events")
    assert sql(f"SELECT * FROM {namespace}.other") == [(2, "oslo")]


def test_create_as_select(sql, iceberg, namespace):
    sql(f"CREATE TABLE {namespace}.source (id INT, place STRING)")
    sql(f"INSERT INTO {namespace}.source VALUES (1, 'oslo'), (2, 'rome')")
    sql(f"CREATE TABLE {namespace}.copy WITH ('owner.team' = 'a') AS SELECT id * 10 AS ten, place FROM {namespace}.source")
    assert sql(f"SELECT * FROM {namespace}.copy") == [(10, "oslo"), (20, "rome")]
    assert iceberg.load_table(f"{namespace}.copy").properties["owner.team"] == "a"
    with pytest.raises(Py4JJavaError, match="(?i)already.?exist"):
        sql(f"CREATE TABLE {namespace}.copy AS SELECT 1 AS id")


def test_location(sql, iceberg, catalog_server, namespace):
    """A table at a location of its own, below the warehouse's."""
    sql(f"CREATE TABLE {namespace}.events (id INT)")
    beside = iceberg.load_table(f"{namespace}.events").location() + "_elsewhere"
    sql(f"CREATE TABLE {namespace}.other (id INT) WITH ('location' = '{beside}')")
    sql(f"INSERT INTO {namespace}.other VALUES (1)")
    made = iceberg.load_table(f"{namespace}.other").location()
    assert catalog_server.files.path(made) == catalog_server.files.path(beside)
    assert sql(f"SELECT * FROM {namespace}.other") == [(1,)]
    assert catalog_server.files.list(f"{beside}/data")


def test_rename(sql, namespace):
    sql(f"CREATE TABLE {namespace}.events (id INT)")
    sql(f"INSERT INTO {namespace}.events VALUES (1)")
    sql(f"CREATE TABLE {namespace}.taken (id INT)")
    with pytest.raises(Py4JJavaError, match="(?i)already.?exist"):
        sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.taken")
    sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.history")
    assert sql(f"SHOW TABLES IN {namespace}") == [("history",), ("taken",)]
    sql(f"INSERT INTO {namespace}.history VALUES (2)")
    assert sql(f"SELECT * FROM {namespace}.history") == [(1,), (2,)]
    with pytest.raises(Py4JJavaError, match="not found"):
        sql(f"SELECT * FROM {namespace}.events")


def test_names(sql, iceberg, namespace):
    """Names that need escapes in a path, or in SQL."""
    for name in ("ü ö", "a/b", "a+b?c#d", "select"):
        table = f"{namespace}.`{name}`"
        sql(f"CREATE TABLE {table} (`the id` INT)")
        sql(f"INSERT INTO {table} VALUES (1)")
        assert sql(f"SELECT `the id` FROM {table}") == [(1,)]
        assert sql(f"SHOW TABLES IN {namespace}") == [(name,)]
        assert rows(iceberg.load_table((namespace, name))) == [(1,)]
        sql(f"DROP TABLE {table}")
    # Iceberg's limits for Flink: such tables are there, and not read.
    for name, fault in (("a%2Fb", "UnknownFormatConversionException"), ("a.b", "NoSuchTableException")):
        sql(f"CREATE TABLE {namespace}.`{name}` (id INT)")
        assert (name,) in sql(f"SHOW TABLES IN {namespace}")
        with pytest.raises(Py4JJavaError, match=fault):
            sql(f"SELECT * FROM {namespace}.`{name}`")
    with pytest.raises(Py4JJavaError, match="Illegal table name"):
        sql(f"CREATE TABLE {namespace}.`a$b` (id INT)")


def test_drop(sql, iceberg, catalog_server, namespace):
    """Flink's DROP keeps the files, and another table of that name is another table."""
    table = f"{namespace}.events"
    sql(f"CREATE TABLE {table} (id INT)")
    sql(f"INSERT INTO {table} VALUES (1)")
    dropped = iceberg.load_table(table)
    sql(f"DROP TABLE {table}")
    assert sql(f"SHOW TABLES IN {namespace}") == []
    with pytest.raises(NoSuchTableError):
        iceberg.load_table(table)
    sql(f"DROP TABLE IF EXISTS {table}")
    with pytest.raises(Py4JJavaError, match="does not exist"):
        sql(f"DROP TABLE {table}")
    assert catalog_server.files.list(f"{dropped.location()}/data")
    iceberg.register_table(f"{namespace}.again", dropped.metadata_location)
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,)]
    sql(f"CREATE TABLE {table} (id INT, place STRING)")
    assert sql(f"SELECT * FROM {table}") == []
    assert iceberg.load_table(table).metadata.table_uuid != dropped.metadata.table_uuid


def test_concurrent_creates_one_wins(session, iceberg, namespace):
    """Four tries to make one table: exactly one does, the others are told that it exists."""

    def create(writer: int) -> None:
        session(flink.BATCH).run(f"CREATE TABLE {namespace}.once (of_{writer} INT)")

    winner = one_wins(create, lambda fault: isinstance(fault, Py4JJavaError) and "already exist" in str(fault).lower())
    assert iceberg.load_table(f"{namespace}.once").schema().column_names == [f"of_{winner}"]


def test_views_of_others(sql, iceberg, namespace):
    """Iceberg shows Flink no views, neither as views nor as tables, and lets it make none."""
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    iceberg.create_view(f"{namespace}.seen", schema, version({"flink": "SELECT 1 AS id"}))
    assert sql(f"SHOW VIEWS IN {namespace}") == sql(f"SHOW TABLES IN {namespace}") == []
    with pytest.raises(Py4JJavaError, match="not found"):
        sql(f"SELECT * FROM {namespace}.seen")
    with pytest.raises(Py4JJavaError, match="View with same name already exists"):
        sql(f"CREATE TABLE {namespace}.seen (id INT)")
    with pytest.raises(Py4JJavaError, match="table should be resolved"):
        sql(f"CREATE VIEW {namespace}.other AS SELECT 1 AS id")


def test_cached_catalog(session, catalog_server, namespace):
    """With Flink's cache, which is its default, a session sees what others did nevertheless."""
    cached = session(flink.BATCH)
    cached.run(flink.catalog("cached", catalog_server, **{"cache-enabled": "true"}))
    cached.run(f"CREATE TABLE cached.{namespace}.events (id INT)")
    cached.run(f"INSERT INTO cached.{namespace}.events VALUES (1)")
    other = clients.pyiceberg_catalog(catalog_server).load_table(f"{namespace}.events")
    other.append(other.scan().to_arrow())
    assert cached.run(f"SELECT * FROM cached.{namespace}.events") == [(1,), (1,)]
