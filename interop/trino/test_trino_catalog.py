"""Names: schemas, CTAS, replace, rename, register, drop."""

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import eventually, rows
from harness.names import SMALL_NAMES, quoted
from harness.trino import told
from harness.writers import write_in_turn

REFUSED = tomllib.loads((Path(__file__).parent / "refused.toml").read_text())["refused"]


def test_schemas(sql, iceberg, namespace):
    sql(f'CREATE SCHEMA "{namespace}.inner"')
    sql(f'CREATE SCHEMA IF NOT EXISTS "{namespace}.inner"')
    assert iceberg.list_namespaces(namespace) == [(namespace, "inner")]
    assert sql(f"SHOW SCHEMAS LIKE '{namespace}%'") == [(namespace,), (f"{namespace}.inner",)]
    sql(f'CREATE TABLE "{namespace}.inner".events (id INTEGER)')
    with pytest.raises(Exception, match="SCHEMA_NOT_EMPTY"):
        sql(f'DROP SCHEMA "{namespace}.inner"')
    with pytest.raises(Exception, match=f"Namespace {namespace} is not empty"):
        sql(f"DROP SCHEMA {namespace}")
    sql(f'DROP TABLE "{namespace}.inner".events')
    sql(f'DROP SCHEMA "{namespace}.inner"')
    assert iceberg.list_namespaces(namespace) == []
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
        sql(f'DROP SCHEMA "{namespace}.inner"')
    sql(f'DROP SCHEMA IF EXISTS "{namespace}.inner"')


def test_drop_schema_cascade(sql, iceberg, namespace):
    """Everything in a schema goes with it, unless there are schemas below."""
    sql(f"CREATE TABLE {namespace}.events AS SELECT 1 AS id")
    sql(f"CREATE VIEW {namespace}.seen AS SELECT * FROM {namespace}.events")
    sql(f'CREATE SCHEMA "{namespace}.inner"')
    with pytest.raises(Exception, match="Cannot drop non-empty schema"):
        sql(f"DROP SCHEMA {namespace} CASCADE")
    assert sql(f"SHOW TABLES FROM {namespace}") == [("events",), ("seen",)]
    sql(f'DROP SCHEMA "{namespace}.inner"')
    sql(f"DROP SCHEMA {namespace} CASCADE")
    assert not iceberg.namespace_exists(namespace)


def test_without_nested_schemas(engine, sql, iceberg, catalog_server, namespace):
    """As Trino is without a setting: namespaces within others are not there."""
    iceberg.create_namespace((namespace, "inner"))
    properties = clients.trino_catalog(catalog_server)
    del properties["iceberg.rest-catalog.nested-namespace-enabled"]
    flat = engine.add(properties)
    assert sql(f"SHOW SCHEMAS FROM {flat} LIKE '{namespace}%'") == [(namespace,)]
    sql(f"CREATE TABLE {flat}.{namespace}.events AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {namespace}.events") == [(1,)]
    with pytest.raises(Exception, match="Nested namespace is not enabled for this catalog"):
        sql(f'CREATE TABLE {flat}."{namespace}.inner".events (id INTEGER)')


def test_location_of_a_schema(sql, iceberg, catalog_server, namespace):
    """Trino chooses the locations of its tables below that of their schema, be it the server's own choice or one of a client."""
    parent = iceberg.load_namespace_properties(namespace)["location"]
    sql(f"CREATE TABLE {namespace}.events AS SELECT 1 AS id")
    assert iceberg.load_table(f"{namespace}.events").location().startswith(f"{parent}/events-")
    sql(f"CREATE SCHEMA \"{namespace}.inner\" WITH (location = '{parent}/elsewhere')")
    [(statement,)] = sql(f'SHOW CREATE SCHEMA "{namespace}.inner"')
    assert f"location = '{parent}/elsewhere'" in statement
    sql(f'CREATE TABLE "{namespace}.inner".events AS SELECT 2 AS id')
    assert iceberg.load_table((namespace, "inner", "events")).location().startswith(f"{parent}/elsewhere/events-")
    assert len(catalog_server.files.list(f"{parent}/elsewhere")) > 3
    assert sql(f'SELECT * FROM "{namespace}.inner".events') == [(2,)]


def test_create_as_select(sql, iceberg, namespace):
    sql(f"CREATE TABLE {namespace}.source (id INTEGER, place VARCHAR)")
    sql(f"INSERT INTO {namespace}.source VALUES (1, 'oslo'), (2, 'rome')")
    sql(f"CREATE TABLE {namespace}.copy COMMENT 'about it' WITH (partitioning = ARRAY['place']) AS SELECT * FROM {namespace}.source")
    assert sql(f"SELECT * FROM {namespace}.copy") == [(1, "oslo"), (2, "rome")]
    made = iceberg.load_table(f"{namespace}.copy")
    assert made.properties["comment"] == "about it"
    assert [field.name for field in made.spec().fields] == ["place"]
    with pytest.raises(Exception, match="TABLE_ALREADY_EXISTS"):
        sql(f"CREATE TABLE {namespace}.copy AS SELECT 1 AS id")
    sql(f"CREATE TABLE IF NOT EXISTS {namespace}.copy AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {namespace}.copy") == [(1, "oslo"), (2, "rome")]
    sql(f"CREATE TABLE {namespace}.empty AS SELECT * FROM {namespace}.source WITH NO DATA")
    assert sql(f"SELECT * FROM {namespace}.empty") == []
    sql(f"CREATE TABLE {namespace}.like_it (LIKE {namespace}.source)")
    assert [row[:2] for row in sql(f"DESCRIBE {namespace}.like_it")] == [("id", "integer"), ("place", "varchar")]
    # A query that fails leaves no table.
    with pytest.raises(Exception, match="DIVISION_BY_ZERO"):
        sql(f"CREATE TABLE {namespace}.broken AS SELECT id / (id - id) AS x FROM {namespace}.source")
    assert sql(f"SHOW TABLES FROM {namespace}") == [("copy",), ("empty",), ("like_it",), ("source",)]


def test_create_or_replace(sql, iceberg, namespace):
    table = f"{namespace}.events"
    sql(f"CREATE OR REPLACE TABLE {table} (id INTEGER, place VARCHAR) WITH (partitioning = ARRAY['place'])")
    sql(f"INSERT INTO {table} VALUES (1, 'oslo')")
    before = iceberg.load_table(table)
    sql(f"CREATE OR REPLACE TABLE {table} COMMENT 'replaced' AS SELECT BIGINT '7' AS number, 'x' AS place")
    assert sql(f"SELECT number, place FROM {table}") == [(7, "x")]
    after = iceberg.load_table(table)
    assert after.metadata.table_uuid == before.metadata.table_uuid, "replaced by another table"
    assert after.location() == before.location()
    assert after.spec().is_unpartitioned()
    # The replaced rows stay in the history.
    first = before.current_snapshot().snapshot_id
    assert rows(after, snapshot_id=first) == sql(f"SELECT * FROM {table} FOR VERSION AS OF {first}") == [(1, "oslo")]
    sql(f"CREATE OR REPLACE TABLE {table} (id INTEGER)")
    assert sql(f"SELECT * FROM {table}") == []
    assert iceberg.load_table(table).metadata.table_uuid == before.metadata.table_uuid


def test_rename(sql, iceberg, namespace):
    sql(f'CREATE SCHEMA "{namespace}.other"')
    sql(f"CREATE TABLE {namespace}.events AS SELECT 1 AS id")
    sql(f"CREATE TABLE {namespace}.taken (id INTEGER)")
    before = iceberg.load_table(f"{namespace}.events")
    with pytest.raises(Exception, match="TABLE_ALREADY_EXISTS"):
        sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.taken")
    with pytest.raises(Exception, match="Namespace does not exist: absent"):
        sql(f"ALTER TABLE {namespace}.events RENAME TO absent.events")
    sql(f"ALTER TABLE {namespace}.events RENAME TO {namespace}.renamed")
    sql(f'ALTER TABLE {namespace}.renamed RENAME TO "{namespace}.other".history')
    assert sql(f"SHOW TABLES FROM {namespace}") == [("taken",)]
    sql(f'INSERT INTO "{namespace}.other".history VALUES 2')
    assert sql(f'SELECT * FROM "{namespace}.other".history') == [(1,), (2,)]
    after = iceberg.load_table((namespace, "other", "history"))
    assert (after.metadata.table_uuid, after.location()) == (before.metadata.table_uuid, before.location())
    # The old name is free, and a new table there leaves the renamed one alone.
    sql(f"CREATE TABLE {namespace}.events AS SELECT 9 AS id")
    sql(f"DROP TABLE {namespace}.events")
    assert sql(f'SELECT * FROM "{namespace}.other".history') == [(1,), (2,)]


def test_unregister_and_register(sql, iceberg, catalog_server, namespace):
    """A table that is taken out keeps its files, and comes back from them with all its snapshots."""
    sql(f"CREATE TABLE {namespace}.events AS SELECT 1 AS id")
    sql(f"INSERT INTO {namespace}.events VALUES 2")
    before = iceberg.load_table(f"{namespace}.events")
    file = before.metadata_location.rsplit("/", 1)[1]
    sql(f"CALL system.unregister_table('{namespace}', 'events')")
    assert sql(f"SHOW TABLES FROM {namespace}") == []
    with pytest.raises(Exception, match="not found"):
        sql(f"CALL system.unregister_table('{namespace}', 'events')")
    sql(f"CALL system.register_table('{namespace}', 'again', '{before.location()}', '{file}')")
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,), (2,)]
    assert iceberg.load_table(f"{namespace}.again").metadata_location == before.metadata_location
    sql(f"INSERT INTO {namespace}.again VALUES 3")
    with pytest.raises(Exception, match=f"Table already exists: {namespace}.again"):
        sql(f"CALL system.register_table('{namespace}', 'again', '{before.location()}', '{file}')")
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,), (2,), (3,)]
    assert catalog_server.files.list(f"{before.location()}/data")


def test_location(sql, iceberg, catalog_server, namespace):
    """A table at a location of its own, below the warehouse's."""
    beside = iceberg.load_namespace_properties(namespace)["location"] + "/of_its_own"
    sql(f"CREATE TABLE {namespace}.events WITH (location = '{beside}') AS SELECT 1 AS id")
    assert iceberg.load_table(f"{namespace}.events").location() == beside
    assert sql(f"SELECT * FROM {namespace}.events") == [(1,)]
    assert catalog_server.files.list(f"{beside}/data")
    for taken in (beside, f"{beside}/within"):
        with pytest.raises(Exception, match="within the location of another table"):
            sql(f"CREATE TABLE {namespace}.other (id INTEGER) WITH (location = '{taken}')")
    assert sql(f"SHOW TABLES FROM {namespace}") == [("events",)]


def test_drop_removes_the_files(sql, iceberg, catalog_server, namespace):
    """DROP TABLE asks the server to remove the files too, and it does so in its own time."""
    sql(f"CREATE TABLE {namespace}.events AS SELECT 1 AS id")
    location = iceberg.load_table(f"{namespace}.events").location()
    sql(f"DROP TABLE {namespace}.events")
    assert sql(f"SHOW TABLES FROM {namespace}") == []
    # A table of that name need not wait for it.
    sql(f"CREATE TABLE {namespace}.events AS SELECT 2 AS id")
    assert eventually(lambda: catalog_server.files.list(location) == [])
    assert sql(f"SELECT * FROM {namespace}.events") == [(2,)]


@pytest.mark.parametrize("name", SMALL_NAMES)
def test_names(sql, iceberg, namespace, name):
    table = f"{namespace}.{quoted(name)}"
    sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    assert sql(f"SHOW TABLES FROM {namespace}") == [(name,)]
    assert iceberg.list_tables(namespace) == [(namespace, name)]
    sql(f"INSERT INTO {table} VALUES 2")
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table((namespace, name))) == [(1,), (2,)]
    sql(f"ALTER TABLE {table} RENAME TO {namespace}.plain")
    sql(f"ALTER TABLE {namespace}.plain RENAME TO {table}")
    sql(f"DROP TABLE {table}")
    assert sql(f"SHOW TABLES FROM {namespace}") == []


@pytest.mark.parametrize("name", ["entries", "files", "history", "manifests", "partitions", "refs", "snapshots"])
def test_name_of_a_metadata_table(sql, iceberg, namespace, name):
    """The client under Trino takes a table that it does not find for a metadata table, and looks for one called like the schema."""
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        sql(f"SELECT * FROM {namespace}.{name}")
    sql(f"CREATE TABLE {namespace}.{name} AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {namespace}.{name}") == rows(iceberg.load_table(f"{namespace}.{name}")) == [(1,)]
    assert sql(f'SELECT record_count FROM {namespace}."{name}$files"') == [(1,)]


def test_upper_case(engine, sql, iceberg, catalog_server, namespace):
    """Names with capitals are others' only; Trino finds them if it is told to look for them without regard to case."""
    sql(f'CREATE TABLE {namespace}."SHOUTED" AS SELECT 1 AS id')
    assert iceberg.list_tables(namespace) == [(namespace, "shouted")]
    table = iceberg.create_table(f"{namespace}.Events", schema=pa.schema([pa.field("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        sql(f'SELECT * FROM {namespace}."Events"')
    properties = clients.trino_catalog(catalog_server)
    either = engine.add({**properties, "iceberg.rest-catalog.case-insensitive-name-matching": "true"})
    sql(f"INSERT INTO {either}.{namespace}.events VALUES 2")
    assert sql(f"SELECT * FROM {either}.{namespace}.events") == rows(iceberg.load_table(f"{namespace}.Events")) == [(1,), (2,)]


def test_listings(sql, namespace):
    """What tools ask for that show a tree of everything."""
    sql(f"CREATE TABLE {namespace}.events (id INTEGER COMMENT 'number', place VARCHAR) COMMENT 'about it'")
    sql(f"CREATE VIEW {namespace}.seen COMMENT 'looks' AS SELECT id FROM {namespace}.events")
    here = f"table_schema = '{namespace}'"
    tables = sql(f"SELECT table_name, table_type FROM information_schema.tables WHERE {here}")
    assert tables == [("events", "BASE TABLE"), ("seen", "VIEW")]
    columns = sql(f"SELECT table_name, column_name, data_type FROM information_schema.columns WHERE {here}")
    assert columns == [("events", "id", "integer"), ("events", "place", "varchar"), ("seen", "id", "integer")]
    comments = sql(f"SELECT table_name, comment FROM system.metadata.table_comments WHERE catalog_name = 'ice' AND schema_name = '{namespace}'")
    assert comments == [("events", "about it"), ("seen", "looks")]
    assert sql(f"SELECT table_name FROM system.iceberg_tables WHERE {here}") == [("events",)]


def test_rows_cross_engines(sql, iceberg, namespace):
    """What Trino writes PyIceberg reads, and the other way round."""
    sql(f"CREATE TABLE {namespace}.events (id BIGINT, place VARCHAR) WITH (partitioning = ARRAY['place'])")
    write_in_turn(sql, iceberg, f"{namespace}.events", text="VARCHAR")
    made = iceberg.create_table(f"{namespace}.theirs", schema=pa.schema([pa.field("id", pa.int64())]))
    made.append(pa.table({"id": [1, 2]}))
    sql(f"DELETE FROM {namespace}.theirs WHERE id = 1")
    sql(f"INSERT INTO {namespace}.theirs VALUES 3")
    assert rows(iceberg.load_table(f"{namespace}.theirs")) == [(2,), (3,)]


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_refused(sql, iceberg, namespace, case):
    """What Trino cannot do here, or refuses, in its own words; nothing changes."""
    sql(f"CREATE TABLE {namespace}.events AS SELECT BIGINT '1' AS id, 'oslo' AS place")
    sql(f"CREATE VIEW {namespace}.seen AS SELECT BIGINT '1' AS id")
    table, view = iceberg.load_table(f"{namespace}.events"), iceberg.load_view(f"{namespace}.seen")
    with pytest.raises(Exception) as fault:
        sql(case["statement"].format(namespace=namespace, location=table.location()))
    assert case["error"].format(namespace=namespace) in told(fault.value)
    assert iceberg.load_table(f"{namespace}.events").metadata_location == table.metadata_location
    assert iceberg.load_view(f"{namespace}.seen") == view
    assert sql(f"SHOW TABLES FROM {namespace}") == [("events",), ("seen",)]
