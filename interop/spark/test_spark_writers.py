"""Concurrent writers with Spark's own retries."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import rows
from harness.parallel import WRITERS, in_parallel

INSERTS_PER_WRITER = 3


@pytest.fixture
def table(sql, namespace):
    """A table partitioned by writer. More tries than the default four: the writers meet at every commit."""
    name = f"{namespace}.events"
    sql(
        f"CREATE TABLE {name} (writer INT, number INT) USING iceberg PARTITIONED BY (writer) "
        "TBLPROPERTIES ('commit.retry.num-retries' = '20')"
    )
    return name


def test_concurrent_inserts_all_arrive_once(sql, catalogs, table):
    def insert(writer: int) -> None:
        for number in range(INSERTS_PER_WRITER):
            sql(f"INSERT INTO {catalogs[writer]}.{table} VALUES ({writer}, {number})")

    in_parallel(insert)
    assert sql(f"SELECT * FROM {table}") == [(w, n) for w in range(WRITERS) for n in range(INSERTS_PER_WRITER)]
    # One line of history: every snapshot but the first has a parent of its own.
    parents = sql(f"SELECT parent_id, count(*) FROM {table}.snapshots GROUP BY parent_id")
    assert len(parents) == WRITERS * INSERTS_PER_WRITER
    assert {count for _, count in parents} == {1}


def test_concurrent_row_changes_of_different_partitions(sql, catalogs, table):
    for writer in range(WRITERS):
        sql(f"INSERT INTO {table} VALUES ({writer}, 0), ({writer}, 10), ({writer}, 20)")

    def change(writer: int) -> None:
        name = f"{catalogs[writer]}.{table}"
        sql(f"UPDATE {name} SET number = number + 1 WHERE writer = {writer} AND number < 20")
        sql(f"DELETE FROM {name} WHERE writer = {writer} AND number = 20")
        sql(
            f"MERGE INTO {name} t USING (SELECT * FROM VALUES ({writer}, 11), ({writer}, 30) AS v (writer, number)) s "
            f"ON t.writer = s.writer AND t.number = s.number AND t.writer = {writer} "
            "WHEN MATCHED THEN UPDATE SET number = 12 WHEN NOT MATCHED THEN INSERT *"
        )

    in_parallel(change)
    assert sql(f"SELECT * FROM {table}") == [(w, n) for w in range(WRITERS) for n in (1, 12, 30)]


def test_concurrent_creates_one_wins(sql, catalogs, namespace):
    """Four tries to make one table: exactly one does, the others are told that it exists."""
    outcomes = []

    def create(writer: int) -> None:
        try:
            sql(f"CREATE TABLE {catalogs[writer]}.{namespace}.once USING iceberg AS SELECT {writer} AS writer")
            outcomes.append((writer, None))
        except Exception as fault:
            outcomes.append((writer, str(fault)))

    in_parallel(create)
    winners = [writer for writer, fault in outcomes if fault is None]
    assert len(winners) == 1, outcomes
    assert all("already exists" in fault.lower() or "ALREADY_EXISTS" in fault for _, fault in outcomes if fault)
    assert sql(f"SELECT writer FROM {namespace}.once") == [(winners[0],)]


def test_writers_of_two_engines(sql, catalogs, iceberg, catalog_server, table):
    """Spark and PyIceberg append to one table at once, each with its own retries."""
    schema = pa.schema([pa.field("writer", pa.int32()), pa.field("number", pa.int32())])

    def write(writer: int) -> None:
        if writer % 2:
            for number in range(INSERTS_PER_WRITER):
                sql(f"INSERT INTO {catalogs[writer]}.{table} VALUES ({writer}, {number})")
        else:
            loaded = clients.pyiceberg_catalog(catalog_server).load_table(table)
            for number in range(INSERTS_PER_WRITER):
                loaded.append(pa.table({"writer": [writer], "number": [number]}, schema=schema))

    in_parallel(write)
    expected = [(w, n) for w in range(WRITERS) for n in range(INSERTS_PER_WRITER)]
    assert sql(f"SELECT * FROM {table}") == expected
    assert rows(iceberg.load_table(table)) == expected
