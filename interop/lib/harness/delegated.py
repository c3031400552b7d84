"""Moorage with a warehouse that vends credentials or signs requests, and clients without their own storage keys."""

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

COMMAND_SECONDS_MAX = 180


class Lake(server.Moorage):
    """A server with a warehouse `lake`, which a command creates before the server starts."""

    warehouse = "lake"

    # The arguments of `moorage warehouse create`, without the name.
    _create: list[str]

    def __enter__(self) -> "Lake":
        self.start()  # creates the store
        self._process.stop()
        at_once = [f"--property={name}={value}" for name, value in server.PURGE_AT_ONCE.items()]
        self.run("warehouse", "create", "--data", str(self.data), *self._create, *at_once, self.warehouse)
        return super().__enter__()

    def run(self, *words: str) -> str:
        """Runs a moorage command, which must succeed, and returns its output."""
        done = subprocess.run(
            [str(self.binary), *words], capture_output=True, text=True, env=self._env, timeout=COMMAND_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, f"moorage {' '.join(words)}: exit status {done.returncode}\n{done.stderr}"
        return done.stdout


class Delegated(Lake):
    """A Lake on an S3 server, whose warehouse offers ways to access files without a key.

    offers are the warehouse's --delegation values, and options its further storage options.
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
    """The properties for a Trino catalog that requests credentials. Trino must be told the address of S3."""
    # Trino refuses this procedure together with vended credentials.
    left_out = ("s3.aws-", "iceberg.register-table-procedure")
    properties = {name: value for name, value in clients.trino_catalog(running).items() if not name.startswith(left_out)}
    return {**properties, "iceberg.rest-catalog.vended-credentials-enabled": "true"}


@contextmanager
def duckdb_connection(running):
    """A DuckDB connection that requests credentials, with the server attached as `ice`."""
    with clients.duckdb_with_extensions() as connection:
        connection.execute(
            f"ATTACH '{running.warehouse}' AS ice (TYPE ICEBERG, ENDPOINT '{running.uri}', AUTHORIZATION_TYPE 'none', "
            "SUPPORT_NESTED_NAMESPACES true, PURGE_REQUESTED false)"
        )
        yield connection


def keys_told(watched, table: str) -> dict[str, str]:
    """The most recent session keys that a client got for a table through a proxy. It has no other keys."""
    path = re.compile(rf"/tables/{re.escape(table)}(/credentials)?(\?.*)?$")
    for exchange in reversed(watched.seen):
        if exchange.status == 200 and path.search(exchange.path) and b"storage-credentials" in answer_of(exchange):
            [credential] = json.loads(answer_of(exchange))["storage-credentials"]
            return credential["config"]
    raise AssertionError(f"nobody was given credentials for {table}: {[(e.method, e.path) for e in watched.seen]}")


def answer_of(exchange) -> bytes:
    return gzip.decompress(exchange.answer) if exchange.answer[:2] == b"\x1f\x8b" else exchange.answer


def check_reach(storage: s3.Server, keys: dict[str, str], own: str, sibling: str) -> None:
    """Checks that session keys give access to one table's files, and that other files are refused with 403.

    own is the location of the keys' table, and sibling of another table. Both tables have files.
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
        # The catalog's metadata file, in the table's own folder.
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
    """The signing requests that passed a proxy: method, URI and body to sign, and the status of the response."""
    asked = [(json.loads(exchange.body), exchange.status) for exchange in watched.posts("/sign")]
    return [(each["method"], each["uri"], (each.get("body") or "").encode(), status) for each, status in asked]


def lives_by_pyiceberg(lake):
    """Has PyIceberg create and change a table.

    Returns it, and a second one whose name starts with the first one's name.
    """
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
