"""A table that asks the server to put late appends on top of the head: Flink's are never moved, for it compares what it wrote."""

import pytest
from harness.cleaning import plant_orphan
from harness.compare import eventually, rows
from harness.flink import BATCH, STREAMING
from harness.history import check_line, line, moved
from harness.writers import append_row, each_once, in_parallel

pytestmark = pytest.mark.moorage_only
INSERTS_PER_WRITER = 3
# What a job of the newer sink does between its commits: it keeps one snapshot, and removes orphans of three days.
CLEANING = {
    "expire-snapshots.enabled": "true",
    "expire-snapshots.max-snapshot-age-seconds": "0",
    "expire-snapshots.retain-last": "1",
    "expire-snapshots.schedule.commit-count": "2",
    "delete-orphan-files.enabled": "true",
    "delete-orphan-files.schedule.interval-second": "2",
    "rate-limit-seconds": "1",
    "lock-check-delay-seconds": "1",
}


def test_flink_tries_again(sql, session, feed, iceberg, catalog_server, namespace):
    """Every row is there once, also when a job of Flink's has expired snapshots and removed orphans."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (writer INT, number INT) WITH ('commit.retry.num-retries' = '20', 'moorage.append-rebase' = 'on-all')")
    for number in range(INSERTS_PER_WRITER):
        in_parallel(lambda writer, number=number: session(BATCH).run(f"INSERT INTO {name} VALUES ({writer}, {number})"))
    expected = each_once(INSERTS_PER_WRITER)
    assert sql(f"SELECT * FROM {name}") == expected
    table = iceberg.load_table(name)
    check_line(table, len(expected))
    assert not moved(table)
    written = {snapshot.snapshot_id for snapshot in line(table)}
    orphan = None if catalog_server.files.in_s3 else plant_orphan(table.location())

    streams = session(STREAMING | {"table.exec.iceberg.use-v2-sink": "true"})
    hint = ", ".join(f"'flink-maintenance.{key}' = '{value}'" for key, value in CLEANING.items())
    source = feed.declare(streams, "writer INT, number INT")
    job = streams.start(f"INSERT INTO {name} /*+ OPTIONS({hint}) */ SELECT * FROM {source}")

    def cleaned() -> bool:
        expected.append((9, len(expected)))
        feed.put({"writer": 9, "number": expected[-1][1]})
        assert eventually(lambda: rows(iceberg.load_table(name)) == expected)
        left = {snapshot.snapshot_id for snapshot in iceberg.load_table(name).snapshots()}
        return not written & left and not (orphan and orphan.exists())

    assert eventually(cleaned)
    job.stop()
    assert sql(f"SELECT * FROM {name}") == expected
    append_row(iceberg.load_table(name), 10, 10)
    assert rows(iceberg.load_table(name)) == [*expected, (10, 10)]
