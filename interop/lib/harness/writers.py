"""Writers that work at once, and what they write: rows of two numbers, the writer and one that it counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from harness import clients
from harness.compare import rows

WRITERS = 4


def in_parallel(work: Callable[[int], None], writers: int = WRITERS) -> None:
    """Runs work(writer) for all writers at once; raises what the first to fail raised."""
    with ThreadPoolExecutor(writers) as pool:
        for outcome in [pool.submit(work, writer) for writer in range(writers)]:
            outcome.result()


def one_wins(attempt: Callable[[int], None], refused: Callable[[Exception], bool]) -> int:
    """Lets all writers attempt at once what only one of them can do, and returns the one that did.

    Fails unless exactly one did, and refused holds for what each of the others raised.
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
    """Inserts the rows of a writer whose numbers are below count, each by a statement of its own."""
    for number in range(count):
        sql(f"INSERT INTO {table} VALUES ({writer}, {number})")


def append(server, table: str, writer: int, count: int, **more: str) -> None:
    """The same with a PyIceberg of its own, each row by a commit of its own; more are further properties of its catalog."""
    loaded = clients.pyiceberg_catalog(server, **more).load_table(table)
    for number in range(count):
        append_row(loaded, writer, number)


def append_row(table, writer: int, number: int) -> None:
    """Adds one row to a PyIceberg table."""
    table.append(pa.table({"writer": [writer], "number": [number]}, schema=table.schema().as_arrow()))


def each_once(count: int, writers: int = WRITERS) -> list[tuple[int, int]]:
    """The rows that a table has, ordered, when all writers wrote the numbers below count and each arrived once."""
    return [(writer, number) for writer in range(writers) for number in range(count)]


def change_own_rows(sql: Callable[[str], object], table: str, writer: int) -> None:
    """Changes rows of one writer by UPDATE, DELETE and MERGE, in words that Spark and Trino know: 0, 10 and 20 become 1, 12 and 30."""
    sql(f"UPDATE {table} SET number = number + 1 WHERE writer = {writer} AND number < 20")
    sql(f"DELETE FROM {table} WHERE writer = {writer} AND number = 20")
    sql(
        f"MERGE INTO {table} t USING (SELECT {writer} AS writer, 11 AS number UNION ALL SELECT {writer}, 30) s "
        f"ON t.writer = s.writer AND t.number = s.number AND t.writer = {writer} "
        "WHEN MATCHED THEN UPDATE SET number = 12 WHEN NOT MATCHED THEN INSERT (writer, number) VALUES (s.writer, s.number)"
    )


def write_in_turn(sql: Callable[[str], list[tuple]], iceberg, table: str, text: str) -> None:
    """An engine and PyIceberg write one table in turn, and both read the rows of both.

    The table is to be empty, with the columns id, of 64 bits, and place; text is what the engine calls the type of place.
    """
    sql(f"INSERT INTO {table} VALUES (1, 'oslo')")
    iceberg.load_table(table).append(pa.table({"id": [2], "place": ["rome"]}))
    sql(f"ALTER TABLE {table} ADD COLUMN note {text}")
    sql(f"UPDATE {table} SET note = 'changed' WHERE id = 1")
    expected = [(1, "oslo", "changed"), (2, "rome", None)]
    found = {"the engine": sql(f"SELECT * FROM {table}"), "PyIceberg": rows(iceberg.load_table(table))}
    for reader, read in found.items():
        assert read == expected, f"{reader} reads {read}"
