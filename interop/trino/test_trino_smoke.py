"""The life of one table and of one view in SQL, as a first user would try it."""

import re

import pytest
from harness import s3

pytestmark = pytest.mark.smoke


def test_life_of_a_table(sql):
    sql("CREATE SCHEMA smoke_trino")
    sql("CREATE TABLE smoke_trino.events (id BIGINT, place VARCHAR) WITH (partitioning = ARRAY['place'])")
    sql("INSERT INTO smoke_trino.events VALUES (1, 'oslo'), (2, 'rome')")
    sql("ALTER TABLE smoke_trino.events ADD COLUMN note VARCHAR")
    sql("INSERT INTO smoke_trino.events VALUES (3, 'oslo', 'three')")
    assert sql("SELECT * FROM smoke_trino.events") == [(1, "oslo", None), (2, "rome", None), (3, "oslo", "three")]
    created, first, _ = [row[1] for row in sql('SELECT committed_at, snapshot_id FROM smoke_trino."events$snapshots"')]
    assert sql(f"SELECT * FROM smoke_trino.events FOR VERSION AS OF {created}") == []
    assert sql(f"SELECT * FROM smoke_trino.events FOR VERSION AS OF {first}") == [(1, "oslo"), (2, "rome")]
    sql("DELETE FROM smoke_trino.events WHERE id = 1")
    sql("UPDATE smoke_trino.events SET note = 'two' WHERE id = 2")
    assert sql("SELECT id, note FROM smoke_trino.events") == [(2, "two"), (3, "three")]
    assert sql("SHOW TABLES FROM smoke_trino") == [("events",)]
    sql("DROP TABLE smoke_trino.events")
    assert sql("SHOW TABLES FROM smoke_trino") == []
    sql("DROP SCHEMA smoke_trino")
    assert ("smoke_trino",) not in sql("SHOW SCHEMAS")


def test_life_of_a_view(sql):
    sql("CREATE SCHEMA smoke_trino_views")
    sql("CREATE TABLE smoke_trino_views.events AS SELECT * FROM (VALUES (1, 'oslo'), (2, 'rome')) AS v (id, place)")
    sql("CREATE VIEW smoke_trino_views.places AS SELECT place FROM smoke_trino_views.events")
    assert sql("SELECT place FROM smoke_trino_views.places") == [("oslo",), ("rome",)]
    sql("CREATE OR REPLACE VIEW smoke_trino_views.places AS SELECT count(*) AS n FROM smoke_trino_views.events")
    assert sql("SELECT n FROM smoke_trino_views.places") == [(2,)]
    sql("ALTER VIEW smoke_trino_views.places RENAME TO smoke_trino_views.number")
    assert sql("SHOW TABLES FROM smoke_trino_views") == [("events",), ("number",)]
    sql("DROP VIEW smoke_trino_views.number")
    sql("DROP TABLE smoke_trino_views.events")
    sql("DROP SCHEMA smoke_trino_views")


@pytest.mark.moorage_only
def test_printed_lines(engine, sql, catalog_server, namespace):
    """The properties for Trino that the server prints when it starts."""
    [(file, block)] = re.findall(r"^Trino, etc/catalog/(\w+)\.properties\n((?:  .*\n)+)", catalog_server.log.read_text(), re.M)
    properties = dict(line.strip().split("=", 1) for line in block.splitlines())
    if catalog_server.files.in_s3:
        properties |= {"s3.aws-access-key": s3.ACCESS_KEY_ID, "s3.aws-secret-key": s3.SECRET_ACCESS_KEY}
    engine.add(properties, file)
    sql(f"CREATE TABLE {file}.{namespace}.events AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {file}.{namespace}.events") == [(1,)]
