"""PyIceberg without a key of the storage: the catalog signs each of its requests, on a server that makes no credentials."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import eventually, rows
from harness.delegated import ASKED, SIGNED, signatures
from pyiceberg.expressions import EqualTo
from pyiceberg.utils.concurrent import ExecutorFactory

pytestmark = pytest.mark.moorage_only

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "place": ["oslo", "rome", "bern"]})

# More than two parts of an upload, which are of 50 MB.
BIG_BYTES = 120 << 20


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """PyIceberg with PYICEBERG_MAX_WORKERS=1, as docs/guide/credentials.md says.

    Each of its threads takes the signer away and puts it back when it opens its first file; requests of others go out unsigned
    meanwhile: https://github.com/apache/iceberg-python/issues/3896
    """
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "1")
    monkeypatch.setattr(ExecutorFactory, "_instance", None)  # it reads the variable when it has none


@pytest.fixture
def lake(signing):
    return clients.pyiceberg_catalog(signing, **{ASKED: SIGNED})


@pytest.mark.smoke
def test_life_of_a_table(signing, lake):
    lake.create_namespace("py_signed")
    table = lake.create_table("py_signed.events", schema=ROWS.schema)
    table.append(ROWS)
    table.delete(EqualTo("id", 2))
    table.upsert(pa.table({"id": pa.array([3, 4], pa.int64()), "place": ["lima", "kiev"]}), join_cols=["id"])
    assert rows(lake.load_table("py_signed.events")) == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    table.overwrite(ROWS)
    assert rows(lake.load_table("py_signed.events")) == [(1, "oslo"), (2, "rome"), (3, "bern")]
    made = signatures(signing)
    assert {status for *_, status in made} == {200}
    assert {method for method, *_ in made} >= {"GET", "PUT"}
    location = table.location()
    lake.purge_table("py_signed.events")
    assert eventually(lambda: signing.storage.list(location) == [])
    lake.drop_namespace("py_signed")


def test_sibling(signing, lake):
    """What is signed for one table is not signed for another, nor for the catalog's own files."""
    lake.create_namespace("py_siblings")
    for name in ["events", "events_two"]:
        lake.create_table(f"py_siblings.{name}", schema=ROWS.schema).append(ROWS)
    own, sibling = (lake.load_table(f"py_siblings.{name}") for name in ["events", "events_two"])
    before = signing.storage.list(sibling.location())
    foreign = next(f"s3://{path}" for path in before if path.endswith(".parquet"))
    for attempt in [
        lambda: own.io.new_input(foreign).open().read(),
        lambda: own.io.new_output(foreign).create(overwrite=True).close(),
        lambda: own.io.delete(foreign),
        lambda: own.io.delete(own.metadata_location),
    ]:
        with pytest.raises(Exception, match="sign|403|Forbidden|denied"):
            attempt()
    assert signing.storage.list(sibling.location()) == before
    assert own.metadata_location.removeprefix("s3://") in signing.storage.list(own.location())


def test_upload_in_parts(signing, lake):
    """One file of more than 100 MB, whose parts are signed one by one."""
    lake.create_namespace("py_parts")
    table = lake.create_table("py_parts.events", schema=pa.schema([pa.field("body", pa.large_binary())]), properties={"write.parquet.compression-codec": "uncompressed"})
    body = bytes(range(256)) * (BIG_BYTES // 256)
    table.append(pa.table({"body": pa.array([body], pa.large_binary())}))
    [read] = lake.load_table("py_parts.events").scan().to_arrow()["body"].to_pylist()
    assert read == body
    parts = [uri for method, uri, _, status in signatures(signing) if method == "PUT" and "partNumber=" in uri and status == 200]
    assert len(parts) >= 2
