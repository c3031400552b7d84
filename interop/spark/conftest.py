"""Fixtures of the Spark suite."""

import pytest
from harness import clients
from harness.compare import ordered
from harness.java import Java
from harness.writers import WRITERS


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


@pytest.fixture(scope="session")
def catalogs(spark, catalog_server):
    """A catalog of its own for each writer, as each would have in a session of its own: with three nodes, on all of them."""
    names = [f"writer{number}" for number in range(WRITERS)]
    for name in names:
        clients.add_spark_catalog(spark, name, catalog_server)
    return names
