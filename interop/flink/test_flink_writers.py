"""Concurrent writers, each with its client's own retries."""

import threading

import pytest
from harness import clients
from harness.compare import eventually, rows
from harness.flink import BATCH, STREAMING, Feed, checkpoints
from harness.history import line
from harness.writers import WRITERS, append_row, each_once, in_parallel

INSERTS_PER_WRITER = 3


@pytest.fixture
def table(sql, namespace):
    """A table partitioned by writer. More tries than the default four: the writers meet at every commit."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (writer INT, number INT) PARTITIONED BY (writer) WITH ('commit.retry.num-retries' = '20')")
    return name


@pytest.fixture
def run_in_parallel(session):
    """Runs statement(writer) for all writers at once, each in a session of its own: with three nodes, on all of them."""

    def run(statement) -> None:
        in_parallel(lambda writer: session(BATCH).run(statement(writer)))

    return run


def test_concurrent_inserts_all_arrive_once(sql, run_in_parallel, iceberg, table):
    for number in range(INSERTS_PER_WRITER):
        run_in_parallel(lambda writer, number=number: f"INSERT INTO {table} VALUES ({writer}, {number})")
    assert sql(f"SELECT * FROM {table}") == each_once(INSERTS_PER_WRITER)
    assert len(line(iceberg.load_table(table))) == WRITERS * INSERTS_PER_WRITER


def test_concurrent_overwrites_of_different_partitions(sql, run_in_parallel, table):
    for writer in range(WRITERS):
        sql(f"INSERT INTO {table} VALUES ({writer}, 0), ({writer}, 1)")
    for number in (10, 20):
        run_in_parallel(lambda writer, number=number: f"INSERT OVERWRITE {table} PARTITION (writer = {writer}) VALUES ({number})")
    assert sql(f"SELECT * FROM {table}") == [(w, 20) for w in range(WRITERS)]


def test_jobs_of_one_table(session, iceberg, table, tmp_path, sink):
    """Two jobs write one table as their rows come. Each is known by the checkpoints that it committed."""
    feeds, jobs = [], []
    for writer in range(2):
        folder = tmp_path / str(writer)
        folder.mkdir()
        feeds.append(Feed(folder))
        streams = session(STREAMING | sink)
        jobs.append(streams.start(f"INSERT INTO {table} SELECT * FROM {feeds[writer].declare(streams, 'writer INT, number INT')}"))
    expected = []
    for number in range(5):
        for writer, feed in enumerate(feeds):
            feed.put({"writer": writer, "number": number})
            expected.append((writer, number))
        assert eventually(lambda: rows(iceberg.load_table(table)) == sorted(expected))
    for job in jobs:
        job.stop()
    found = iceberg.load_table(table)
    assert rows(found) == sorted(expected)
    assert set(checkpoints(found)) == {job.id for job in jobs}


def test_job_beside_other_engines(session, feed, sql, iceberg, catalog_server, table, sink):
    """A job commits as rows come, while PyIceberg appends rows and sets properties as fast as it can."""
    streams = session(STREAMING | sink)
    streams.start(f"INSERT INTO {table} SELECT * FROM {feed.declare(streams, 'writer INT, number INT')}")
    done = threading.Event()
    appended = []

    def append() -> None:
        other = clients.pyiceberg_catalog(catalog_server).load_table(table)
        while not done.is_set():
            append_row(other, 1, len(appended))
            appended.append(len(appended))
            with other.transaction() as change:
                change.set_properties({"appended": str(len(appended))})

    beside = threading.Thread(target=append)
    beside.start()
    try:
        for number in range(6):
            feed.put({"writer": 0, "number": number})
            handed = [(0, each) for each in range(number + 1)]
            assert eventually(lambda: rows(iceberg.load_table(table), row_filter="writer = 0") == handed)
    finally:
        done.set()
        beside.join()
    found = iceberg.load_table(table)
    assert rows(found) == [(0, n) for n in range(6)] + [(1, n) for n in appended]
    assert sql(f"SELECT * FROM {table}") == rows(found)
    assert found.properties["appended"] == str(len(appended))
    assert len(line(found)) >= 6 + len(appended)


def test_statement_set(session, watched, sql, table, namespace):
    """What is written to several tables by one job is one commit for each: Flink asks for no more."""
    sql(f"CREATE TABLE {namespace}.other (number INT)")
    inserts = f"INSERT INTO {table} VALUES (1, 2); INSERT INTO {namespace}.other VALUES (3);"
    session(BATCH, server=watched).run(f"EXECUTE STATEMENT SET BEGIN {inserts} END")
    assert sql(f"SELECT * FROM {table}") == [(1, 2)]
    assert sql(f"SELECT * FROM {namespace}.other") == [(3,)]
    assert watched.posts("/transactions/commit") == []
