"""Jobs without an end: rows that are written as they come, and tables that are read as they grow."""

import itertools

import pyarrow as pa
import pytest
from harness.compare import eventually, ordered, rows
from harness.flink import STREAMING, checkpoints
from harness.history import line, rows_added

PLACES = ["oslo", "rome", "bern"]


def test_inserts(session, feed, sql, iceberg, namespace, sink):
    """At each moment the table has the rows that were handed over, and no commit is there twice."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT, place STRING) PARTITIONED BY (place)")
    streams = session(STREAMING | sink)
    job = streams.start(f"INSERT INTO {name} SELECT * FROM {feed.declare(streams, 'id INT, place STRING')}")
    expected = []
    for number in range(4):
        new = [(number * 10 + each, PLACES[each % 3]) for each in range(5)]
        feed.put(*({"id": id, "place": place} for id, place in new))
        expected += new
        assert eventually(lambda: rows(iceberg.load_table(name)) == ordered(expected))
        assert sql(f"SELECT * FROM {name}") == ordered(expected)
    job.stop()
    table = iceberg.load_table(name)
    assert rows(table) == ordered(expected)
    assert rows_added(table) == len(expected)
    [(of, numbers)] = checkpoints(table).items()
    assert of == job.id
    assert len(numbers) >= 4


@pytest.mark.parametrize("version", [2, 3])
def test_upserts(session, feed, sql, query, iceberg, namespace, sink, version):
    """Rows that come in place of others, and rows that go."""
    name = f"{namespace}.events"
    sql(
        f"CREATE TABLE {name} (id INT, place STRING, PRIMARY KEY (id) NOT ENFORCED) "
        f"WITH ('format-version' = '{version}', 'write.upsert.enabled' = 'true')"
    )
    streams = session(STREAMING | sink)
    source = feed.declare(streams, "id INT, place STRING, PRIMARY KEY (id) NOT ENFORCED", "debezium-json")
    job = streams.start(f"INSERT INTO {name} SELECT * FROM {source}")

    def put(op: str, *new: tuple[int, str]) -> None:
        values = [{"id": id, "place": place} for id, place in new]
        feed.put(*({"op": op, "before": value if op == "d" else None, "after": None if op == "d" else value} for value in values))

    put("c", (1, "oslo"), (2, "rome"), (3, "bern"), (3, "nice"))
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == [(1, "oslo"), (2, "rome"), (3, "nice")])
    put("c", (2, "york"), (4, "oslo"))
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == [(1, "oslo"), (2, "york"), (3, "nice"), (4, "oslo")])
    put("d", (1, "oslo"), (4, "oslo"))
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == [(2, "york"), (3, "nice")])
    put("c", (1, "back"))
    expected = [(1, "back"), (2, "york"), (3, "nice")]
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == expected)
    job.stop()
    assert sql(f"SELECT * FROM {name}") == expected
    assert query(f"SELECT * FROM ice.{name}") == expected, "DuckDB reads other rows"
    table = iceberg.load_table(name)
    assert sum(int(snapshot.summary["added-equality-deletes"] or 0) for snapshot in line(table)) > 0
    with pytest.raises(ValueError, match="equality deletes"):
        rows(table)


def test_retractions(session, feed, sql, namespace, sink):
    """Counts that change as rows come: each takes the one before back."""
    name = f"{namespace}.totals"
    sql(f"CREATE TABLE {name} (place STRING, total BIGINT, PRIMARY KEY (place) NOT ENFORCED) WITH ('format-version' = '2')")
    streams = session(STREAMING | sink)
    source = feed.declare(streams, "place STRING")
    streams.start(f"INSERT INTO {name} SELECT place, COUNT(*) FROM {source} GROUP BY place")
    feed.put({"place": "oslo"}, {"place": "rome"}, {"place": "oslo"})
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == [("oslo", 2), ("rome", 1)])
    feed.put({"place": "rome"}, {"place": "bern"})
    assert eventually(lambda: sql(f"SELECT * FROM {name}") == [("bern", 1), ("oslo", 2), ("rome", 2)])


def test_branch(session, feed, sql, iceberg, namespace, sink):
    """A job that writes to a branch moves nothing else."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT)")
    sql(f"INSERT INTO {name} VALUES (1)")
    start = iceberg.load_table(name).current_snapshot().snapshot_id
    iceberg.load_table(name).manage_snapshots().create_branch(start, "audit").commit()
    streams = session(STREAMING | sink)
    streams.start(f"INSERT INTO {name} /*+ OPTIONS('branch' = 'audit') */ SELECT * FROM {feed.declare(streams, 'id INT')}")
    for id in (2, 3):
        feed.put({"id": id})
        of_branch = f"SELECT * FROM {name} /*+ OPTIONS('branch' = 'audit') */"
        assert eventually(lambda: sql(of_branch) == [(each,) for each in range(1, id + 1)])
    assert iceberg.load_table(name).current_snapshot().snapshot_id == start
    assert sql(f"SELECT * FROM {name}") == [(1,)]


@pytest.fixture
def growing(sql, iceberg, namespace):
    """A table with three snapshots: ids 1; 1, 2; 1, 2, 3."""
    name = f"{namespace}.growing"
    sql(f"CREATE TABLE {name} (id INT)")
    for value in (1, 2, 3):
        sql(f"INSERT INTO {name} VALUES ({value})")
    return iceberg.load_table(name)


def append(table, id: int) -> None:
    table.append(pa.table({"id": [id]}, schema=pa.schema([pa.field("id", pa.int32())])))


@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        ("INCREMENTAL_FROM_SNAPSHOT_ID", [2, 3]),
        ("INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP", [2, 3]),
        ("INCREMENTAL_FROM_EARLIEST_SNAPSHOT", [1, 2, 3]),
        ("INCREMENTAL_FROM_LATEST_SNAPSHOT", [3]),
        ("TABLE_SCAN_THEN_INCREMENTAL", [1, 2, 3]),
    ],
)
def test_read_as_it_grows(session, sql, namespace, growing, strategy, first):
    """A reader gets each row once: those that it begins with, and then those of each commit, whoever made it."""
    options = {"streaming": "true", "monitor-interval": "200ms", "starting-strategy": strategy}
    middle = growing.snapshots()[1]
    if strategy == "INCREMENTAL_FROM_SNAPSHOT_ID":
        options["start-snapshot-id"] = str(middle.snapshot_id)
    if strategy == "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP":
        options["start-snapshot-timestamp"] = str(middle.timestamp_ms)
    said = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    with session(STREAMING).read(f"SELECT id FROM {namespace}.growing /*+ OPTIONS({said}) */") as found:
        assert ordered(itertools.islice(found, len(first))) == [(id,) for id in first]
        append(growing, 4)
        assert next(found) == (4,)
        sql(f"INSERT INTO {namespace}.growing VALUES (5)")
        assert next(found) == (5,)
        sql(f"ALTER TABLE {namespace}.growing SET ('owner.team' = 'a')")
        sql(f"INSERT INTO {namespace}.growing VALUES (6), (7)")
        assert ordered(itertools.islice(found, 2)) == [(6,), (7,)]


def test_from_table_to_table(flink, session, sql, iceberg, namespace, growing, sink):
    """A job that copies a table as it grows, through the loss of the task managers."""
    sql(f"CREATE TABLE {namespace}.copy (id INT)")
    streams = session(STREAMING | sink)
    hint = "/*+ OPTIONS('streaming' = 'true', 'monitor-interval' = '200ms', 'starting-strategy' = 'TABLE_SCAN_THEN_INCREMENTAL') */"
    streams.start(f"INSERT INTO {namespace}.copy SELECT id FROM {namespace}.growing {hint}")

    def copied(expected: range) -> bool:
        return eventually(lambda: rows(iceberg.load_table(f"{namespace}.copy")) == [(id,) for id in expected])

    assert copied(range(1, 4))
    append(growing, 4)
    assert copied(range(1, 5))
    flink.lose_task_managers()
    append(growing, 5)
    append(growing, 6)
    assert copied(range(1, 7))
    assert rows_added(iceberg.load_table(f"{namespace}.copy")) == 6


def test_maintenance(session, feed, sql, iceberg, namespace):
    """A job of the newer sink that also merges the files that it wrote and expires snapshots, between its own commits."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT)")
    streams = session(STREAMING | {"table.exec.iceberg.use-v2-sink": "true"})
    settings = {
        "rewrite.enabled": "true",
        "rewrite.rewrite-all": "true",
        "rewrite.schedule.commit-count": "3",
        "expire-snapshots.enabled": "true",
        "expire-snapshots.max-snapshot-age-seconds": "0",
        "expire-snapshots.retain-last": "2",
        "expire-snapshots.schedule.commit-count": "4",
        "rate-limit-seconds": "1",
        "lock-check-delay-seconds": "1",
    }
    hint = ", ".join(f"'flink-maintenance.{key}' = '{value}'" for key, value in settings.items())
    job = streams.start(f"INSERT INTO {name} /*+ OPTIONS({hint}) */ SELECT * FROM {feed.declare(streams, 'id INT')}")
    handed, operations, oldest = [], set(), set()

    def maintained() -> bool:
        handed.append((len(handed),))
        feed.put({"id": handed[-1][0]})
        assert eventually(lambda: rows(iceberg.load_table(name)) == handed)
        snapshots = iceberg.load_table(name).snapshots()
        operations.update(snapshot.summary.operation.value for snapshot in snapshots)
        oldest.add(min(snapshot.sequence_number for snapshot in snapshots))
        return "replace" in operations and len(oldest) > 1

    assert eventually(maintained)
    handed.append((-1,))
    feed.put({"id": -1})
    assert eventually(lambda: rows(iceberg.load_table(name)) == ordered(handed))
    job.stop()
    assert sql(f"SELECT * FROM {name}") == ordered(handed)
