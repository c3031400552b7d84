"""The life of one table and of one view in SQL, as a first user would try it."""

import pytest
from harness.management import rollback, undrop

pytestmark = pytest.mark.smoke


def test_life_of_a_table(sql):
    sql("CREATE NAMESPACE smoke_spark")
    sql("CREATE TABLE smoke_spark.events (id BIGINT, place STRING) USING iceberg PARTITIONED BY (place)")
    sql("INSERT INTO smoke_spark.events VALUES (1, 'oslo'), (2, 'rome')")
    sql("ALTER TABLE smoke_spark.events ADD COLUMN note STRING")
    sql("INSERT INTO smoke_spark.events VALUES (3, 'oslo', 'three')")
    assert sql("SELECT * FROM smoke_spark.events") == [(1, "oslo", None), (2, "rome", None), (3, "oslo", "three")]
    [(_, start), _] = sql("SELECT committed_at, snapshot_id FROM smoke_spark.events.snapshots")
    assert sql(f"SELECT * FROM smoke_spark.events VERSION AS OF {start}") == [(1, "oslo"), (2, "rome")]
    sql("DELETE FROM smoke_spark.events WHERE id = 1")
    sql("UPDATE smoke_spark.events SET note = 'two' WHERE id = 2")
    assert sql("SELECT id, note FROM smoke_spark.events") == [(2, "two"), (3, "three")]
    assert sql("SHOW TABLES IN smoke_spark") == [("smoke_spark", "events", False)]
    sql("DROP TABLE smoke_spark.events")
    assert sql("SHOW TABLES IN smoke_spark") == []
    sql("DROP NAMESPACE smoke_spark")
    assert ("smoke_spark",) not in sql("SHOW NAMESPACES")


def test_life_of_a_view(sql):
    sql("CREATE NAMESPACE smoke_spark_views")
    sql("CREATE TABLE smoke_spark_views.events (id BIGINT, place STRING) USING iceberg")
    sql("INSERT INTO smoke_spark_views.events VALUES (1, 'oslo'), (2, 'rome')")
    sql("CREATE VIEW smoke_spark_views.places (town COMMENT 'where') AS SELECT place FROM smoke_spark_views.events")
    assert sql("SELECT town FROM smoke_spark_views.places") == [("oslo",), ("rome",)]
    sql("CREATE OR REPLACE VIEW smoke_spark_views.places AS SELECT count(*) AS n FROM smoke_spark_views.events")
    assert sql("SELECT n FROM smoke_spark_views.places") == [(2,)]
    sql("ALTER VIEW smoke_spark_views.places RENAME TO ice.smoke_spark_views.number")
    assert sql("SHOW VIEWS IN smoke_spark_views") == [("smoke_spark_views", "number", False)]
    assert sql("SHOW TABLES IN smoke_spark_views") == [("smoke_spark_views", "events", False)]
    sql("DROP VIEW smoke_spark_views.number")
    assert sql("SHOW VIEWS IN smoke_spark_views") == []
    sql("DROP TABLE smoke_spark_views.events")
    sql("DROP NAMESPACE smoke_spark_views")


@pytest.mark.moorage_only
def test_undo(sql, catalog_server):
    space, events = ("smoke_spark_undo",), "smoke_spark_undo.events"

    def read() -> list[tuple]:
        sql(f"REFRESH TABLE {events}")  # Spark keeps tables for a while
        return sql(f"SELECT id FROM {events}")

    sql("CREATE NAMESPACE smoke_spark_undo")
    sql(f"CREATE TABLE {events} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {events} VALUES (1)")
    sql(f"INSERT INTO {events} VALUES (2)")
    sql(f"DROP TABLE {events}")
    undrop(catalog_server, space, "events")
    assert read() == [(1,), (2,)]
    done = rollback(catalog_server, space, "events", "now~1")
    assert read() == [(1,)]
    rollback(catalog_server, space, "events", done["previous-metadata-location"].rpartition("/")[2])
    assert read() == [(1,), (2,)]
    sql(f"DROP TABLE {events}")
    sql(f"CREATE TABLE {events} (id BIGINT) USING iceberg")
    sql(f"INSERT INTO {events} VALUES (3)")
    undrop(catalog_server, space, "events", replace=True)
    assert read() == [(1,), (2,)]
    undrop(catalog_server, space, "events", replace=True)
    assert read() == [(3,)]
    sql(f"INSERT INTO {events} VALUES (4)")
    assert read() == [(3,), (4,)]
    sql("CREATE VIEW smoke_spark_undo.few AS SELECT id FROM smoke_spark_undo.events WHERE id < 4")
    sql("CREATE OR REPLACE VIEW smoke_spark_undo.few AS SELECT id FROM smoke_spark_undo.events")
    rollback(catalog_server, space, "few", "now~1", kind="view")
    assert sql("SELECT id FROM smoke_spark_undo.few") == [(3,)]
    sql("DROP VIEW smoke_spark_undo.few")
    undrop(catalog_server, space, "few")
    assert sql("SELECT id FROM smoke_spark_undo.few") == [(3,)]
    sql("DROP VIEW smoke_spark_undo.few")
    sql(f"DROP TABLE {events}")
    sql("DROP NAMESPACE smoke_spark_undo")
