"""Views: what Trino makes of a table, and of views of others."""

import re

import pytest
from harness.names import SMALL_NAMES, quoted
from harness.views import check_replaced, check_second_version, check_view_of_a_view, replace, version
from harness.writers import in_parallel
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

# A view keeps its last ten versions, and Trino cannot tell it to keep more.
REPLACES_PER_WRITER = 2
WITH_ID = Schema(NestedField(1, "id", IntegerType(), required=False))


@pytest.fixture
def table(sql, namespace):
    """A table of two rows."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} AS SELECT * FROM (VALUES (1, 'oslo'), (2, 'rome')) AS v (id, place)")
    return name


def test_create_and_describe(sql, iceberg, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} COMMENT 'about it' AS SELECT id AS number, place AS town FROM {table} WHERE id > 1")
    assert sql(f"SELECT town, number FROM {view}") == [("rome", 2)]
    assert sql(f"DESCRIBE {view}") == [("number", "integer", "", ""), ("town", "varchar", "", "")]
    [(statement,)] = sql(f"SHOW CREATE VIEW {view}")
    assert statement.startswith(f"CREATE VIEW ice.{view} COMMENT 'about it' SECURITY DEFINER AS")
    with pytest.raises(Exception, match="TABLE_ALREADY_EXISTS"):
        sql(f"CREATE VIEW {view} AS SELECT 1 AS one")
    loaded = iceberg.load_view(view)
    assert "WHERE (id > 1)" in loaded.sql_for("trino").sql
    assert [(field.name, str(field.field_type)) for field in loaded.schema().fields] == [("number", "int"), ("town", "string")]
    assert loaded.current_version().version_id == 1
    assert loaded.current_version().default_namespace == (namespace,)
    assert loaded.current_version().default_catalog == "ice"
    assert loaded.properties["comment"] == "about it"


def test_comments(sql, iceberg, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} AS SELECT id, place FROM {table}")
    sql(f"COMMENT ON VIEW {view} IS 'about it'")
    sql(f"COMMENT ON COLUMN {view}.place IS 'where'")
    assert sql(f"DESCRIBE {view}") == [("id", "integer", "", ""), ("place", "varchar", "", "where")]
    loaded = iceberg.load_view(view)
    assert loaded.properties["comment"] == "about it"
    assert [field.doc for field in loaded.schema().fields] == [None, "where"]
    assert len(loaded.versions) == 2
    assert loaded.version(1).representations == loaded.current_version().representations
    sql(f"COMMENT ON VIEW {view} IS NULL")
    sql(f"COMMENT ON COLUMN {view}.place IS NULL")
    assert "comment" not in iceberg.load_view(view).properties
    assert [field.doc for field in iceberg.load_view(view).schema().fields] == [None, None]
    assert sql(f"SELECT * FROM {view}") == [(1, "oslo"), (2, "rome")]


@pytest.mark.parametrize("name", SMALL_NAMES)
def test_names(sql, iceberg, table, namespace, name):
    view = f"{namespace}.{quoted(name)}"
    sql(f"CREATE VIEW {view} AS SELECT * FROM {table}")
    assert iceberg.list_views(namespace) == [(namespace, name)]
    assert sql(f"SELECT * FROM {view}") == [(1, "oslo"), (2, "rome")]
    sql(f"ALTER VIEW {view} RENAME TO {namespace}.plain")
    sql(f"ALTER VIEW {namespace}.plain RENAME TO {view}")
    sql(f"DROP VIEW {view}")
    assert iceberg.list_views(namespace) == []


def test_replace(sql, iceberg, table, namespace):
    view = f"{namespace}.seen"
    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {table}")
    before = iceberg.load_view(view)
    sql(f"CREATE OR REPLACE VIEW {view} COMMENT 'replaced' AS SELECT place AS town FROM {table}")
    assert sql(f"SELECT * FROM {view}") == [("oslo",), ("rome",)]
    after = iceberg.load_view(view)
    check_second_version(before, after)
    # What the view is already makes no version.
    sql(f"CREATE OR REPLACE VIEW {view} COMMENT 'replaced' AS SELECT place AS town FROM {table}")
    assert iceberg.load_view(view).metadata.versions == after.metadata.versions


def test_table_changes_below(sql, table, namespace):
    """A view is as good as the columns of its table, which must be those that it was made with."""
    all_of_it, places = f"{namespace}.all_of_it", f"{namespace}.places"
    sql(f"CREATE VIEW {all_of_it} AS SELECT * FROM {table}")
    sql(f"CREATE VIEW {places} AS SELECT place FROM {table}")
    sql(f"ALTER TABLE {table} ADD COLUMN note VARCHAR")
    sql(f"INSERT INTO {table} VALUES (3, 'bern', 'new')")
    assert sql(f"SELECT * FROM {places}") == [("bern",), ("oslo",), ("rome",)]
    with pytest.raises(Exception, match="VIEW_IS_STALE"):
        sql(f"SELECT * FROM {all_of_it}")
    sql(f"CREATE OR REPLACE VIEW {all_of_it} AS SELECT * FROM {table}")
    assert sql(f"SELECT * FROM {all_of_it}") == [(1, "oslo", None), (2, "rome", None), (3, "bern", "new")]
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO town")
    with pytest.raises(Exception, match="INVALID_VIEW"):
        sql(f"SELECT * FROM {places}")
    sql(f"DROP TABLE {table}")
    with pytest.raises(Exception, match="INVALID_VIEW"):
        sql(f"SELECT * FROM {all_of_it}")


def test_views_of_views(sql, table, namespace):
    check_view_of_a_view(sql, namespace, table, absent="TABLE_NOT_FOUND", recursive="recursive")


def test_rename(sql, iceberg, table, namespace):
    sql(f'CREATE SCHEMA "{namespace}.other"')
    sql(f"CREATE VIEW {namespace}.seen AS SELECT * FROM {table}")
    before = iceberg.load_view(f"{namespace}.seen")
    sql(f'ALTER VIEW {namespace}.seen RENAME TO "{namespace}.other".moved')
    assert iceberg.list_views(namespace) == []
    assert iceberg.load_view((namespace, "other", "moved")).metadata == before.metadata
    assert sql(f'SELECT * FROM "{namespace}.other".moved') == [(1, "oslo"), (2, "rome")]
    with pytest.raises(Exception, match="Namespace does not exist: absent"):
        sql(f'ALTER VIEW "{namespace}.other".moved RENAME TO absent.moved')
    # The old name is free, and a new view there leaves the renamed one alone.
    sql(f"CREATE VIEW {namespace}.seen AS SELECT 1 AS one")
    sql(f"DROP VIEW {namespace}.seen")
    assert sql(f'SELECT * FROM "{namespace}.other".moved') == [(1, "oslo"), (2, "rome")]


def test_drop(sql, table, namespace):
    sql(f'CREATE SCHEMA "{namespace}.inner"')
    view = f'"{namespace}.inner".seen'
    sql(f"CREATE VIEW {view} AS SELECT * FROM {table}")
    with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY"):
        sql(f'DROP SCHEMA "{namespace}.inner"')
    sql(f"DROP VIEW {view}")
    sql(f"DROP VIEW IF EXISTS {view}")
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        sql(f"SELECT * FROM {view}")
    sql(f'DROP SCHEMA "{namespace}.inner"')
    assert sql(f"SELECT count(*) FROM {table}") == [(2,)]


def test_view_of_another_client(sql, iceberg, table, namespace):
    """Trino takes the query that is in its dialect, and can do nothing but drop a view that has none."""
    queries = {"spark": "SELECT 'of Spark'", "trino": f"SELECT max(id) AS id FROM {table}"}
    iceberg.create_view(f"{namespace}.both", WITH_ID, version(queries, default_catalog="ice", default_namespace=(namespace,)))
    assert sql(f"SELECT * FROM {namespace}.both") == [(2,)]
    # Java clients lose no dialect, unless that is allowed.
    with pytest.raises(Exception, match="(?i)dialect"):
        sql(f"CREATE OR REPLACE VIEW {namespace}.both AS SELECT 1 AS one")
    assert {each.root.dialect for each in iceberg.load_view(f"{namespace}.both").current_version().representations} == set(queries)
    iceberg.create_view(f"{namespace}.theirs", WITH_ID, version({"spark": "SELECT 1 AS id"}))
    with pytest.raises(Exception, match="Cannot read unsupported dialect 'spark'"):
        sql(f"SELECT * FROM {namespace}.theirs")
    assert sql(f"SHOW TABLES FROM {namespace}") == [("both",), ("events",), ("theirs",)]
    assert sql(f"SELECT table_name FROM information_schema.views WHERE table_schema = '{namespace}'") == [("both",)]
    sql(f"DROP VIEW {namespace}.theirs")
    assert iceberg.list_views(namespace) == [(namespace, "both")]


def test_concurrent_replaces_all_stay(sql, iceberg, catalogs, namespace):
    """Whoever replaces a view is told that it happened, so all versions are there, in one order; the last one is the view."""
    view = f"{namespace}.seen"
    sql(f"CREATE VIEW {view} AS SELECT 0 AS writer, 0 AS number")
    in_parallel(lambda writer: replace(sql, f"{catalogs[writer]}.{view}", writer, REPLACES_PER_WRITER))
    assert sql(f"SELECT * FROM {view}") == [check_replaced(iceberg.load_view(view), REPLACES_PER_WRITER, _row)]


def _row(query: str) -> tuple[int, int]:
    """The row of a version of the view: Trino keeps its query in other words."""
    writer, number = re.findall(r"\d+", query)
    return int(writer), int(number)
