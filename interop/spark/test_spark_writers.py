"""Concurrent writers with Spark's own retries."""

import pytest
from harness.compare import rows
from harness.history import parents
from harness.writers import WRITERS, append, change_own_rows, each_once, in_parallel, insert, one_wins

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


def test_concurrent_inserts_all_arrive_once(sql, catalogs, iceberg, table):
    in_parallel(lambda writer: insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER))
    assert sql(f"SELECT * FROM {table}") == each_once(INSERTS_PER_WRITER)
    # One line of history, also as Spark sees it.
    snapshots = sql(f"SELECT snapshot_id, parent_id FROM {table}.snapshots")
    assert len(snapshots) == WRITERS * INSERTS_PER_WRITER
    assert snapshots == parents(iceberg.load_table(table))


def test_concurrent_row_changes_of_different_partitions(sql, catalogs, table):
    for writer in range(WRITERS):
        sql(f"INSERT INTO {table} VALUES ({writer}, 0), ({writer}, 10), ({writer}, 20)")
    in_parallel(lambda writer: change_own_rows(sql, f"{catalogs[writer]}.{table}", writer))
    assert sql(f"SELECT * FROM {table}") == [(w, n) for w in range(WRITERS) for n in (1, 12, 30)]


def test_concurrent_creates_one_wins(sql, catalogs, namespace):
    """Four tries to make one table: exactly one does, the others are told that it exists."""

    def create(writer: int) -> None:
        sql(f"CREATE TABLE {catalogs[writer]}.{namespace}.once USING iceberg AS SELECT {writer} AS writer")

    winner = one_wins(create, lambda fault: "already exists" in str(fault).lower() or "ALREADY_EXISTS" in str(fault))
    assert sql(f"SELECT writer FROM {namespace}.once") == [(winner,)]


def test_writers_of_two_engines(sql, catalogs, iceberg, catalog_server, table):
    """Spark and PyIceberg append to one table at once, each with its own retries."""

    def write(writer: int) -> None:
        if writer % 2:
            insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER)
        else:
            append(catalog_server, table, writer, INSERTS_PER_WRITER)

    in_parallel(write)
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == each_once(INSERTS_PER_WRITER)
