"""Fixtures of the Spark suite."""

import pytest
from harness.compare import ordered


@pytest.fixture
def sql(spark):
    """Runs one statement in SQL and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(spark.sql(statement).collect())

    return run
