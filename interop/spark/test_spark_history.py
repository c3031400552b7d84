"""Snapshots: time travel, branches, tags, rollback, metadata tables, expiry, compaction."""

import pytest
from harness.history import check_metadata_tables


@pytest.fixture
def table(sql, namespace):
    """A table with three snapshots: ids 1; 1, 2; 1, 2, 3."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT) USING iceberg")
    for value in (1, 2, 3):
        sql(f"INSERT INTO {name} VALUES ({value})")
    return name


@pytest.fixture
def snapshots(sql, table):
    """The ids of the table's three snapshots, oldest first."""
    return [snapshot for _, snapshot in sql(f"SELECT committed_at, snapshot_id FROM {table}.snapshots")]


def test_time_travel(sql, table, snapshots):
    assert sql(f"SELECT * FROM {table} VERSION AS OF {snapshots[1]}") == [(1,), (2,)]
    [(moment,)] = sql(f"SELECT CAST(committed_at AS STRING) FROM {table}.snapshots WHERE snapshot_id = {snapshots[1]}")
    assert sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{moment}'") == [(1,), (2,)]


def test_branches_and_tags(sql, table, snapshots):
    sql(f"ALTER TABLE {table} CREATE TAG release AS OF VERSION {snapshots[0]} RETAIN 30 DAYS")
    sql(f"ALTER TABLE {table} CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    sql(f"INSERT INTO {table}.branch_audit VALUES (10)")
    sql(f"INSERT INTO {table} VALUES (4)")
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'release'") == [(1,)]
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'audit'") == [(1,), (2,), (3,), (10,)]
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,), (4,)]
    assert sql(f"SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep FROM {table}.refs") == [
        ("audit", "BRANCH", 7 * 86_400_000, 2),
        ("main", "BRANCH", None, None),
        ("release", "TAG", 30 * 86_400_000, None),
    ]
    sql(f"ALTER TABLE {table} REPLACE TAG release AS OF VERSION {snapshots[1]}")
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'release'") == [(1,), (2,)]
    sql(f"ALTER TABLE {table} DROP TAG release")
    sql(f"ALTER TABLE {table} DROP BRANCH audit")
    assert sql(f"SELECT name FROM {table}.refs") == [("main",)]


def test_fast_forward(sql, table):
    sql(f"ALTER TABLE {table} CREATE BRANCH audit")
    sql(f"INSERT INTO {table}.branch_audit VALUES (10)")
    sql(f"CALL ice.system.fast_forward('{table}', 'main', 'audit')")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,), (10,)]


def test_write_audit_publish(sql, spark, table):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.id", "audit-1")
    try:
        sql(f"INSERT INTO {table} VALUES (4)")
    finally:
        spark.conf.unset("spark.wap.id")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,)]
    sql(f"CALL ice.system.publish_changes('{table}', 'audit-1')")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,), (4,)]


def test_rollback(sql, table, snapshots):
    first, second, third = snapshots
    assert sql(f"CALL ice.system.rollback_to_snapshot('{table}', {second})") == [(third, second)]
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,)]
    assert sql(f"CALL ice.system.set_current_snapshot('{table}', {third})") == [(second, third)]
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,)]
    history = sql(f"SELECT made_current_at, snapshot_id, is_current_ancestor FROM {table}.history")
    assert [row[1] for row in history] == [first, second, third, second, third]
    sql(f"CALL ice.system.rollback_to_snapshot('{table}', {first})")
    sql(f"INSERT INTO {table} VALUES (9)")
    assert sql(f"SELECT * FROM {table}") == [(1,), (9,)]


def test_cherrypick(sql, table, snapshots):
    sql(f"CALL ice.system.rollback_to_snapshot('{table}', {snapshots[0]})")
    sql(f"CALL ice.system.cherrypick_snapshot('{table}', {snapshots[2]})")
    assert sql(f"SELECT * FROM {table}") == [(1,), (3,)]


@pytest.mark.counts_versions
def test_metadata_tables(sql, table, snapshots):
    check_metadata_tables(sql, lambda name: f"{table}.{name}", snapshots)


def test_expire_snapshots(sql, table, snapshots):
    sql(f"ALTER TABLE {table} CREATE TAG kept AS OF VERSION {snapshots[0]}")
    sql(f"CALL ice.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)")
    left = [row[1] for row in sql(f"SELECT committed_at, snapshot_id FROM {table}.snapshots")]
    assert left == [snapshots[0], snapshots[2]]
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,)]
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'kept'") == [(1,)]


def test_compaction(sql, catalog_server, table):
    assert sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")[0][:2] == (3, 1)
    assert sql(f"SELECT count(*) FROM {table}.files") == [(1,)]
    assert sql(f"CALL ice.system.rewrite_manifests('{table}')")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,)]
    # Files are listed by Hadoop's file systems, of which none is for s3, or else by the catalog's FileIO.
    listing = ", prefix_listing => true" if catalog_server.files.in_s3 else ""
    assert sql(f"CALL ice.system.remove_orphan_files(table => '{table}', dry_run => true{listing})") == []
