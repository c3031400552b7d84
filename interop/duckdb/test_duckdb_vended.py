"""DuckDB without a key of the storage: the catalog gives it credentials for one table at a time."""

import pytest
from harness.compare import ordered
from harness.delegated import check_reach, duckdb_connection, keys_told

pytestmark = pytest.mark.moorage_only


@pytest.mark.smoke
def test_life_of_a_table(vended):
    with duckdb_connection(vended) as duck:

        def sql(statement: str) -> list[tuple]:
            return ordered(duck.execute(statement).fetchall())

        sql("CREATE SCHEMA ice.duck_vended")
        sql("CREATE TABLE ice.duck_vended.events_two AS SELECT 7 AS id")
        sql("CREATE TABLE ice.duck_vended.events AS SELECT range::INTEGER AS id, 'oslo' AS place FROM range(5)")
        sql("INSERT INTO ice.duck_vended.events VALUES (10, 'rome')")
        sql("UPDATE ice.duck_vended.events SET place = 'bern' WHERE id = 1")
        sql("DELETE FROM ice.duck_vended.events WHERE id = 2")
        sql(
            "MERGE INTO ice.duck_vended.events e USING (VALUES (3, 'lima'), (11, 'kiev')) s (id, place) ON e.id = s.id "
            "WHEN MATCHED THEN UPDATE SET place = s.place WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.place)"
        )
        expected = [(0, "oslo"), (1, "bern"), (3, "lima"), (4, "oslo"), (10, "rome"), (11, "kiev")]
        assert sql("FROM ice.duck_vended.events") == expected
        own, sibling = (location(vended, name) for name in ["events", "events_two"])
        check_reach(vended.storage, keys_told(vended, "events"), own, sibling)
        for statement in ["DROP TABLE ice.duck_vended.events", "DROP TABLE ice.duck_vended.events_two", "DROP SCHEMA ice.duck_vended"]:
            sql(statement)


def location(running, name: str) -> str:
    from harness import clients

    return clients.pyiceberg_catalog(running).load_table(f"duck_vended.{name}").location()
