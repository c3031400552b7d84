"""Spark without a key of the storage: the catalog gives it credentials for one table at a time."""

import pytest
from harness import clients
from harness.delegated import ASKED, VENDED, check_reach, keys_told

pytestmark = pytest.mark.moorage_only


@pytest.fixture
def lake(spark, vended, numbers):
    """A catalog that asks for credentials."""
    name = f"vended{next(numbers)}"
    clients.add_spark_catalog(spark, name, vended, **{ASKED: VENDED})
    return name


def locations(vended, *tables: str) -> list[str]:
    lake = clients.pyiceberg_catalog(vended)
    return [lake.load_table(table).location() for table in tables]


@pytest.mark.smoke
def test_life_of_a_table(sql, vended, lake):
    events = f"{lake}.spark_vended.events"
    sql(f"CREATE NAMESPACE {lake}.spark_vended")
    sql(f"CREATE TABLE {events}_two USING iceberg AS SELECT 7 AS id")
    sql(f"CREATE TABLE {events} (id INT, place STRING) USING iceberg")
    sql(f"INSERT INTO {events} VALUES (1, 'oslo'), (2, 'rome'), (3, 'bern')")
    sql(f"DELETE FROM {events} WHERE id = 2")
    sql(
        f"MERGE INTO {events} e USING (SELECT 3 AS id, 'lima' AS place UNION ALL SELECT 4, 'kiev') s ON e.id = s.id "
        "WHEN MATCHED THEN UPDATE SET place = s.place WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql(f"SELECT * FROM {events}") == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    sql(f"INSERT OVERWRITE {events} SELECT 9, 'cork'")
    assert sql(f"SELECT * FROM {events}") == [(9, "cork")]
    own, sibling = locations(vended, "spark_vended.events", "spark_vended.events_two")
    check_reach(vended.storage, keys_told(vended, "events"), own, sibling)
    for statement in [f"DROP TABLE {events} PURGE", f"DROP TABLE {events}_two", f"DROP NAMESPACE {lake}.spark_vended"]:
        sql(statement)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_maintenance(spark, sql, vended, lake, mode):
    """Compaction, expiry and removal of orphans, with keys that cannot touch the catalog's own files."""
    namespace = f"kept_{lake}"
    table = f"{lake}.{namespace}.events"
    sql(f"CREATE NAMESPACE {lake}.{namespace}")
    properties = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ["delete", "update", "merge"])
    sql(f"CREATE TABLE {table} (id INT, place STRING) USING iceberg TBLPROPERTIES ({properties}, 'write.metadata.previous-versions-max' = '2')")
    for number in range(4):
        sql(f"INSERT INTO {table} VALUES ({number}, 'oslo'), ({number + 10}, 'rome')")
    sql(f"DELETE FROM {table} WHERE id = 2")
    sql(f"UPDATE {table} SET place = 'bern' WHERE id = 12")
    expected = sql(f"SELECT * FROM {table}")
    [location] = locations(vended, f"{namespace}.events")
    orphan = vended.storage.path(f"{location}/data/orphan.parquet")
    with vended.storage.files().open_output_stream(orphan) as file:
        file.write(b"nobody names it")
    before = vended.storage.list(location)

    def call(procedure: str, arguments: str = "") -> list[tuple]:
        return sql(f"CALL {lake}.system.{procedure}(table => '{namespace}.events'{arguments})")

    call("rewrite_data_files", ", options => map('rewrite-all', 'true')")
    call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")
    call("rewrite_manifests")
    call("expire_snapshots", ", older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
    assert len(sql(f"SELECT * FROM {table}.snapshots")) == 1
    named = remove_orphans(spark, f"{lake}.{namespace}.events")
    # Metadata files that fell out of the table's log are orphans to it too. The storage keeps those, and Spark goes on.
    assert [path for path in named if not path.endswith(".metadata.json")] == [f"{location}/data/orphan.parquet"]
    assert len(named) > 1
    after = vended.storage.list(location)
    assert sql(f"SELECT * FROM {table}") == expected
    assert orphan not in after
    data = [[path for path in files if "/data/" in path] for files in (before, after)]
    assert len(data[1]) < len(data[0])
    assert {path for path in before if path.endswith(".metadata.json")} <= set(after), "the catalog's own files"


def remove_orphans(spark, table: str) -> list[str]:
    """Removes what nothing names, with the action behind the procedure: that one takes files of a day ago only."""
    jvm = spark._jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    action = jvm.org.apache.iceberg.spark.actions.SparkActions.get().deleteOrphanFiles(loaded)
    tomorrow = jvm.System.currentTimeMillis() + 24 * 3600 * 1000
    return list(action.olderThan(tomorrow).usePrefixListing(True).execute().orphanFileLocations())
