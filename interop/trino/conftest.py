"""Fixtures of the Trino suite."""

import pytest
from harness import clients
from harness.compare import ordered
from harness.writers import WRITERS


@pytest.fixture
def sql(engine):
    """Runs one statement in SQL and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(engine.execute(statement))

    return run


@pytest.fixture(scope="session")
def catalogs(engine, catalog_server):
    """A catalog of its own for each writer: with three nodes, on all of them."""
    return [engine.add(clients.trino_catalog(catalog_server)) for _ in range(WRITERS)]
