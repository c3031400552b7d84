"""Jobs that go on: after a stop, without their task managers, after lost answers, beside a server that was killed.

A job that went back to a checkpoint has rows to write that it may have written: its committer looks in the summaries of
the table's snapshots for the last checkpoint that it committed.
"""

import json

import pytest
from harness import clients, server
from harness.compare import eventually, ordered, rows
from harness.flink import SAVED, STREAMING, checkpoints
from harness.history import line, rows_added
from harness.proxy import bad_gateway, cut, unavailable


class Handed:
    """Rows that are handed to the jobs of a feed, each of which a table is to have once."""

    def __init__(self, feed, catalog, table: str):
        self._feed = feed
        self._catalog = catalog
        self._table = table
        self._rows: list[tuple[int]] = []

    def put(self, id: int) -> None:
        self._rows.append((id,))
        self._feed.put({"id": id})

    def arrive(self, id: int) -> None:
        """Hands over a row, and waits until the table has that one and all before."""
        self.put(id)
        assert eventually(lambda: rows(self._catalog.load_table(self._table)) == ordered(self._rows))

    def check(self) -> None:
        table = self._catalog.load_table(self._table)
        assert rows(table) == ordered(self._rows)
        assert rows_added(table) == len(self._rows)
        assert checkpoints(table)


@pytest.fixture
def table(sql, namespace):
    """The name of an empty table."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT)")
    return name


@pytest.fixture
def handed(feed, iceberg, table):
    """What the table is to have, also when the test is over."""
    made = Handed(feed, iceberg, table)
    yield made
    made.check()


@pytest.fixture
def start(session, feed, table, sink):
    """Starts a job that writes the feed to the table, in a session of its own."""

    def run(settings=None, **of):
        made = session(STREAMING | sink | (settings or {}), **of)
        return made.start(f"INSERT INTO {table} SELECT * FROM {feed.declare(made, 'id INT')}")

    return run


def has_rows(exchange) -> bool:
    """Whether it is a commit of rows: others are of checkpoints without any."""
    return exchange.method == "POST" and exchange.path.endswith("/events") and b'"added-records"' in exchange.body


def test_stopped_jobs(start, handed, iceberg, table):
    job = start()
    handed.arrive(1)
    handed.arrive(2)
    saved = job.stop()
    handed.put(3)  # nobody is there to take it
    job = start({SAVED: saved})
    handed.arrive(4)
    saved = job.stop()
    job = start({SAVED: saved})
    handed.arrive(5)
    job.stop()
    assert len(checkpoints(iceberg.load_table(table))) == 3


def test_lost_task_managers(flink, start, handed):
    job = start()
    handed.arrive(1)
    for id in (2, 3):
        flink.lose_task_managers()
        handed.put(10 * id)
        assert eventually(lambda restarts=id - 1: job.restarts() == restarts)
        handed.arrive(id)


@pytest.mark.moorage_only
def test_lost_with_the_answer(flink, watched, start, handed, iceberg, table):
    """A commit that happened, of which the job that sent it never heard: it ended with all its tasks."""
    job = start(server=watched)
    handed.arrive(1)

    def crash(handler) -> None:
        flink.lose_task_managers()
        cut(handler)

    watched.lose(has_rows, crash)
    handed.arrive(2)
    assert eventually(lambda: job.restarts() == 1)
    handed.arrive(3)
    job.stop()
    sent = {_snapshot(exchange) for exchange in watched.seen if has_rows(exchange) and exchange.status == 200}
    assert sent == {snapshot.snapshot_id for snapshot in line(iceberg.load_table(table)) if snapshot.summary["added-records"]}


def _snapshot(exchange) -> int:
    """The id of the snapshot that a commit adds."""
    [found] = [update["snapshot"]["snapshot-id"] for update in json.loads(exchange.body)["updates"] if update["action"] == "add-snapshot"]
    return found


@pytest.mark.moorage_only
@pytest.mark.parametrize(("instead", "times", "restarts"), [(unavailable, 2, 0), (bad_gateway, 1, 0), (cut, 1, 1)])
def test_lost_answer(watched, start, handed, instead, times, restarts):
    """The commit is sent again with its key, or found in the table at once, or found there by the job that goes on."""
    job = start(server=watched)
    handed.arrive(1)
    before = len(watched.seen)
    watched.lose(has_rows, instead)
    handed.arrive(2)
    handed.arrive(3)
    sent = [exchange for exchange in watched.seen[before:] if has_rows(exchange)]
    assert {exchange.status for exchange in sent} == {200}
    lost = [exchange for exchange in sent if _snapshot(exchange) == _snapshot(sent[0])]
    assert len(lost) == times
    assert len({exchange.headers["idempotency-key"] for exchange in lost}) == 1
    assert job.restarts() == restarts


@pytest.mark.moorage_only
def test_killed_server(session, feed, sink):
    """A server is killed between two checkpoints and comes back: the job fails meanwhile, and goes on."""
    with server.Moorage(port=server.free_port()) as killed:
        streams = session(STREAMING | sink, server=killed)
        streams.run("CREATE DATABASE killed")
        streams.run("CREATE TABLE killed.events (id INT)")
        handed = Handed(feed, clients.pyiceberg_catalog(killed), "killed.events")
        job = streams.start(f"INSERT INTO killed.events SELECT * FROM {feed.declare(streams, 'id INT')}")
        handed.arrive(1)
        for id in (2, 3):
            killed.kill()
            handed.put(10 * id)
            failures = job.restarts()
            assert eventually(lambda before=failures: job.restarts() > before)
            killed.start()
            handed.arrive(id)
        job.stop()
        handed.check()
