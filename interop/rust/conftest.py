"""Fixtures of the suite with iceberg-rust."""

import subprocess

import pytest
from harness import paths
from harness.compare import ordered

# Only what hangs takes as long.
COMMAND_SECONDS_MAX = 120


@pytest.fixture(scope="session")
def rust(catalog_server):
    """Runs a command of the program in src/main.rs on a table, and returns the lines that it prints. Fails as it does."""
    program = paths.rust()

    def run(command: str, table: str, *more: int) -> list[str]:
        words = [program, command, catalog_server.uri, catalog_server.warehouse, table, *map(str, more)]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
        return ended.stdout.splitlines()

    return run


@pytest.fixture
def sql(spark):
    """Runs one statement in Spark, and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(spark.sql(statement).collect())

    return run
