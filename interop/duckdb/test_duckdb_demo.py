"""The demo, read by DuckDB with the lines that the demo and `moorage connect` print."""

import time

import pytest
from harness import clients, offline
from harness.demo import Demo

pytestmark = pytest.mark.moorage_only

COUNTED_SECONDS_MAX = 10


def paste(connection, lines: str) -> list[tuple]:
    """Runs statements, except those that load extensions: these come from wheels here. Returns the rows of the last one."""
    for statement in lines.replace("-- ", "; -- ").split(";"):
        if statement.strip() and not statement.strip().startswith(("INSTALL", "LOAD", "--")):
            connection.execute(statement)
    return connection.fetchall()


@pytest.mark.smoke
def test_printed_lines():
    with Demo() as demo:
        with clients.duckdb_with_extensions() as connection:
            assert paste(connection, demo.block("DuckDB")) == [(50_000,)]
            assert connection.execute("SELECT count(*), sum(capacity) FROM demo.harbour.ships").fetchall() == [(12, 62_200)]
            assert connection.execute("SELECT count(*) FROM demo.harbour.ports").fetchall() == [(13,)]
        with clients.duckdb_with_extensions() as connection:
            assert len(paste(connection, demo.connect("duckdb", "harbour.voyages"))) == 10


def count_in_time() -> None:
    began = time.monotonic()
    with Demo() as demo, clients.duckdb_with_extensions() as connection:
        assert paste(connection, demo.block("DuckDB")) == [(50_000,)]
        assert time.monotonic() - began < COUNTED_SECONDS_MAX


def test_without_a_network():
    """A fresh folder, filled and counted within seconds by what is installed."""
    offline.call("test_duckdb_demo", "count_in_time")
