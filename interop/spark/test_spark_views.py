"""Views: what Spark makes of a table, and of views of others."""

import re

import pyarrow as pa
import pytest
from harness.compare import rows
from harness.names import NAMES
from harness.views import check_replaced, check_second_version, check_view_of_a_view, replace, version
from harness.writers import in_parallel, one_wins
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

REPLACES_PER_WRITER = 3


@pytest.fixture
def table(sql, namespace):
    """A table of two rows."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT, place STRING) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1, 'oslo'), (2, 'rome')")
    return name


def test_create_and_describe(sql, iceberg, table, namespace):
    view = f"{namespace}.seen"
    sql(
        f"CREATE VIEW {view} (number COMMENT 'the id', town) COMMENT 'about it' TBLPROPERTIES ('team' = 'a') "
        f"AS SELECT id, place FROM {table} WHERE id > 1"
    )
    assert sql(f"SELECT town, number FROM {view}") == [("rome", 2)]
    assert sql(f"DESCRIBE {view}") == [("number", "int", "the id"), ("town", "string", "")]
    described = {row[0]: row[1] for row in sql(f"DESCRIBE EXTENDED {view}")}
    assert described["Comment"] == "about it"
    assert described["View Catalog and Namespace"] == f"ice.{namespace}"
    assert described["View Query Output Columns"] == "[id, place]"
    [(statement,)] = sql(f"SHOW CREATE TABLE {view}")
    assert statement.startswith(f"CREATE VIEW ice.{view} (")
    assert f"SELECT id, place FROM {table} WHERE id > 1" in statement
    sql(f"CREATE VIEW IF NOT EXISTS {view} AS SELECT 1 AS one")
    with pytest.raises(Exception, match="VIEW_ALREADY_EXISTS"):
        sql(f"CREATE VIEW {view} AS SELECT 1 AS one")
    loaded = iceberg.load_view(view)
    assert loaded.sql_for("spark").sql == f"SELECT id, place FROM {table} WHERE id > 1"
    assert [(field.name, str(field.field_type), field.doc) for field in loaded.schema().fields] == [
        ("number", "int", "the id"), ("town", "string", None),
    ]  # fmt: skip
    assert loaded.current_version().version_id == 1
    assert loaded.properties["team"] == "a"


def test_listings(sql, table, namespace):
    sql(f"CREATE NAMESPACE {namespace}.inner")
    for name in ("b", "a", "inner.c"):
        sql(f"CREATE VIEW {namespace}.{name} AS SELECT * FROM {table}")
    assert sql(f"SHOW VIEWS IN {namespace}") == [(namespace, "a", False), (namespace, "b", False)]
    assert sql(f"SHOW VIEWS IN {namespace} LIKE 'b*'") == [(namespace, "b", False)]
    assert sql(f"SHOW VIEWS IN {namespace}.inner") == [(f"{namespace}.inner", "c", False)]
    assert sql(f"SHOW TABLES IN {namespace}") == [(namespace, "events", False)]


@pytest.mark.parametrize("name", NAMES)
def test_names(sql, iceberg, table, namespace, name):
    inner = (namespace, f"of {name}")
    iceberg.create_namespace(inner)
    sql(f"CREATE VIEW {namespace}.`of {name}`.`{name}` AS SELECT * FROM {table}")
    assert iceberg.list_views(inner) == [(*inner, name)]
    assert iceberg.view_exists((*inner, name))
    assert iceberg.load_view((*inner, name)).sql_for("spark").sql == f"SELECT * FROM {table}"
    sql(f"ALTER VIEW {namespace}.`of {name}`.`{name}` RENAME TO ice.{namespace}.`new {name}`")
    assert iceberg.list_views(inner) == []
    assert sql(f"SELECT * FROM {namespace}.`new {name}`") == [(1, "oslo"), (2, "rome")]
    iceberg.drop_view((namespace, f"new {name}"))
    assert sql(f"SHOW VIEWS IN {namespace}") == []
    iceberg.drop_namespace(inner)


def test_properties(sql, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} TBLPROPERTIES ('team' = 'a', 'lasting' = 'yes') AS SELECT * FROM {table}")
    sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('team' = 'b', 'short' = 'yes')")
    sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES ('short')")
    with pytest.raises(Exception, match="Cannot remove property that is not set"):
        sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES ('short')")
    sql(f"CREATE OR REPLACE VIEW {view} TBLPROPERTIES ('new' = 'yes') AS SELECT id FROM {table}")
    found = dict(sql(f"SHOW TBLPROPERTIES {view}"))
    assert {key: found.get(key) for key in ("team", "short", "lasting", "new")} == {
        "team": "b", "short": None, "lasting": "yes", "new": "yes",
    }  # fmt: skip


def test_replace(sql, iceberg, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {table}")
    before = iceberg.load_view(view)
    sql(f"CREATE OR REPLACE VIEW {view} (town COMMENT 'where') COMMENT 'replaced' AS SELECT place FROM {table}")
    assert sql(f"SELECT * FROM {view}") == [("oslo",), ("rome",)]
    assert sql(f"DESCRIBE {view}") == [("town", "string", "where")]
    after = iceberg.load_view(view)
    check_second_version(before, after)
    assert after.location() == before.location()
    # What the view is already makes no version.
    sql(f"CREATE OR REPLACE VIEW {view} (town COMMENT 'where') COMMENT 'replaced' AS SELECT place FROM {table}")
    assert iceberg.load_view(view).metadata.versions == after.metadata.versions
    with pytest.raises(Exception, match="Use CREATE OR REPLACE VIEW"):
        sql(f"ALTER VIEW {view} AS SELECT 2 AS two")


def test_table_changes_below(sql, table, namespace):
    """A view has the columns that it was made with, whatever the table gets, until one of them is gone or of another type."""
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} AS SELECT * FROM {table}")
    sql(f"CREATE VIEW {namespace}.places AS SELECT place FROM {table}")
    sql(f"ALTER TABLE {table} ADD COLUMN note STRING FIRST")
    sql(f"INSERT INTO {table} VALUES ('new', 3, 'bern')")
    assert sql(f"SELECT place FROM {namespace}.places") == [("bern",), ("oslo",), ("rome",)]
    sql(f"ALTER TABLE {table} ALTER COLUMN note AFTER place")
    assert sql(f"SELECT * FROM {view}") == [(1, "oslo"), (2, "rome"), (3, "bern")]
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO town")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        sql(f"SELECT * FROM {namespace}.places")
    sql(f"ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(Exception, match="CANNOT_UP_CAST_DATATYPE"):
        sql(f"SELECT id FROM {view}")
    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {table}")
    assert sql(f"SELECT * FROM {view}") == [(1, "oslo", None), (2, "rome", None), (3, "bern", "new")]
    assert sql(f"DESCRIBE {view}")[0] == ("id", "bigint", "")
    sql(f"DROP TABLE {table}")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"SELECT * FROM {view}")


def test_views_of_views(sql, table, namespace):
    check_view_of_a_view(sql, namespace, table, absent="TABLE_OR_VIEW_NOT_FOUND", recursive="(?i)recursive")


@pytest.fixture
def inside(sql, table, namespace):
    """While this lasts, names without a namespace are those of the namespace."""
    sql(f"USE ice.{namespace}")
    yield
    sql("USE spark_catalog")
    sql("USE ice")


def test_rename(sql, iceberg, table, namespace, inside):
    sql(f"CREATE NAMESPACE {namespace}.other")
    sql("CREATE VIEW seen AS SELECT * FROM events")
    before = iceberg.load_view(f"{namespace}.seen")
    sql(f"ALTER VIEW {namespace}.seen RENAME TO ice.{namespace}.other.moved")
    assert sql(f"SHOW VIEWS IN {namespace}") == []
    assert iceberg.load_view((namespace, "other", "moved")).metadata == before.metadata
    # Names in its query are still those of the namespace in which it was made.
    assert before.current_version().default_namespace == (namespace,)
    assert sql(f"SELECT * FROM {namespace}.other.moved") == [(1, "oslo"), (2, "rome")]
    with pytest.raises(Exception, match="NOT_FOUND"):
        sql(f"ALTER VIEW {namespace}.seen RENAME TO ice.{namespace}.again")
    # The old name is free, and a new view there leaves the renamed one alone.
    sql(f"CREATE VIEW {namespace}.seen AS SELECT 1 AS one")
    sql(f"DROP VIEW {namespace}.seen")
    assert sql(f"SELECT * FROM {namespace}.other.moved") == [(1, "oslo"), (2, "rome")]


def test_names_clash_with_tables(sql, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} AS SELECT * FROM {table}")
    for statement in (
        f"CREATE VIEW {table} AS SELECT 1 AS one",
        f"CREATE OR REPLACE VIEW {table} AS SELECT 1 AS one",
        f"ALTER VIEW {view} RENAME TO ice.{table}",
        f"ALTER TABLE {table} RENAME TO {view}",
        f"CREATE TABLE {view} (id INT) USING iceberg",
        f"CREATE TABLE {view} USING iceberg AS SELECT 1 AS one",
        f"CREATE OR REPLACE TABLE {view} USING iceberg AS SELECT 1 AS one",
    ):
        with pytest.raises(Exception, match="ALREADY_EXISTS|AlreadyExistsException"):
            sql(statement)
    for statement in (f"DROP TABLE {view}", f"DROP VIEW {table}", f"INSERT INTO {view} VALUES (3, 'bern')"):
        with pytest.raises(Exception, match="NOT_FOUND"):
            sql(statement)
    assert sql(f"SELECT * FROM {view}") == sql(f"SELECT * FROM {table}") == [(1, "oslo"), (2, "rome")]


def test_drop(sql, table, namespace):
    sql(f"CREATE NAMESPACE {namespace}.inner")
    sql(f"CREATE VIEW {namespace}.inner.seen AS SELECT * FROM {table}")
    with pytest.raises(Exception, match="(?i)not.empty"):
        sql(f"DROP NAMESPACE {namespace}.inner")
    sql(f"DROP VIEW {namespace}.inner.seen")
    with pytest.raises(Exception, match="VIEW_NOT_FOUND"):
        sql(f"DROP VIEW {namespace}.inner.seen")
    sql(f"DROP VIEW IF EXISTS {namespace}.inner.seen")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"SELECT * FROM {namespace}.inner.seen")
    sql(f"DROP NAMESPACE {namespace}.inner")
    assert sql(f"SELECT count(*) FROM {table}") == [(2,)]


@pytest.mark.moorage_only
def test_register(sql, java, iceberg, table, namespace):
    """A view that was dropped comes back with all its versions."""
    sql(f"CREATE VIEW {namespace}.seen AS SELECT * FROM {table}")
    sql(f"CREATE OR REPLACE VIEW {namespace}.seen AS SELECT place FROM {table}")
    before = iceberg.load_view(f"{namespace}.seen")
    location = java.catalog.loadView(java.identifier(f"{namespace}.seen")).operations().current().metadataFileLocation()
    with pytest.raises(Exception, match="AlreadyExistsException"):
        java.catalog.registerView(java.identifier(table), location)
    sql(f"DROP VIEW {namespace}.seen")
    java.catalog.registerView(java.identifier(f"{namespace}.again"), location)
    assert iceberg.load_view(f"{namespace}.again").metadata == before.metadata
    sql(f"CREATE OR REPLACE VIEW {namespace}.again AS SELECT id FROM {table}")
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,), (2,)]
    assert [each.version_id for each in iceberg.load_view(f"{namespace}.again").versions] == [1, 2, 3]


def test_view_of_another_client(sql, iceberg, table, namespace):
    """Spark takes the query that is in its dialect, and follows what others make of the table."""
    queries = {"trino": "SELECT 'of trino'", "spark": f"SELECT sum(id) AS total FROM {table}"}
    iceberg.create_view(
        f"{namespace}.seen",
        Schema(NestedField(1, "total", IntegerType(), required=False)),
        version(queries, default_catalog="ice", default_namespace=(namespace,)),
    )
    iceberg.load_table(table).append(pa.table({"id": pa.array([4], pa.int32()), "place": ["york"]}))
    assert [row[0] for row in rows(iceberg.load_table(table))] == [1, 2, 4]
    with pytest.raises(Exception, match="CANNOT_UP_CAST_DATATYPE"):  # Spark's sum of integers is a BIGINT
        sql(f"SELECT * FROM {namespace}.seen")
    with pytest.raises(Exception, match="(?i)dialect"):
        sql(f"CREATE OR REPLACE VIEW {namespace}.seen AS SELECT 1 AS one")
    sql(f"ALTER VIEW {namespace}.seen SET TBLPROPERTIES ('replace.drop-dialect.allowed' = 'true')")
    sql(f"CREATE OR REPLACE VIEW {namespace}.seen AS SELECT sum(id) AS total FROM {table}")
    assert sql(f"SELECT * FROM {namespace}.seen") == [(7,)]


def test_concurrent_replaces_all_stay(sql, iceberg, catalogs, namespace):
    """Whoever replaces a view is told that it happened, so all versions are there, in one order; the last one is the view."""
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} TBLPROPERTIES ('version.history.num-entries' = '100') AS SELECT 0 AS writer, 0 AS number")
    in_parallel(lambda writer: replace(sql, f"{catalogs[writer]}.{view}", writer, REPLACES_PER_WRITER))
    assert sql(f"SELECT * FROM {view}") == [check_replaced(iceberg.load_view(view), REPLACES_PER_WRITER, _row)]


def _row(query: str) -> tuple[int, int]:
    """The row of a version of the view: Spark keeps its query to the letter."""
    writer, number = re.fullmatch(r"SELECT (\d+) AS writer, (\d+) AS number", query).groups()
    return int(writer), int(number)


def test_concurrent_creates_one_wins(sql, catalogs, namespace):
    """Two tries to make a view and two to make a table of one name: exactly one does, the others are told that it exists."""

    def create(writer: int) -> None:
        kind, clause = ("TABLE", "USING iceberg AS") if writer % 2 else ("VIEW", "AS")
        sql(f"CREATE {kind} {catalogs[writer]}.{namespace}.once {clause} SELECT {writer} AS writer")

    winner = one_wins(create, lambda fault: "already exists" in str(fault).lower() or "ALREADY_EXISTS" in str(fault))
    assert sql(f"SELECT writer FROM {namespace}.once") == [(winner,)]
    listed = sql(f"SHOW TABLES IN {namespace}") + sql(f"SHOW VIEWS IN {namespace}")
    assert listed == [(namespace, "once", False)]
