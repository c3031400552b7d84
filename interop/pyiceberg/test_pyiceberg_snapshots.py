"""History: time travel, branches, tags, rollback, metadata tables, expiry."""

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from harness.compare import rows
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.refs import SnapshotRefType


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.fixture
def table(iceberg, namespace):
    """A table with three snapshots: ids 1; 1, 2; 1, 2, 3."""
    made = iceberg.create_table(f"{namespace}.events", schema=numbers().schema)
    for value in (1, 2, 3):
        made.append(numbers(value))
    return made


def ids(table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def test_time_travel(iceberg, table):
    first, second, third = ids(table)
    assert rows(table, snapshot_id=first) == [(1,)]
    assert rows(table, snapshot_id=second) == [(1,), (2,)]
    moment = table.snapshot_by_id(second).timestamp_ms
    assert table.snapshot_as_of_timestamp(moment).snapshot_id == second
    assert [entry.snapshot_id for entry in iceberg.load_table(table.name()).history()] == [first, second, third]


def test_branches_and_tags(iceberg, table):
    first, _, third = ids(table)
    change = table.manage_snapshots()
    change.create_tag(first, "release", max_ref_age_ms=86_400_000)
    change.create_branch(third, "audit", min_snapshots_to_keep=2)
    change.commit()
    table.append(numbers(10), branch="audit")
    table.append(numbers(4))

    table = iceberg.load_table(table.name())
    assert rows(table) == [(1,), (2,), (3,), (4,)]
    assert sorted(table.scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [1, 2, 3, 10]
    assert table.scan().use_ref("release").to_arrow()["id"].to_pylist() == [1]
    refs = table.refs()
    assert refs["release"].snapshot_ref_type == SnapshotRefType.TAG
    assert refs["release"].max_ref_age_ms == 86_400_000
    assert refs["audit"].snapshot_ref_type == SnapshotRefType.BRANCH

    change = table.manage_snapshots()
    change.remove_tag("release")
    change.remove_branch("audit")
    change.commit()
    assert set(iceberg.load_table(table.name()).refs()) == {"main"}


def test_stale_branch_is_refused(iceberg, table):
    first, _, third = ids(table)
    stale = iceberg.load_table(table.name())
    table.manage_snapshots().create_branch(third, "audit").commit()
    with pytest.raises(CommitFailedException, match="audit"):
        stale.manage_snapshots().create_branch(first, "audit").commit()
    assert iceberg.load_table(table.name()).refs()["audit"].snapshot_id == third


def test_rollback(iceberg, table):
    first, second, third = ids(table)
    table.manage_snapshots().rollback_to_snapshot(second).commit()
    table = iceberg.load_table(table.name())
    assert rows(table) == [(1,), (2,)]
    assert [entry.snapshot_id for entry in table.history()] == [first, second, third, second]
    table.manage_snapshots().set_current_snapshot(snapshot_id=third).commit()
    assert rows(iceberg.load_table(table.name())) == [(1,), (2,), (3,)]
    table = iceberg.load_table(table.name())
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.append(numbers(9))
    assert rows(iceberg.load_table(table.name())) == [(1,), (9,)]


@pytest.mark.counts_versions
def test_metadata_tables(table):
    inspect = table.inspect
    assert inspect.snapshots()["snapshot_id"].to_pylist() == ids(table)
    assert inspect.snapshots()["operation"].to_pylist() == ["append"] * 3
    assert inspect.history()["snapshot_id"].to_pylist() == ids(table)
    assert inspect.files()["record_count"].to_pylist() == [1, 1, 1]
    assert len(inspect.manifests()) == 3
    assert len(inspect.entries()) == 3
    assert inspect.refs()["name"].to_pylist() == ["main"]
    log = inspect.metadata_log_entries()
    assert len(log) == 4
    assert log["file"].to_pylist()[-1] == table.metadata_location


def test_expire_snapshots(iceberg, table):
    first, second, third = ids(table)
    table.manage_snapshots().create_tag(first, "kept").commit()
    table.maintenance.expire_snapshots().by_id(second).commit()
    table = iceberg.load_table(table.name())
    assert ids(table) == [first, third]
    assert rows(table) == [(1,), (2,), (3,)]
    assert rows(table, snapshot_id=first) == [(1,)]
    later = datetime.now(timezone.utc).replace(tzinfo=None) + timedelta(days=1)
    table.manage_snapshots().remove_tag("kept").commit()
    table.maintenance.expire_snapshots().older_than(later).commit()
    table = iceberg.load_table(table.name())
    assert ids(table) == [third]
    assert rows(table) == [(1,), (2,), (3,)]


@pytest.mark.counts_versions
def test_metadata_log_is_bounded(catalog_server, iceberg, namespace):
    name = f"{namespace}.events"
    table = iceberg.create_table(
        name,
        schema=numbers().schema,
        properties={
            "write.metadata.previous-versions-max": "2",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )
    locations = [table.metadata_location]
    for value in range(5):
        table.append(numbers(value))
        locations.append(table.metadata_location)
    table = iceberg.load_table(name)
    assert [entry.metadata_file for entry in table.metadata.metadata_log] == locations[-3:-1]
    left = catalog_server.files.list(f"{table.location()}/metadata")
    assert [catalog_server.files.path(location) in left for location in locations] == [False] * 3 + [True] * 3
