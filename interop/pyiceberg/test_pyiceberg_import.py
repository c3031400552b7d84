"""Catalogs that others made move in, and out again: PyIceberg's in SQLite, the Iceberg project's own server, and folders."""

import concurrent.futures
import contextlib
import json
import os
import random
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from harness import cluster, paths, server
from harness.compare import rows
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.types import StringType

pytestmark = pytest.mark.moorage_only


@pytest.fixture
def lake(tmp_path):
    """A folder for the tables of another catalog, and a Moorage that may have them."""
    folder = tmp_path / "lake"
    folder.mkdir()
    with server.Moorage(["--allow-location", f"file://{tmp_path}"]) as running:
        yield folder, running


def moorage(running, *words, code=0) -> str:
    """Runs a command against the server, and returns what it printed."""
    done = subprocess.run([str(running.binary), *words, "--uri", running.uri], capture_output=True, text=True, timeout=1800)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def client(running):
    return load_catalog("client", type="rest", uri=running.uri, warehouse=running.warehouse)


def fill(catalog) -> None:
    """Makes two tables: one with rows of two schemas, a tag and a delete, and one that is empty."""
    catalog.create_namespace("sales", {"team": "blue"})
    catalog.create_namespace("sales.old")
    first = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    orders = catalog.create_table("sales.orders", schema=first.schema)
    orders.append(first)
    orders.manage_snapshots().create_tag(orders.current_snapshot().snapshot_id, "eod").commit()
    with orders.update_schema() as update:
        update.add_column("note", StringType())
    orders.append(pa.table({"id": pa.array([4], pa.int64()), "note": ["four"]}))
    orders.delete("id = 2")
    catalog.create_table("sales.old.empty", schema=first.schema)


FILLED = [(1, None), (3, None), (4, "four")]


def facts(running) -> list[str]:
    """What an export writes of each table."""
    return sorted(moorage(running, "export", "list").splitlines())


@pytest.fixture(scope="module")
def postgres():
    """A PostgreSQL server, and the driver with which PyIceberg reaches it."""
    sys.path.append(str(paths.packages("psycopg")))
    with cluster.postgres() as running:
        yield running
    sys.path.pop()


def empty(postgres, name: str) -> str:
    """Makes a database, and returns its address without a scheme."""
    import psycopg2

    connection = psycopg2.connect(postgres.dsn)
    connection.autocommit = True  # a database is made outside of transactions
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return f"//moorage@{postgres.address}/{name}?sslmode=disable"


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_from_a_sql_catalog(lake, tmp_path, request, database):
    folder, running = lake
    dsn = f"sqlite:///{tmp_path}/catalog.db"
    if database == "postgres":
        dsn = "postgresql+psycopg2:" + empty(request.getfixturevalue("postgres"), "pyiceberg")
    old = SqlCatalog("old", uri=dsn, warehouse=f"file://{folder}")
    fill(old)
    assert "2 objects: 2 new; 2 compared, 2 alike." in moorage(running, "import", "sql", dsn)
    here = client(running)
    assert rows(here.load_table("sales.orders"), "id", "note") == FILLED
    assert here.load_namespace_properties("sales")["team"] == "blue"
    more = pa.table({"id": pa.array([5], pa.int64()), "note": ["five"]})
    with pytest.raises(ForbiddenError, match="mirror"):
        here.load_table("sales.orders").append(more)
    old.load_table("sales.orders").append(more)  # the old catalog goes on
    moorage(running, "import", "cutover", "sql", dsn, "--detach", "--yes")
    with pytest.raises(NoSuchTableError):
        old.load_table("sales.orders")
    assert rows(here.load_table("sales.orders"), "id", "note") == FILLED + [(5, "five")]
    here.load_table("sales.orders").append(pa.table({"id": pa.array([6], pa.int64()), "note": ["six"]}))
    assert len(rows(here.load_table("sales.orders"), "id")) == 5


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("form", ["V0", "V1"])
def test_from_a_jdbc_catalog(request, database, form):
    """The catalog of Java in a database, in its first form and in the form with views."""
    uri = ""
    if database == "postgres":
        uri = "jdbc:postgresql:" + empty(request.getfixturevalue("postgres"), f"java_{form.lower()}").replace("moorage@", "") + "&user=moorage"
    with server.Reference(uri, {"CATALOG_JDBC_SCHEMA__VERSION": form}) as reference:
        fill(load_catalog("reference", type="rest", uri=reference.uri))
        dsn = reference.database.removeprefix("jdbc:")
        with server.Moorage(["--allow-location", reference.warehouse]) as running:
            assert "2 objects: 2 new; 2 compared, 2 alike." in moorage(running, "import", "sql", dsn)
            assert rows(client(running).load_table("sales.orders"), "id", "note") == FILLED
            assert client(running).load_namespace_properties("sales")["team"] == "blue"
            moorage(running, "import", "cutover", "sql", dsn, "--detach", "--yes")
            with pytest.raises(NoSuchTableError):
                load_catalog("reference", type="rest", uri=reference.uri).load_table("sales.orders")
            client(running).load_table("sales.orders").append(pa.table({"id": pa.array([6], pa.int64()), "note": ["six"]}))


def test_from_files(lake, tmp_path):
    folder, running = lake
    old = SqlCatalog("old", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{folder}")
    fill(old)
    for name in ("orders", "old.empty"):
        location = old.load_table(f"sales.{name}").location()
        assert location.startswith(f"file://{folder}/")
    moorage(running, "import", "files", f"file://{folder}")
    names = moorage(running, "ls", "-R", "-o", "name").split()
    tables = [name for name in names if not name.endswith(".")]
    assert len(tables) == 2, names
    orders = next(name for name in tables if name.endswith("orders"))
    assert rows(client(running).load_table(orders), "id", "note") == FILLED


def test_there_and_back(lake, tmp_path):
    """From the reference server to Moorage, to another reference server, and to Moorage again."""
    _, running = lake
    with server.Reference() as reference, server.Reference() as second:
        fill(load_catalog("reference", type="rest", uri=reference.uri))
        allowed = ["--allow-location", reference.warehouse, "--allow-location", second.warehouse]
        with server.Moorage(allowed) as there, server.Moorage(allowed) as back:
            moorage(there, "import", "rest", reference.uri)
            moorage(there, "import", "cutover", "rest", reference.uri, "--source-frozen", "--yes")
            client(there).load_table("sales.orders").append(pa.table({"id": pa.array([5], pa.int64()), "note": ["five"]}))
            moorage(there, "export", "rest", second.uri)
            moorage(back, "import", "rest", second.uri)
            assert facts(back) == facts(there)
            exported = [json.loads(line) for line in moorage(back, "export", "list", "-o", "jsonl").splitlines()]
            assert {tuple(each["namespace"]) for each in exported} == {("sales",), ("sales", "old")}
            assert client(back).load_namespace_properties("sales")["team"] == "blue"
            assert rows(client(back).load_table("sales.orders"), "id", "note") == FILLED + [(5, "five")]


# How many tables test_killed imports, and how often it kills the import; make import-scale has 10,000 and 100.
TABLES = int(os.environ.get("MOORAGE_IMPORT_TABLES", "24"))
KILLS = int(os.environ.get("MOORAGE_IMPORT_KILLS", "3"))
# About how long all imports that are killed may take together: a slow machine kills them earlier instead.
KILLED_SECONDS_MAX = 2400


def imported(running, journal, words, seed) -> None:
    """Runs an import that is killed KILLS times, and then to its end."""
    command = [str(running.binary), "import", *words, "--uri", running.uri, "--state", str(journal), "-q"]
    chance = random.Random(seed)
    pause = 0.5
    began = time.monotonic()
    for killed in range(KILLS):
        left = KILLED_SECONDS_MAX - (time.monotonic() - began)
        pause = max(min(pause, 2 * left / (KILLS - killed)), 0.05)
        if killed % 10 == 0:
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            print(f"killed {killed} of {KILLS} times in {time.monotonic() - began:.0f} s: {lines} lines in the journal; the next have {pause:.1f} s")
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            started.wait(chance.uniform(0, pause))
            pause *= 0.5
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            pause *= 1.2
    assert f"{TABLES} compared, {TABLES} alike." in moorage(running, "import", *words, "--state", str(journal))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("source", ["sql", "reference"])
def test_killed(lake, tmp_path, source):
    """Many tables arrive, however often the import is killed."""
    folder, running = lake
    with contextlib.ExitStack() as stack:
        if source == "sql":
            dsn = f"sqlite:///{tmp_path}/catalog.db"
            old, words, target = SqlCatalog("old", uri=dsn, warehouse=f"file://{folder}"), ["sql", dsn], running
        else:
            reference = stack.enter_context(server.Reference())
            target = stack.enter_context(server.Moorage(["--allow-location", reference.warehouse]))
            old, words = load_catalog("reference", type="rest", uri=reference.uri), ["rest", reference.uri]
        for i in range(10):
            old.create_namespace(f"n{i}", {"number": str(i)})
        first = pa.schema([("id", pa.int64())])

        def make(i: int) -> None:
            old.create_table(f"n{i % 10}.t{i}", schema=first)
            if (i + 1) % 1000 == 0:
                print(f"{i + 1} of {TABLES} tables made")

        with concurrent.futures.ThreadPoolExecutor(1 if source == "sql" else 4) as pool:
            list(pool.map(make, range(TABLES)))
        imported(target, tmp_path / "journal", words, seed=TABLES)
        assert len(facts(target)) == TABLES + 1
