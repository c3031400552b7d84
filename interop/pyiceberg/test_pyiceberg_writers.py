"""Concurrent writers with PyIceberg's own retries, and what a stale writer is told."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import rows
from harness.history import line
from harness.proxy import bad_gateway, cut, unavailable
from harness.writers import WRITERS, append, each_once, in_parallel
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServiceUnavailableError
from pyiceberg.types import LongType
from requests.exceptions import ConnectionError

APPENDS_PER_WRITER = 5
SCHEMA = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])


def batch(writer: int, number: int) -> pa.Table:
    return pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA)


def test_concurrent_appends_all_arrive_once(catalog_server, iceberg, namespace):
    name = f"{namespace}.events"
    # The writers wait for nobody and meet at every commit: more tries than the default four.
    iceberg.create_table(name, schema=SCHEMA, properties={"commit.retry.num-retries": "20"})
    in_parallel(lambda writer: append(catalog_server, name, writer, APPENDS_PER_WRITER))
    table = iceberg.load_table(name)
    assert rows(table) == each_once(APPENDS_PER_WRITER)
    assert len(line(table)) == WRITERS * APPENDS_PER_WRITER


def test_concurrent_appends_beside_property_commits(catalog_server, iceberg, namespace):
    """Property commits name no requirement that an append breaks, and the other way round."""
    name = f"{namespace}.events"
    iceberg.create_table(name, schema=SCHEMA, properties={"commit.retry.num-retries": "20"})

    def set_properties(writer: int) -> None:
        table = clients.pyiceberg_catalog(catalog_server).load_table(name)
        for number in range(APPENDS_PER_WRITER):
            with table.transaction() as change:
                change.set_properties({f"writer.{writer}.{number}": "set"})

    def work(writer: int) -> None:
        if writer % 2:
            append(catalog_server, name, writer, APPENDS_PER_WRITER)
        else:
            set_properties(writer)

    in_parallel(work)
    table = iceberg.load_table(name)
    assert rows(table) == [(w, n) for w in (1, 3) for n in range(APPENDS_PER_WRITER)]
    assert {key for key in table.properties if key.startswith("writer.")} == {
        f"writer.{w}.{n}" for w in (0, 2) for n in range(APPENDS_PER_WRITER)
    }


def test_stale_schema_change_is_refused(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    stale = iceberg.load_table(f"{namespace}.events")
    with table.update_schema() as update:
        update.add_column("first", LongType())
    with pytest.raises(CommitFailedException, match="current schema|last assigned field id"):
        with stale.update_schema() as update:
            update.add_column("second", LongType())
    assert iceberg.load_table(f"{namespace}.events").schema().column_names == ["writer", "number", "first"]


def test_stale_append_is_rebuilt_by_the_client(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    stale = iceberg.load_table(f"{namespace}.events")
    table.append(batch(1, 1))
    stale.append(batch(2, 2))
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1, 1), (2, 2)]


def test_append_without_retries_is_refused(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA, properties={"commit.retry.num-retries": "0"})
    stale = iceberg.load_table(f"{namespace}.events")
    table.append(batch(1, 1))
    with pytest.raises(CommitFailedException, match="main has changed|branch main|was created concurrently"):
        stale.append(batch(2, 2))
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1, 1)]


@pytest.mark.parametrize(
    ("instead", "fault"),
    [(unavailable, ServiceUnavailableError), (bad_gateway, CommitStateUnknownException), (cut, ConnectionError)],
)
def test_lost_answer(watched, iceberg, namespace, instead, fault):
    """PyIceberg gives up without another try; the rows are there once."""
    iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    table = clients.pyiceberg_catalog(watched).load_table(f"{namespace}.events")
    watched.lose(lambda exchange: exchange.method == "POST", instead)
    with pytest.raises(fault):
        table.append(batch(1, 1))
    assert len(watched.posts("/events")) == 1
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1, 1)]


@pytest.mark.counts_versions
def test_several_changes_in_one_commit(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=SCHEMA)
    with table.transaction() as change:
        change.set_properties(owner="somebody")
        change.append(batch(1, 1))
        change.append(batch(2, 2))
        with change.update_schema() as update:
            update.add_column("note", LongType())
    table = iceberg.load_table(f"{namespace}.events")
    assert len(table.metadata.metadata_log) == 1, "more than one commit"
    assert table.properties["owner"] == "somebody"
    assert rows(table) == [(1, 1, None), (2, 2, None)]
