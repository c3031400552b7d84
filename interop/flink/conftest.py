"""Fixtures of the Flink suite."""

import pytest
from harness.compare import ordered
from harness.flink import BATCH, Feed


@pytest.fixture(scope="session")
def batch(flink, catalog_server):
    """A session in which a statement is a job with an end."""
    return flink.session(catalog_server, BATCH)


@pytest.fixture
def sql(batch):
    """Runs one statement in that session and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(batch.run(statement))

    return run


@pytest.fixture
def session(flink, catalog_server):
    """Makes a session with the settings given, of the server or of another one. Its jobs end with the test."""
    made = []

    def make(settings: dict[str, str], server=catalog_server):
        fresh = flink.session(server, settings)
        made.append(fresh)
        return fresh

    yield make
    for each in made:
        each.close()


@pytest.fixture
def feed(tmp_path):
    """Rows for a job."""
    return Feed(tmp_path)


@pytest.fixture(params=["false", "true"], ids=["sink1", "sink2"])
def sink(request):
    """The setting for either of the two sinks that Iceberg has for Flink."""
    return {"table.exec.iceberg.use-v2-sink": request.param}
