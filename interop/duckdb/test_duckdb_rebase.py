"""Writers that do not try again, on a table that asks the server to put late appends on top of the head."""

import pyarrow as pa
import pytest
from harness import clients
from harness.cleaning import clean
from harness.compare import rows
from harness.history import check_line, moved, rows_added
from harness.writers import append_row, each_once, in_parallel, insert

pytestmark = pytest.mark.moorage_only
INSERTS_PER_WRITER = 4
SCHEMA = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])


def test_writers_who_do_not_try_again(catalog_server, iceberg, namespace):
    """DuckDB never tries again. PyIceberg expires and the server removes orphans afterwards, because DuckDB can do neither."""
    name = f"{namespace}.events"
    iceberg.create_table(name, schema=SCHEMA, properties={"moorage.append-rebase": "on-all"})

    def work(writer: int) -> None:
        with clients.duckdb_connection(catalog_server) as connection:
            insert(connection.execute, f"ice.{name}", writer, INSERTS_PER_WRITER)

    in_parallel(work)
    expected = each_once(INSERTS_PER_WRITER)
    table = iceberg.load_table(name)
    assert rows(table) == expected
    check_line(table, len(expected))
    assert rows_added(table) == len(expected)
    assert moved(table), "nobody was late"
    clean(catalog_server, table)
    table = iceberg.load_table(name)
    check_line(table, 1)
    assert rows(table) == expected
    append_row(table, 9, 9)
    with clients.duckdb_connection(catalog_server) as connection:
        found = connection.execute(f"SELECT writer, number FROM ice.{name} ORDER BY ALL").fetchall()
    assert found == [*expected, (9, 9)]
