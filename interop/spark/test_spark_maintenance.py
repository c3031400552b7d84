"""Maintenance beside Spark's: both have a copy of the same tables, and must leave the same files."""

import itertools
import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from harness import clients, server
from harness.ages import WEIGHTS, History
from harness.compare import rows
from py4j.protocol import Py4JJavaError

pytestmark = pytest.mark.moorage_only
# Between the halves of a history: more than a command needs to start.
PAUSE_SECONDS = 8
OLD_SECONDS = 30 * 24 * 3600
NAMESPACE = "aged"
# A session keeps the catalogs that it has used, with their connections.
CATALOGS = itertools.count(1)
# What happened to the tables that were compared.
DONE: set[str] = set()


@dataclass
class Copied:
    """A table, and what was found of it."""

    history: History
    all_of_it: bool  # everything expires that may, or only what is from before the pause
    keep: int
    location: Path = Path()
    metadata: str = ""
    by_spark: dict[int, list[tuple]] = field(default_factory=dict)
    by_pyiceberg: dict[int, list[tuple]] = field(default_factory=dict)
    left: dict[str, set[str]] = field(default_factory=dict)  # by who looked after it, and what was done
    kept: dict[str, tuple] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)

    @property
    def places(self) -> list[Path]:
        return [self.location, self.history.folder]


class Bench:
    """A server of its own with tables, and copies of their folders."""

    def __init__(self, spark, folder: Path):
        self.spark, self.folder = spark, folder
        self.server = server.Moorage(port=server.free_port())
        self.catalog = ""
        self.tables: list[Copied] = []

    def connect(self) -> None:
        """Starts the server, and gives Spark a catalog of a name that it has not used yet."""
        self.server.start()
        self.catalog = f"aged{next(CATALOGS)}"
        clients.add_spark_catalog(self.spark, self.catalog, self.server)
        for table in self.tables:
            table.history._catalog, table.history._name = self.catalog, f"{self.catalog}.{table.history.table}"

    def stop(self) -> None:
        assert self.server._process.stop() == 0, self.server._process.tail()

    def command(self, *words: str) -> str:
        run = subprocess.run(
            [str(self.server.binary), *words, "--data", str(self.server.data)],
            capture_output=True,
            text=True,
            env=server.environment(None),
            timeout=300,
        )
        assert run.returncode == 0, f"{words}: {run.stdout}{run.stderr}"
        return run.stdout


def files_below(places: list[Path]) -> set[str]:
    """All files, without the checksums that Hadoop keeps beside those of a local disk."""
    found = (path for place in places if place.exists() for path in place.rglob("*") if path.is_file())
    return {str(path) for path in found if path.suffix != ".crc"}


def read_all(table, iceberg) -> tuple[dict, dict]:
    """The rows of each snapshot, as Spark and as PyIceberg read them."""
    history = table.history
    snapshots = history.snapshots()
    loaded = iceberg.load_table(history.table)
    return {s: history.rows_of(s) for s in snapshots}, {s: rows(loaded, snapshot_id=s) for s in snapshots}


def state_of(table) -> tuple:
    history = table.history
    refs = history.sql(f"SELECT name, type, snapshot_id FROM {history._name}.refs ORDER BY name")
    return sorted(history.snapshots()), refs


def strays_of(table) -> dict[str, bool]:
    """Files that nobody names, and whether they are old."""
    at = table.location
    return {
        str(at / "data" / "stray.parquet"): True,
        str(at / "data" / "a%20b c.parquet"): True,
        str(at / "data" / "deep" / "er" / "stray.parquet"): True,
        str(at / "metadata" / "stray.avro"): True,
        str(at / "metadata" / "stray.stats"): True,
        str(at / "stray"): True,
        str(at / "data" / "_temporary" / "0" / "part.parquet"): True,
        str(at / "data" / ".hidden.parquet"): True,
        str(at / "metadata" / "00000-stray.metadata.json"): True,
        str(at / "data" / "young.parquet"): False,
    }


def plant(table) -> None:
    """Makes all files of a table old, and adds strays."""
    ago = time.time() - OLD_SECONDS
    for name, old in strays_of(table).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"PAR1")
    for name in files_below(table.places):
        if strays_of(table).get(name, True):
            os.utime(name, (ago, ago))


def copy(table, backup: Path) -> None:
    for number, place in enumerate(table.places):
        if place.exists():
            shutil.copytree(place, backup / table.history.table / str(number))


def register(table: Copied) -> None:
    """Makes the table of its metadata file. What logs that file went when the folder was put back, so it must first be two minutes old."""
    for _ in range(30):
        try:
            table.history.call("register_table", f"metadata_file => '{table.metadata}'")
            return
        except Py4JJavaError as refused:
            if "ask again in two minutes" not in str(refused):
                raise
            time.sleep(5)
    raise AssertionError(f"{table.metadata} is refused after two minutes")


def put_back(table, backup: Path) -> None:
    for number, place in enumerate(table.places):
        shutil.rmtree(place, ignore_errors=True)
        saved = backup / table.history.table / str(number)
        if saved.exists():
            shutil.copytree(saved, place)


def look_after_by_spark(table, cutoff: str) -> None:
    history = table.history
    before = "TIMESTAMP '2100-01-01 00:00:00'" if table.all_of_it else f"TIMESTAMP '{cutoff}'"
    history.call("expire_snapshots", f"older_than => {before}", f"retain_last => {table.keep}")
    table.left["spark", "expired"] = files_below(table.places)
    table.kept["spark"] = state_of(table)
    plant(table)
    yesterday = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 2 * 24 * 3600))
    history.call("remove_orphan_files", f"older_than => TIMESTAMP '{yesterday}'")
    table.left["spark", "orphans"] = files_below(table.places)


def look_after_by_moorage(bench: Bench, table, cutoff: float) -> None:
    name = f"default.{table.history.table}"
    # The command takes whole seconds.
    age = "0s" if table.all_of_it else f"{math.ceil(time.time() - cutoff)}s"
    ran = bench.command(
        "maintain", "run", "snapshots", name, "--max-snapshot-age", age, "--min-snapshots", str(table.keep), "--delay", "0s"
    )
    assert "nothing expires" in ran or re.search(r"snapshots done: \d+ snapshots?;", ran), ran
    table.left["moorage", "expired"] = files_below(table.places)
    plant(table)
    ran = bench.command("maintain", "run", "orphans", name, "--older-than", "24h", "--quarantine", "0s", "--adopt")
    assert "orphans done" in ran, ran
    table.left["moorage", "orphans"] = files_below(table.places)


def is_metadata(path: str) -> bool:
    return ".metadata.json" in path


def compare(table) -> None:
    """Both left the same files. docs/divergences.md has each departure."""
    seen = f"{table.history.table}, {table.history.done}"
    for step in ["expired", "orphans"]:
        ours = {path for path in table.left["moorage", step] if not is_metadata(path)}
        theirs = {path for path in table.left["spark", step] if not is_metadata(path)}
        outside = {path for path in ours - theirs if path.startswith(str(table.history.folder))}
        assert sorted(ours - theirs - outside) == [], f"{step}: Spark deleted what stays here: {seen}"
        assert sorted(theirs - ours) == [], f"{step}: what Spark keeps is gone: {seen}"
    stray = {path for path, old in strays_of(table).items() if is_metadata(path)}
    assert stray <= table.left["moorage", "orphans"], "a metadata file is gone"
    assert not stray & table.left["spark", "orphans"], "Spark keeps metadata files as well: the departure is none"


def run(spark, sizes: list[tuple[int, int, int]]) -> list[Copied]:
    """Makes tables, of (seed, format version, steps in each half), and has both look after them."""
    with tempfile.TemporaryDirectory(prefix="moorage-aged-") as name:
        folder = Path(name)
        bench = Bench(spark, folder)
        bench.connect()
        iceberg = clients.pyiceberg_catalog(bench.server)
        iceberg.create_namespace(NAMESPACE)
        for seed, version, _ in sizes:
            history = History(spark, bench.catalog, f"{NAMESPACE}.t{seed}", folder / "given", seed, version)
            bench.tables.append(Copied(history, history.chance.random() < 0.5, history.chance.randint(1, 3)))
        for table, (_, version, steps) in zip(bench.tables, sizes, strict=True):
            table.history.grow(steps)
            if version >= 3:
                table.history.do("shared vectors")
        time.sleep(PAUSE_SECONDS / 4)
        cutoff = time.time()
        time.sleep(PAUSE_SECONDS * 3 / 4)
        for table, (_, _, steps) in zip(bench.tables, sizes, strict=True):
            table.history.grow(steps)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(cutoff)) + f".{int(cutoff * 1000) % 1000:03d}"
        for table in bench.tables:
            loaded = iceberg.load_table(table.history.table)
            table.location = Path(unquote(urlparse(loaded.location()).path))
            table.metadata = loaded.metadata_location
            table.by_spark, table.by_pyiceberg = read_all(table, iceberg)
            table.before = files_below(table.places)
            copy(table, folder / "backup")
            look_after_by_spark(table, stamp)
            table.history.sql(f"DROP TABLE {table.history._name}")
            put_back(table, folder / "backup")
            register(table)
        bench.stop()
        for table in bench.tables:
            look_after_by_moorage(bench, table, cutoff)
        bench.connect()
        iceberg = clients.pyiceberg_catalog(bench.server)
        for table in bench.tables:
            table.kept["moorage"] = state_of(table)
            assert table.kept["moorage"] == table.kept["spark"], table.history.done
            compare(table)
            by_spark, by_pyiceberg = read_all(table, iceberg)
            assert by_spark == {s: table.by_spark[s] for s in by_spark}, table.history.done
            assert by_pyiceberg == {s: table.by_pyiceberg[s] for s in by_pyiceberg}, table.history.done
        bench.server.__exit__(None)
        return bench.tables


def check_worth(tables: list[Copied]) -> None:
    """The tables were worth comparing: something was deleted, and something stayed."""
    assert sum(len(table.by_spark) - len(table.kept["moorage"][0]) for table in tables) > 0, "no snapshot expired"
    gone = sum(len(table.before - table.left["moorage", "expired"]) for table in tables)
    assert gone > 0, "no file was deleted"
    for table in tables:
        old = {path for path, is_old in strays_of(table).items() if is_old and not is_metadata(path) and "/_" not in path and "/." not in path}
        assert not old & table.left["moorage", "orphans"], "an orphan is left"
        assert set(strays_of(table)) - old <= table.left["moorage", "orphans"], "a file that is no orphan is gone"


@pytest.mark.smoke
def test_same_files_as_spark_in_short(spark):
    check_worth(run(spark, [(3, 3, 4)]))


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("part", range(4))
def test_same_files_as_spark(spark, part):
    tables = run(spark, [(100 + 4 * part + i, [3, 2, 3, 1 if part == 0 else 2][i], 9) for i in range(4)])
    check_worth(tables)
    DONE.update(what for table in tables for what in table.history.done)
    assert any(table.history.shares for table in tables), "no vectors share a file"


def test_all_kinds_of_histories_were_compared():
    """In the parts above, each operation came to be in some table's history."""
    assert not set(WEIGHTS) - DONE, f"this never happened: {sorted(set(WEIGHTS) - DONE)}"
