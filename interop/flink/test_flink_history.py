"""Snapshots: time travel, branches, tags, rollback, metadata tables, rows between two snapshots."""

import pytest
from harness.history import check_metadata_tables
from py4j.protocol import Py4JJavaError


@pytest.fixture
def table(sql, namespace):
    """A table with three snapshots: ids 1; 1, 2; 1, 2, 3."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT)")
    for value in (1, 2, 3):
        sql(f"INSERT INTO {name} VALUES ({value})")
    return name


@pytest.fixture
def snapshots(iceberg, table):
    """The ids of the table's three snapshots, oldest first."""
    return [snapshot.snapshot_id for snapshot in iceberg.load_table(table).snapshots()]


@pytest.fixture
def read(sql, table):
    """The ids that the table has when it is read with such options."""

    def run(**options) -> list[int]:
        said = ", ".join(f"'{name.replace('_', '-')}' = '{value}'" for name, value in options.items())
        hint = f"/*+ OPTIONS({said}) */" if said else ""
        return [value for (value,) in sql(f"SELECT * FROM {table} {hint}")]

    return run


def test_time_travel(iceberg, read, table, snapshots):
    assert read(snapshot_id=snapshots[1]) == [1, 2]
    moments = [snapshot.timestamp_ms for snapshot in iceberg.load_table(table).snapshots()]
    assert read(as_of_timestamp=moments[1]) == [1, 2]
    assert read(as_of_timestamp=moments[2] - 1) == [1, 2]
    with pytest.raises(Py4JJavaError, match="Cannot find a snapshot older than"):
        read(as_of_timestamp=moments[0] - 1)


def test_branches_and_tags(sql, iceberg, read, table, snapshots):
    refs = iceberg.load_table(table).manage_snapshots()
    refs.create_tag(snapshots[0], "release").create_branch(snapshots[1], "audit").commit()
    sql(f"INSERT INTO {table} /*+ OPTIONS('branch' = 'audit') */ VALUES (10)")
    sql(f"INSERT INTO {table} VALUES (4)")
    assert read(tag="release") == [1]
    assert read(branch="audit") == [1, 2, 10]
    assert read() == read(branch="main") == [1, 2, 3, 4]
    # A branch that is not there begins where the main one is.
    sql(f"INSERT INTO {table} /*+ OPTIONS('branch' = 'other') */ VALUES (20)")
    assert read(branch="main") == [1, 2, 3, 4]
    assert read(branch="other") == [1, 2, 3, 4, 20]
    assert sql(f"SELECT name, type FROM {table.replace('.events', '.`events$refs`')}") == [
        ("audit", "BRANCH"), ("main", "BRANCH"), ("other", "BRANCH"), ("release", "TAG"),
    ]  # fmt: skip
    for kind in ("tag", "branch"):
        with pytest.raises(Py4JJavaError, match="Cannot find ref absent"):
            read(**{kind: "absent"})


def test_rows_between_snapshots(iceberg, read, table, snapshots):
    """The start is left out, the end is not."""
    assert read(start_snapshot_id=snapshots[0]) == [2, 3]
    assert read(start_snapshot_id=snapshots[0], end_snapshot_id=snapshots[1]) == [2]
    iceberg.load_table(table).manage_snapshots().create_tag(snapshots[0], "from").create_tag(snapshots[2], "to").commit()
    assert read(start_tag="from", end_tag="to") == [2, 3]


def test_rollback(sql, read, table, snapshots):
    sql(f"ALTER TABLE {table} SET ('current-snapshot-id' = '{snapshots[1]}')")
    assert read() == [1, 2]
    sql(f"ALTER TABLE {table} SET ('current-snapshot-id' = '{snapshots[2]}')")
    assert read() == [1, 2, 3]
    sql(f"ALTER TABLE {table} SET ('current-snapshot-id' = '{snapshots[0]}')")
    sql(f"INSERT INTO {table} VALUES (9)")
    assert read() == [1, 9]


def test_cherrypick(sql, iceberg, read, table, snapshots):
    sql(f"ALTER TABLE {table} SET ('current-snapshot-id' = '{snapshots[0]}')")
    sql(f"ALTER TABLE {table} SET ('cherry-pick-snapshot-id' = '{snapshots[2]}', 'owner.team' = 'a')")
    assert read() == [1, 3]
    assert iceberg.load_table(table).properties["owner.team"] == "a"


@pytest.mark.counts_versions
def test_metadata_tables(sql, namespace, snapshots):
    check_metadata_tables(sql, lambda name: f"{namespace}.`events${name}`", snapshots)


def test_expired_by_others(sql, iceberg, read, table, snapshots):
    iceberg.load_table(table).maintenance.expire_snapshots().by_id(snapshots[0]).commit()
    assert read() == [1, 2, 3]
    sql(f"INSERT INTO {table} VALUES (4)")
    assert read() == [1, 2, 3, 4]
    with pytest.raises(Py4JJavaError):
        read(snapshot_id=snapshots[0])
