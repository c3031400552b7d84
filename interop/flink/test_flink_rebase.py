"""A table that asks the server to put late appends on top of the head: Flink's are never moved, for it compares what it wrote."""

import pytest
from harness.compare import rows
from harness.flink import BATCH
from harness.history import line
from harness.writers import append_row, each_once, in_parallel

pytestmark = pytest.mark.moorage_only
INSERTS_PER_WRITER = 3


def test_flink_tries_again(sql, session, iceberg, namespace):
    """Every row is there once. PyIceberg expires and goes on afterwards, as Flink's SQL cannot."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (writer INT, number INT) WITH ('commit.retry.num-retries' = '20', 'moorage.append-rebase' = 'on')")
    for number in range(INSERTS_PER_WRITER):
        in_parallel(lambda writer, number=number: session(BATCH).run(f"INSERT INTO {name} VALUES ({writer}, {number})"))
    expected = each_once(INSERTS_PER_WRITER)
    assert sql(f"SELECT * FROM {name}") == expected
    table = iceberg.load_table(name)
    assert len(line(table)) == len(expected)
    assert not any(snapshot.summary["moorage.rebased"] for snapshot in line(table))
    expire = table.maintenance.expire_snapshots()
    for snapshot in line(table)[:-1]:
        expire = expire.by_id(snapshot.snapshot_id)
    expire.commit()
    assert sql(f"SELECT * FROM {name}") == expected
    append_row(iceberg.load_table(name), 9, 9)
    assert rows(iceberg.load_table(name)) == [*expected, (9, 9)]
