"""The history of a table according to its metadata."""

from collections.abc import Callable

from harness.compare import ordered


def line(table) -> list:
    """The snapshots of a PyIceberg table's main branch, oldest first. The table must have no other snapshots."""
    found = []
    snapshot = table.current_snapshot()
    while snapshot:
        found.insert(0, snapshot)
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent else None
    assert len(found) == len(table.snapshots()), "the history is not one line"
    return found


def parents(table) -> list[tuple[int, int | None]]:
    """The snapshots of a table's line, each with its parent, in the order of the rows of a metadata table."""
    return ordered((snapshot.snapshot_id, snapshot.parent_snapshot_id) for snapshot in line(table))


def rows_added(table) -> int:
    """The total number of rows that the snapshots of a table's line added."""
    return sum(int(snapshot.summary["added-records"] or 0) for snapshot in line(table))


def check_line(table, snapshots: int) -> None:
    """Checks that a PyIceberg table has so many snapshots in one line, and that its log has the same order."""
    found = [snapshot.snapshot_id for snapshot in line(table)]
    assert len(found) == snapshots
    assert [entry.snapshot_id for entry in table.history()] == found


def moved(table) -> int:
    """The number of snapshots of a table's line that the server rebased onto another parent."""
    return sum("moorage.rebased" in snapshot.summary.additional_properties for snapshot in line(table))


def check_metadata_tables(sql: Callable[[str], list[tuple]], of: Callable[[str], str], snapshots: list[int]) -> None:
    """Checks the metadata tables, in Spark or Flink, of a table whose three snapshots added a row each.

    snapshots are oldest first. The table is not partitioned and has no other changes. of returns the engine's
    name for a metadata table.
    """
    first, second, third = snapshots
    made = sql(f"SELECT committed_at, snapshot_id, parent_id, operation, summary['added-records'] FROM {of('snapshots')}")
    assert [row[1:] for row in made] == [(first, None, "append", "1"), (second, first, "append", "1"), (third, second, "append", "1")]
    history = sql(f"SELECT made_current_at, snapshot_id, is_current_ancestor FROM {of('history')}")
    assert [row[1:] for row in history] == [(snapshot, True) for snapshot in snapshots]
    assert sql(f"SELECT SUM(record_count), COUNT(*) FROM {of('files')}") == [(3, 3)]
    assert sql(f"SELECT COUNT(*) FROM {of('manifests')}") == [(3,)]
    assert sql(f"SELECT COUNT(*) FROM {of('entries')}") == [(3,)]
    assert sql(f"SELECT record_count, file_count FROM {of('partitions')}") == [(3, 3)]
    assert sql(f"SELECT name, type, snapshot_id FROM {of('refs')}") == [("main", "BRANCH", third)]
    assert sql(f"SELECT COUNT(DISTINCT file_path) FROM {of('all_data_files')}") == [(3,)]
    log = sql(f"SELECT `timestamp`, `file`, latest_snapshot_id FROM {of('metadata_log_entries')}")
    assert [row[2] for row in log] == [None, *snapshots]
