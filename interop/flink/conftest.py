"""Fixtures of the Flink suite."""

import tempfile

import pytest
from harness import paths
from harness.compare import ordered
from harness.flink import BATCH, Feed, Flink


@pytest.fixture(scope="session")
def flink(request, catalog_server):
    """A Flink cluster."""
    in_s3 = catalog_server.files.in_s3 or any("lake_server" in item.fixturenames for item in request.session.items)
    jars = paths.jars("flink") + (paths.jars("flink-s3") if in_s3 else [])
    with tempfile.TemporaryDirectory(prefix="moorage-flink-") as folder, Flink(folder, jars) as running:
        yield running


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


@pytest.fixture
def query(duck):
    """Runs one statement in DuckDB, which reads what PyIceberg does not, and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(duck.execute(statement).fetchall())

    return run
