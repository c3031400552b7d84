"""Names: namespaces, CTAS, replace, rename, register, drop, purge."""

import urllib.request

import pytest
from harness.compare import eventually, rows
from harness.management import put_labels
from harness.writers import write_in_turn


def test_namespaces(sql, namespace):
    sql(f"CREATE NAMESPACE {namespace}.inner COMMENT 'about it' WITH DBPROPERTIES ('team' = 'a')")
    sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}.inner")
    assert sql(f"SHOW NAMESPACES IN {namespace}") == [(f"{namespace}.inner",)]
    described = dict(sql(f"DESCRIBE NAMESPACE EXTENDED {namespace}.inner"))
    assert described["Comment"] == "about it"
    assert "(team,a)" in described["Properties"]
    sql(f"ALTER NAMESPACE {namespace}.inner SET PROPERTIES ('team' = 'b')")
    assert "(team,b)" in dict(sql(f"DESCRIBE NAMESPACE EXTENDED {namespace}.inner"))["Properties"]
    sql(f"CREATE TABLE {namespace}.inner.events (id INT) USING iceberg")
    with pytest.raises(Exception, match="(?i)not.empty"):
        sql(f"DROP NAMESPACE {namespace}.inner")
    sql(f"DROP TABLE {namespace}.inner.events")
    sql(f"DROP NAMESPACE {namespace}.inner")
    assert sql(f"SHOW NAMESPACES IN {namespace}") == []


def test_create_as_select(sql, namespace):
    sql(f"CREATE TABLE {namespace}.source (id INT, place STRING) USING iceberg")
    sql(f"INSERT INTO {namespace}.source VALUES (1, 'oslo'), (2, 'rome')")
    sql(
        f"CREATE TABLE {namespace}.copy USING iceberg PARTITIONED BY (place) TBLPROPERTIES ('team' = 'a') "
        f"AS SELECT * FROM {namespace}.source"
    )
    assert sql(f"SELECT * FROM {namespace}.copy") == [(1, "oslo"), (2, "rome")]
    assert dict(sql(f"SHOW TBLPROPERTIES {namespace}.copy"))["team"] == "a"
    with pytest.raises(Exception, match="(?i)already.exists"):
        sql(f"CREATE TABLE {namespace}.copy USING iceberg AS SELECT 1 AS id")
    # A query that fails leaves no table.
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        sql(f"CREATE TABLE {namespace}.broken USING iceberg AS SELECT id / (id - id) AS x FROM {namespace}.source")
    assert ("broken",) not in [row[1:2] for row in sql(f"SHOW TABLES IN {namespace}")]


def test_create_or_replace(sql, iceberg, namespace):
    table = f"{namespace}.events"
    sql(f"CREATE OR REPLACE TABLE {table} (id INT, place STRING) USING iceberg PARTITIONED BY (place)")
    sql(f"INSERT INTO {table} VALUES (1, 'oslo')")
    before = iceberg.load_table(table)
    sql(f"CREATE OR REPLACE TABLE {table} USING iceberg TBLPROPERTIES ('team' = 'b') AS SELECT 7L AS number, 'x' AS place")
    assert sql(f"SELECT number, place FROM {table}") == [(7, "x")]
    after = iceberg.load_table(table)
    assert after.metadata.table_uuid == before.metadata.table_uuid, "replaced by another table"
    assert after.location() == before.location()
    assert after.spec().is_unpartitioned()
    # The replaced rows stay in the history.
    assert rows(after, snapshot_id=before.current_snapshot().snapshot_id) == [(1, "oslo")]
    sql(f"REPLACE TABLE {table} (id INT) USING iceberg")
    assert sql(f"SELECT * FROM {table}") == []
    with pytest.raises(Exception, match="(?i)cannot be found|does not exist|not_found"):
        sql(f"REPLACE TABLE {namespace}.absent (id INT) USING iceberg")


def test_rename(sql, namespace):
    sql(f"CREATE NAMESPACE {namespace}.other")
    sql(f"CREATE TABLE {namespace}.events (id INT) USING iceberg")
    sql(f"INSERT INTO {namespace}.events VALUES (1)")
    sql(f"CREATE TABLE {namespace}.taken (id INT) USING iceberg")
    with pytest.raises(Exception, match="(?i)already.exists"):
        sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.taken")
    sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.other.history")
    assert sql(f"SHOW TABLES IN {namespace}") == [(namespace, "taken", False)]
    sql(f"INSERT INTO {namespace}.other.history VALUES (2)")
    assert sql(f"SELECT * FROM {namespace}.other.history") == [(1,), (2,)]


def test_register(sql, iceberg, namespace):
    sql(f"CREATE TABLE {namespace}.events (id INT) USING iceberg")
    sql(f"INSERT INTO {namespace}.events VALUES (1)")
    location = iceberg.load_table(f"{namespace}.events").metadata_location
    sql(f"DROP TABLE {namespace}.events")
    sql(f"CALL ice.system.register_table(table => '{namespace}.again', metadata_file => '{location}')")
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,)]
    sql(f"INSERT INTO {namespace}.again VALUES (2)")
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,), (2,)]


def test_location(sql, iceberg, catalog_server, namespace):
    """A table at a location of its own, below the warehouse's."""
    sql(f"CREATE TABLE {namespace}.first (id INT) USING iceberg")
    beside = iceberg.load_table(f"{namespace}.first").location() + "_elsewhere"
    sql(f"CREATE TABLE {namespace}.second (id INT) USING iceberg LOCATION '{beside}'")
    sql(f"INSERT INTO {namespace}.second VALUES (1)")
    made = iceberg.load_table(f"{namespace}.second").location()
    assert catalog_server.files.path(made) == catalog_server.files.path(beside)
    assert sql(f"SELECT * FROM {namespace}.second") == [(1,)]
    assert catalog_server.files.list(f"{beside}/data")


def test_drop_and_purge(sql, iceberg, catalog_server, namespace):
    locations = {}
    for name in ("dropped", "purged"):
        sql(f"CREATE TABLE {namespace}.{name} (id INT) USING iceberg")
        sql(f"INSERT INTO {namespace}.{name} VALUES (1)")
        locations[name] = iceberg.load_table(f"{namespace}.{name}").location()
    sql(f"DROP TABLE {namespace}.dropped")
    sql(f"DROP TABLE {namespace}.purged PURGE")
    assert sql(f"SHOW TABLES IN {namespace}") == []
    assert eventually(lambda: catalog_server.files.list(f"{locations['purged']}/data") == [])
    assert catalog_server.files.list(f"{locations['dropped']}/data")


def test_rows_cross_engines(sql, iceberg, namespace):
    """What Spark writes PyIceberg reads, and the other way round."""
    sql(f"CREATE TABLE {namespace}.events (id BIGINT, place STRING) USING iceberg PARTITIONED BY (place)")
    write_in_turn(sql, iceberg, f"{namespace}.events", text="STRING")


@pytest.mark.moorage_only
def test_labels(spark, sql, catalog_server, namespace):
    """The Java client reads the labels of a table and of its fields, also after a commit."""
    sql(f"CREATE TABLE {namespace}.events (id INT, place STRING) USING iceberg")
    put_labels(catalog_server, (namespace,), "events", {"team": "billing"}, {2: {"classification": "pii"}})
    sql(f"INSERT INTO {namespace}.events VALUES (1, 'oslo')")
    address = f"{catalog_server.uri}/v1/{catalog_server.warehouse}/namespaces/{namespace}/tables/events"
    with urllib.request.urlopen(address, timeout=30) as answer:
        loaded = spark._jvm.org.apache.iceberg.rest.responses.LoadTableResponseParser.fromJson(answer.read().decode())
    labels = loaded.labels()
    assert dict(labels.objectLabels()) == {"team": "billing"}
    assert [(field.fieldId(), dict(field.labels())) for field in labels.fields()] == [(2, {"classification": "pii"})]
