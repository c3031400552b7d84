"""Moorage whose warehouse gives clients credentials or signs their requests, and clients that have no keys of their own."""

import gzip
import json
import re
import subprocess
from contextlib import contextmanager

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from pyiceberg.expressions import EqualTo

from harness import clients, s3, server
from harness.clients import ASKED, SIGNED, VENDED  # noqa: F401 - suites have them from here
from harness.compare import rows

COMMAND_SECONDS_MAX = 60


class Lake(server.Moorage):
    """A server with a warehouse `lake`, which is made by the words of a command before it starts."""

    warehouse = "lake"

    # What follows `moorage warehouse create`, without the name.
    _create: list[str]

    def __enter__(self) -> "Lake":
        self.start()  # makes the store
        self._process.stop()
        at_once = [f"--property={name}={value}" for name, value in server.PURGE_AT_ONCE.items()]
        self.run("warehouse", "create", "--data", str(self.data), *self._create, *at_once, self.warehouse)
        return super().__enter__()

    def run(self, *words: str) -> str:
        """Runs a command of moorage, which must succeed, and returns what it prints."""
        done = subprocess.run(
            [str(self.binary), *words], capture_output=True, text=True, env=self._env, timeout=COMMAND_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, f"moorage {' '.join(words)}: exit status {done.returncode}\n{done.stderr}"
        return done.stdout


class Delegated(Lake):
    """Such a server whose warehouse is on an S3 server, and offers ways to reach the files without a key.

    sts is where the warehouse asks for credentials; default: the S3 server.
    """

    name = "delegated"

    def __init__(self, files: s3.Server, *offers: str, options: dict[str, str] | None = None, arguments: list[str] | None = None):
        super().__init__(arguments)
        self._env |= {"AWS_ACCESS_KEY_ID": s3.ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": s3.SECRET_ACCESS_KEY}
        self.files = s3.WithoutKeys(files)
        self.storage = files
        words = ["--location", s3.WAREHOUSE, "--storage-option", f"s3.endpoint={files.url}"]
        for offer in offers:
            words += ["--delegation", offer]
        for name, value in (options or {}).items():
            words += ["--storage-option", f"{name}={value}"]
        self._create = words


def trino_catalog(running) -> dict[str, str]:
    """The properties of a catalog of Trino's that asks for credentials. It must be told where S3 is."""
    # It refuses to have the procedure beside credentials.
    left_out = ("s3.aws-", "iceberg.register-table-procedure")
    properties = {name: value for name, value in clients.trino_catalog(running).items() if not name.startswith(left_out)}
    return {**properties, "iceberg.rest-catalog.vended-credentials-enabled": "true"}


@contextmanager
def duckdb_connection(running):
    """A DuckDB connection that asks for credentials, with the server attached as `ice`."""
    with clients.duckdb_with_extensions() as connection:
        connection.execute(
            f"ATTACH '{running.warehouse}' AS ice (TYPE ICEBERG, ENDPOINT '{running.uri}', AUTHORIZATION_TYPE 'none', "
            "SUPPORT_NESTED_NAMESPACES true, PURGE_REQUESTED false)"
        )
        yield connection


def keys_told(watched, table: str) -> dict[str, str]:
    """The last session's keys that went through a proxy to a client of a table. It has no others."""
    path = re.compile(rf"/tables/{re.escape(table)}(/credentials)?(\?.*)?$")
    for exchange in reversed(watched.seen):
        if exchange.status == 200 and path.search(exchange.path) and b"storage-credentials" in answer_of(exchange):
            [credential] = json.loads(answer_of(exchange))["storage-credentials"]
            return credential["config"]
    raise AssertionError(f"nobody was given credentials for {table}: {[(e.method, e.path) for e in watched.seen]}")


def answer_of(exchange) -> bytes:
    return gzip.decompress(exchange.answer) if exchange.answer[:2] == b"\x1f\x8b" else exchange.answer


def check_reach(storage: s3.Server, keys: dict[str, str], own: str, sibling: str) -> None:
    """Session keys reach the files of their own table. The storage refuses them with 403 to read, write, list or delete others.

    own and sibling are the locations of two tables that have files.
    """
    session = storage.client(keys["s3.access-key-id"], keys["s3.secret-access-key"], keys["s3.session-token"])

    def key(location: str, end: str) -> str:
        return next(path for path in storage.list(location) if path.endswith(end)).removeprefix(f"{s3.BUCKET}/")

    assert session.get_object(Bucket=s3.BUCKET, Key=key(own, ".parquet"))["Body"].read(4) == b"PAR1"
    before = storage.list(sibling)
    folder, foreign, metadata = storage.path(sibling).removeprefix(f"{s3.BUCKET}/"), key(sibling, ".parquet"), key(own, ".metadata.json")
    for call, more in [
        ("get_object", {"Key": foreign}),
        ("head_object", {"Key": foreign}),
        ("put_object", {"Key": foreign}),
        ("put_object", {"Key": f"{folder}/data/more"}),
        ("list_objects_v2", {"Prefix": folder}),
        ("list_objects_v2", {"Prefix": f"{folder}/"}),
        ("list_objects_v2", {}),
        ("copy_object", {"Key": f"{key(own, '.parquet')}2", "CopySource": {"Bucket": s3.BUCKET, "Key": foreign}}),
        ("create_multipart_upload", {"Key": f"{folder}/data/more"}),
        ("delete_object", {"Key": foreign}),
        # The catalog's own file, in the table's own folder.
        ("delete_object", {"Key": metadata}),
        ("put_object", {"Key": metadata}),
    ]:
        with pytest.raises(ClientError) as refused:
            getattr(session, call)(Bucket=s3.BUCKET, **more)
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403, f"{call} {more}: {refused.value}"
    deleted = session.delete_objects(Bucket=s3.BUCKET, Delete={"Objects": [{"Key": foreign}, {"Key": metadata}]})
    assert [each["Code"] for each in deleted["Errors"]] == ["AccessDenied", "AccessDenied"], deleted
    assert storage.list(sibling) == before
    assert session.get_object(Bucket=s3.BUCKET, Key=metadata)["Body"].read(1) == b"{"


def signatures(watched) -> list[tuple[str, str, bytes, int]]:
    """What was asked to be signed through a proxy: method, URI and body of each request, and the status of the answer."""
    asked = [(json.loads(exchange.body), exchange.status) for exchange in watched.posts("/sign")]
    return [(each["method"], each["uri"], (each.get("body") or "").encode(), status) for each, status in asked]


def lives_by_pyiceberg(lake):
    """Has PyIceberg make and change a table, and returns it and one beside it whose name it begins."""
    there = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "place": ["oslo", "rome", "bern"]})
    lake.create_namespace("py_vended")
    lake.create_table("py_vended.events_two", schema=there.schema).append(there)
    table = lake.create_table("py_vended.events", schema=there.schema)
    table.append(there)
    table.delete(EqualTo("id", 2))
    table.upsert(pa.table({"id": pa.array([3, 4], pa.int64()), "place": ["lima", "kiev"]}), join_cols=["id"])
    assert rows(lake.load_table("py_vended.events")) == [(1, "oslo"), (3, "lima"), (4, "kiev")]
    table.overwrite(there)
    assert rows(lake.load_table("py_vended.events")) == [(1, "oslo"), (2, "rome"), (3, "bern")]
    return lake.load_table("py_vended.events"), lake.load_table("py_vended.events_two")
