"""Trino without a key of the storage: the catalog gives it credentials for one table at a time."""

import pytest
from harness import clients
from harness.compare import ordered
from harness.delegated import check_reach, keys_told, trino_catalog

pytestmark = pytest.mark.moorage_only


@pytest.mark.smoke
def test_life_of_a_table(engine, vended):
    catalog = engine.add(trino_catalog(vended))
    schema = f"{catalog}.trino_vended"

    def sql(statement: str) -> list[tuple]:
        return ordered(engine.execute(statement))

    sql(f"CREATE SCHEMA {schema}")
    sql(f"CREATE TABLE {schema}.events_two AS SELECT 7 AS id")
    sql(f"CREATE TABLE {schema}.events (id INTEGER, place VARCHAR)")
    sql(f"INSERT INTO {schema}.events VALUES (1, 'oslo'), (2, 'rome'), (3, 'bern')")
    sql(f"DELETE FROM {schema}.events WHERE id = 2")
    sql(
        f"MERGE INTO {schema}.events e USING (VALUES (3, 'lima'), (4, 'kiev')) AS s (id, place) ON e.id = s.id "
        "WHEN MATCHED THEN UPDATE SET place = s.place WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.place)"
    )
    assert sql(f"SELECT * FROM {schema}.events") == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    sql(f"ALTER TABLE {schema}.events EXECUTE optimize")
    lake = clients.pyiceberg_catalog(vended)
    own, sibling = (lake.load_table(f"trino_vended.{name}").location() for name in ["events", "events_two"])
    check_reach(vended.storage, keys_told(vended, "events"), own, sibling)
    sql(f"CREATE OR REPLACE TABLE {schema}.events AS SELECT 9 AS id")
    assert sql(f"SELECT * FROM {schema}.events") == [(9,)]
    for statement in [f"DROP TABLE {schema}.events", f"DROP TABLE {schema}.events_two", f"DROP SCHEMA {schema}"]:
        sql(statement)


def test_maintenance(engine, vended):
    """Snapshots expire and orphans go with keys that cannot touch the catalog's own files."""
    catalog = engine.add(trino_catalog(vended))
    table = f"{catalog}.trino_kept.events"
    engine.execute(f"CREATE SCHEMA {catalog}.trino_kept")
    engine.execute(f"CREATE TABLE {table} AS SELECT 1 AS id")
    for number in (2, 3):
        engine.execute(f"INSERT INTO {table} VALUES {number}")
    engine.execute(f"ALTER TABLE {table} EXECUTE optimize")
    location = clients.pyiceberg_catalog(vended).load_table("trino_kept.events").location()
    before = vended.storage.list(location)
    orphan = f"{location}/data/orphan.parquet"
    with vended.storage.files().open_output_stream(vended.storage.path(orphan)) as file:
        file.write(b"nobody names it")
    engine.execute(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    engine.execute(f"ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    after = vended.storage.list(location)
    assert vended.storage.path(orphan) not in after
    assert len([path for path in after if path.endswith(".parquet")]) == 1 < len([path for path in before if path.endswith(".parquet")])
    assert {path for path in before if path.endswith(".metadata.json")} <= set(after), "the catalog's own files"
    assert ordered(engine.execute(f"SELECT * FROM {table}")) == [(1,), (2,), (3,)]
