"""Fixtures of the Spark suite."""

import pytest
from harness.compare import ordered
from harness.java import Java


@pytest.fixture
def sql(spark):
    """Runs one statement in SQL and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(spark.sql(statement).collect())

    return run


@pytest.fixture
def java(spark, watched):
    """The Java client, through the proxy."""
    made = Java(spark, watched)
    yield made
    made.close()
