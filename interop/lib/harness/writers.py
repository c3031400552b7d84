"""Concurrent writers and their rows, which have two numbers: the writer and a counter."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from harness import clients
from harness.compare import rows

WRITERS = 4


def in_parallel(work: Callable[[int], None], writers: int = WRITERS) -> None:
    """Runs work(writer) for all writers at once; raises the error of the first one that fails."""
    with ThreadPoolExecutor(writers) as pool:
        for outcome in [pool.submit(work, writer) for writer in range(writers)]:
            outcome.result()


def one_wins(attempt: Callable[[int], None], refused: Callable[[Exception], bool]) -> int:
    """Has all writers attempt at once a change that only one can make, and returns the one that succeeded.

    Fails unless exactly one succeeded and refused accepts the errors of all others.
    """
    outcomes: dict[int, Exception | None] = {}

    def work(writer: int) -> None:
        try:
            attempt(writer)
            outcomes[writer] = None
        except Exception as fault:
            outcomes[writer] = fault

    in_parallel(work)
    winners = [writer for writer, fault in outcomes.items() if fault is None]
    assert len(winners) == 1, f"not one winner: {outcomes}"
    for writer, fault in outcomes.items():
        assert fault is None or refused(fault), f"writer {writer} was told: {fault!r}"
    return winners[0]


def insert(sql: Callable[[str], object], table: str, writer: int, count: int) -> None:
    """Inserts a writer's rows with the numbers below count, each in a separate statement."""
    for number in range(count):
        sql(f"INSERT INTO {table} VALUES ({writer}, {number})")


def append(server, table: str, writer: int, count: int, **more: str) -> None:
    """The same with a separate PyIceberg catalog, each row in its own commit.

    more are additional catalog properties.
    """
    loaded = clients.pyiceberg_catalog(server, **more).load_table(table)
    for number in range(count):
        append_row(loaded, writer, number)


def append_row(table, writer: int, number: int) -> None:
    """Adds one row to a PyIceberg table."""
    table.append(pa.table({"writer": [writer], "number": [number]}, schema=table.schema().as_arrow()))


def each_once(count: int, writers: int = WRITERS) -> list[tuple[int, int]]:
    """The expected rows of a table, sorted, if all writers wrote the numbers below count and each row arrived once."""
    return [(writer, number) for writer in range(writers) for number in range(count)]


def change_own_rows(sql: Callable[[str], object], table: str, writer: int) -> None:
    """Changes a writer's rows 0, 10 and 20 to 1, 12 and 30, with UPDATE, DELETE and MERGE for Spark and Trino."""
    sql(f"UPDATE {table} SET number = number + 1 WHERE writer = {writer} AND number < 20")
    sql(f"DELETE FROM {table} WHERE writer = {writer} AND number = 20")
    sql(
        f"MERGE INTO {table} t USING (SELECT {writer} AS writer, 11 AS number UNION ALL SELECT {writer}, 30) s "
        f"ON t.writer = s.writer AND t.number = s.number AND t.writer = {writer} "
        "WHEN MATCHED THEN UPDATE SET number = 12 WHEN NOT MATCHED THEN INSERT (writer, number) VALUES (s.writer, s.number)"
    )


def write_in_turn(sql: Callable[[str], list[tuple]], iceberg, table: str, text: str) -> None:
    """Has an engine and PyIceberg write one table in turn, and checks that both read all rows.

    The table must be empty, with the columns id (64 bits) and place. text is the engine's name for the type
    of place.
    """
    sql(f"INSERT INTO {table} VALUES (1, 'oslo')")
    iceberg.load_table(table).append(pa.table({"id": [2], "place": ["rome"]}))
    sql(f"ALTER TABLE {table} ADD COLUMN note {text}")
    sql(f"UPDATE {table} SET note = 'changed' WHERE id = 1")
    expected = [(1, "oslo", "changed"), (2, "rome", None)]
    found = {"the engine": sql(f"SELECT * FROM {table}"), "PyIceberg": rows(iceberg.load_table(table))}
    for reader, read in found.items():
        assert read == expected, f"{reader} reads {read}"
