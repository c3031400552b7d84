"""Snapshots: time travel, branches, tags, rollback, metadata tables, expiry, compaction, orphans."""

import pytest
from harness.compare import rows
from harness.trino import metadata


@pytest.fixture
def table(sql, namespace):
    """A table with three snapshots: ids 1; 1, 2; 1, 2, 3."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
    for value in (2, 3):
        sql(f"INSERT INTO {name} VALUES {value}")
    return name


@pytest.fixture
def snapshots(sql, table):
    """The ids of the table's three snapshots, oldest first."""
    return [snapshot for _, snapshot in sql(f"SELECT committed_at, snapshot_id FROM {metadata(table, 'snapshots')}")]


def test_time_travel(sql, table, snapshots):
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF {snapshots[1]}") == [(1,), (2,)]
    [(moment,)] = sql(f"SELECT committed_at FROM {metadata(table, 'snapshots')} WHERE snapshot_id = {snapshots[1]}")
    assert sql(f"SELECT * FROM {table} FOR TIMESTAMP AS OF TIMESTAMP '{moment:%F %T.%f} UTC'") == [(1,), (2,)]
    sql(f"ALTER TABLE {table} ADD COLUMN note VARCHAR")
    # As it was then, with the columns of then.
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF {snapshots[2]}") == [(1,), (2,), (3,)]
    assert sql(f"SELECT * FROM {table}") == [(1, None), (2, None), (3, None)]


def test_branches_and_tags(sql, iceberg, table, snapshots):
    """Trino reads those that others make, and leaves them as they are."""
    manage = iceberg.load_table(table).manage_snapshots()
    manage.create_tag(snapshots[0], "release", max_ref_age_ms=86_400_000).create_branch(
        snapshots[1], "audit", max_snapshot_age_ms=1000, min_snapshots_to_keep=2
    ).commit()
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF 'release'") == [(1,)]
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF 'audit'") == [(1,), (2,)]
    expected = [
        ("audit", "BRANCH", snapshots[1], None, 2, 1000),
        ("main", "BRANCH", snapshots[2], None, None, None),
        ("release", "TAG", snapshots[0], 86_400_000, None, None),
    ]
    assert sql(f"SELECT * FROM {metadata(table, 'refs')}") == expected
    sql(f"INSERT INTO {table} VALUES 4")
    [(_, _, now)] = sql(f"SELECT name, type, snapshot_id FROM {metadata(table, 'refs')} WHERE name = 'main'")
    assert now not in snapshots
    assert sql(f"SELECT * FROM {metadata(table, 'refs')} WHERE name <> 'main'") == [expected[0], expected[2]]


def test_rollback(sql, iceberg, table, snapshots):
    first, second, third = snapshots
    sql(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot({second})")
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (2,)]
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF {third}") == [(1,), (2,), (3,)]
    # Trino's history is of snapshots; when which was current is in the table's metadata.
    history = sql(f"SELECT made_current_at, snapshot_id, is_current_ancestor FROM {metadata(table, 'history')}")
    assert [row[1:] for row in history] == [(first, True), (second, True), (third, False)]
    assert [entry.snapshot_id for entry in iceberg.load_table(table).history()] == [first, second, third, second]
    namespace, name = table.split(".")
    sql(f"CALL system.rollback_to_snapshot('{namespace}', '{name}', {first})")
    sql(f"INSERT INTO {table} VALUES 9")
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (9,)]
    # It goes to whichever snapshot there is, be it on no line with the present one.
    sql(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot({third})")
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (2,), (3,)]


@pytest.mark.counts_versions
def test_metadata_tables(sql, iceberg, table, snapshots):
    def of(which: str, columns: str) -> list[tuple]:
        return sql(f"SELECT {columns} FROM {metadata(table, which)}")

    made = of("snapshots", "committed_at, snapshot_id, parent_id, operation, summary['added-records']")
    assert [row[1:] for row in made] == [
        (snapshots[0], None, "append", "1"), (snapshots[1], snapshots[0], "append", "1"), (snapshots[2], snapshots[1], "append", "1"),
    ]  # fmt: skip
    assert [row[1:] for row in of("history", "made_current_at, snapshot_id, parent_id")] == [
        (snapshots[0], None), (snapshots[1], snapshots[0]), (snapshots[2], snapshots[1]),
    ]  # fmt: skip
    assert of("refs", "name, type, snapshot_id") == [("main", "BRANCH", snapshots[2])]
    # Each change of rows is followed by one that sets statistics.
    logged = of("metadata_log_entries", "timestamp, file, latest_snapshot_id, latest_schema_id, latest_sequence_number")
    assert [row[2:] for row in logged] == [(snapshots[n // 2], 0, n // 2 + 1) for n in range(6)]
    assert [row[1].rsplit("/", 1)[1][:6] for row in logged] == [f"{n:05}-" for n in range(6)]
    assert logged[-1][1] == iceberg.load_table(table).metadata_location
    assert of("files", "content, record_count") == [(0, 1)] * 3
    assert sorted(of("entries", "snapshot_id, status")) == sorted((each, 1) for each in snapshots)
    assert of("all_entries", "count(*)") == [(3,)]
    assert of("manifests", "added_data_files_count, added_rows_count") == [(1, 1)] * 3
    assert of("partitions", "record_count, file_count") == [(3, 3)]
    assert dict(of("properties", "key, value"))["current-snapshot-id"] == str(snapshots[2])
    assert sql(f'SELECT id, "$path" FROM {table} WHERE id = 1')[0][1].startswith(iceberg.load_table(table).location() + "/data/")


def test_changes_between_snapshots(sql, table, snapshots):
    namespace, name = table.split(".")
    changes = f"TABLE(system.table_changes('{namespace}', '{name}', {snapshots[0]}, {snapshots[2]}))"
    assert sql(f"SELECT id, _change_type, _change_version_id, _change_ordinal FROM {changes}") == [
        (2, "insert", snapshots[1], 0), (3, "insert", snapshots[2], 1),
    ]  # fmt: skip


def test_expire_snapshots(sql, iceberg, catalog_server, table, snapshots):
    loaded = iceberg.load_table(table)
    loaded.manage_snapshots().create_tag(snapshots[0], "kept").commit()
    lists = [snapshot.manifest_list for snapshot in loaded.snapshots()]
    sql(f"ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')")
    left = [row[1] for row in sql(f"SELECT committed_at, snapshot_id FROM {metadata(table, 'snapshots')}")]
    assert left == [snapshots[0], snapshots[2]]
    assert [bool(catalog_server.files.list(each)) for each in lists] == [True, False, True]
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (2,), (3,)]
    assert sql(f"SELECT * FROM {table} FOR VERSION AS OF 'kept'") == [(1,)]
    with pytest.raises(Exception, match="INVALID_ARGUMENTS"):
        sql(f"SELECT * FROM {table} FOR VERSION AS OF {snapshots[1]}")


def test_optimize(sql, iceberg, table):
    sql(f"ALTER TABLE {table} EXECUTE optimize")
    assert sql(f"SELECT record_count FROM {metadata(table, 'files')}") == [(3,)]
    assert sql(f"SELECT operation FROM {metadata(table, 'snapshots')} ORDER BY committed_at DESC LIMIT 1") == [("replace",)]
    for value in (4, 5):
        sql(f"INSERT INTO {table} VALUES {value}")
    assert sql(f"SELECT count(*) FROM {metadata(table, 'manifests')}") > [(1,)]
    sql(f"ALTER TABLE {table} EXECUTE optimize_manifests")
    assert sql(f"SELECT count(*) FROM {metadata(table, 'manifests')}") == [(1,)]
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (2,), (3,), (4,), (5,)]


def test_remove_orphan_files(sql, iceberg, catalog_server, table):
    """It removes what no snapshot names, and nothing else: not the metadata file, nor those in its log."""
    loaded = iceberg.load_table(table)
    with loaded.io.new_output(f"{loaded.location()}/data/stray.parquet").create() as stray:
        stray.write(b"nobody's")
    with loaded.io.new_output(f"{loaded.location()}/metadata/stray.avro").create() as stray:
        stray.write(b"nobody's")
    files = catalog_server.files.list(loaded.location())
    sql(f"ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '0s')")
    left = catalog_server.files.list(loaded.location())
    assert left == [file for file in files if "/stray." not in file]
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == [(1,), (2,), (3,)]
    sql(f"INSERT INTO {table} VALUES 4")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,), (3,), (4,)]
