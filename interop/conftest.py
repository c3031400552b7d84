"""Fixtures of the client suites: one server per run, clients that are connected to it."""

import contextlib
import itertools
import os
import re
import tempfile
from pathlib import Path

import pytest

# Before it is imported: a check of its own that fails says what it compared, as those in the suites do.
pytest.register_assert_rewrite("harness")

from harness import clients, cluster, delegated, judged, paths, proxy, s3, secured, server, trino  # noqa: E402
from harness.flink import Flink  # noqa: E402
from harness.compare import ordered  # noqa: E402


# Fixtures whose tables are in S3 whatever the run says.
IN_S3 = {"lake_server", "vended_server", "signing_server", "secured_lake"}


def pytest_addoption(parser):
    parser.addoption(
        "--server",
        choices=["moorage", "cluster", "reference"],
        default="moorage",
        help="the server under test: Moorage, three nodes of it over PostgreSQL, or the Iceberg project's own for a baseline",
    )
    parser.addoption(
        "--warehouse",
        choices=["folder", "s3"],
        default="folder",
        help="where the server keeps its tables: in a folder, or on an S3 server that is started for the run",
    )
    parser.addoption(
        "--beside",
        type=int,
        default=0,
        help="so many other clients commit to a table with each commit of the suites, so that commits share versions",
    )


def pytest_configure(config):
    if config.getoption("warehouse") == "s3" and not started_here(config):
        raise pytest.UsageError("--warehouse s3 is for servers that the suites start: moorage and cluster")


def started_here(config) -> bool:
    """Whether the server under test is a Moorage that the suites start."""
    return config.getoption("server") != "reference" and "MOORAGE_INTEROP_URI" not in os.environ


def pytest_collection_modifyitems(config, items):
    """Takes out what only Moorage can pass when another server is asked for, what others who commit disturb, and what knows no S3."""
    left_out = {
        "moorage_only": not started_here(config),
        "counts_versions": config.getoption("beside") > 0,
        "on_disk_only": config.getoption("warehouse") == "s3",
    }
    others = [item for item in items if any(out and item.get_closest_marker(name) for name, out in left_out.items())]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A skipped test is a failed test: what cannot run must be said in the suite."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def catalog_server(request, pytestconfig):
    """The server that all suites of this run share.

    MOORAGE_INTEROP_URI, with MOORAGE_INTEROP_WAREHOUSE, names one that runs already.
    """
    uri = os.environ.get("MOORAGE_INTEROP_URI")
    bucket = request.getfixturevalue("lake_files") if pytestconfig.getoption("warehouse") == "s3" else None
    if uri:
        running = server.External(uri, os.environ.get("MOORAGE_INTEROP_WAREHOUSE", "default"))
    elif pytestconfig.getoption("server") == "reference":
        running = server.Reference()
    elif pytestconfig.getoption("server") == "cluster":
        running = cluster.Cluster(s3=bucket)
    else:
        running = server.Moorage(s3=bucket)
    beside = pytestconfig.getoption("beside")
    with contextlib.ExitStack() as stack:
        stack.enter_context(running)
        if started_here(pytestconfig):
            server.purge_at_once(running)
            if running.name == server.Moorage.name and judged.specification():
                running = stack.enter_context(judged.Judged(running))
        if beside:
            running = stack.enter_context(proxy.Proxy(running, beside))
        yield running


@pytest.fixture
def watched(catalog_server):
    """A proxy before the server, which has seen nothing yet."""
    with proxy.Proxy(catalog_server) as running:
        yield running


@pytest.fixture(scope="session")
def lake_files():
    """An S3 server."""
    with s3.Server() as running:
        yield running


@pytest.fixture(scope="session")
def lake_server(request, pytestconfig, lake_files):
    """Moorage whose warehouse is on that server: the one that all suites share, or a second one."""
    if pytestconfig.getoption("warehouse") == "s3":
        yield request.getfixturevalue("catalog_server")
        return
    with server.Moorage(s3=lake_files) as running:
        server.purge_at_once(running)
        yield running


@pytest.fixture(scope="session")
def vended_server():
    """Moorage that gives credentials for its tables, which are on MinIO."""
    with s3.MinIO() as files, delegated.Delegated(files, delegated.VENDED) as running:
        yield running


@pytest.fixture
def vended(vended_server):
    """A proxy before that server, which has seen nothing yet."""
    with proxy.Proxy(vended_server) as running:
        yield running


@pytest.fixture(scope="session")
def signing_server(lake_files):
    """Moorage that signs requests for its tables, which are on a server whose credentials would not do."""
    with delegated.Delegated(lake_files, delegated.SIGNED) as running:
        yield running


@pytest.fixture
def signing(signing_server):
    """A proxy before that server, which has seen nothing yet."""
    with proxy.Proxy(signing_server) as running:
        yield running


@pytest.fixture(scope="session")
def secured_server():
    """Moorage with authentication and access on, whose tokens are good for a few seconds."""
    with secured.Secured(["--token-lifetime", f"{secured.LIFETIME_SECONDS}s"]) as running:
        yield running


@pytest.fixture(scope="session")
def secured_lake():
    """Moorage with authentication and access on, which gives credentials for its tables on MinIO."""
    with s3.MinIO() as files, secured.SecuredLake(files) as running:
        yield running


@pytest.fixture(scope="session")
def iceberg(catalog_server):
    """A PyIceberg catalog."""
    return clients.pyiceberg_catalog(catalog_server)


@pytest.fixture(scope="session")
def jars(request, catalog_server):
    """Finds the jars of a client, with those for S3 if any test of the run has tables there."""
    in_s3 = catalog_server.files.in_s3 or any(IN_S3 & set(item.fixturenames) for item in request.session.items)

    def find(client: str) -> list[Path]:
        return paths.jars(client) + (paths.jars(f"{client}-s3") if in_s3 else [])

    return find


@pytest.fixture(scope="session")
def spark(catalog_server, jars):
    """A Spark session whose catalog `ice` is the server's."""
    with tempfile.TemporaryDirectory(prefix="moorage-spark-") as folder:
        session = clients.spark_session(catalog_server, folder, jars("spark"))
        yield session
        session.stop()


@pytest.fixture(scope="session")
def flink(jars):
    """A Flink cluster."""
    with tempfile.TemporaryDirectory(prefix="moorage-flink-") as folder, Flink(folder, jars("flink")) as running:
        yield running


@pytest.fixture(scope="session")
def engine(catalog_server):
    """A Trino server whose catalog `ice` is the server's."""
    with trino.Trino() as running:
        running.add(clients.trino_catalog(catalog_server), "ice")
        yield running


@pytest.fixture
def duck(catalog_server):
    """A DuckDB connection to which the server is attached as `ice`."""
    with clients.duckdb_connection(catalog_server) as connection:
        yield connection


@pytest.fixture
def query(duck):
    """Runs one statement in DuckDB and returns its rows, ordered."""

    def run(statement: str) -> list[tuple]:
        return ordered(duck.execute(statement).fetchall())

    return run


@pytest.fixture(scope="session")
def numbers():
    """A counter, for names that are used once in a run."""
    return itertools.count(1)


@pytest.fixture
def namespace(request, iceberg, numbers):
    """The name of an empty namespace that no other test uses."""
    name = re.sub(r"\W+", "_", request.node.name).strip("_").lower()
    name = f"{name}_{next(numbers)}"
    iceberg.create_namespace(name)
    return name
