"""Searches all output of an engine for secrets that it must never get.

An engine may have and log its own key, its tokens, and the credentials vended for its own tables. It must not
get the server's storage key, the secret that seals that key, or other principals' keys and credentials.
"""

import base64
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from urllib.parse import quote

import pyarrow as pa
import requests

from harness import clients, paths, server
from harness.clients import ASKED, VENDED
from harness.secured import Key, SecuredLake

# A text that the engine writes itself, which proves for each channel that the search works.
SEED = "seed7qv2xnk4wtz9"

ENGINE_SECONDS_MAX = 240


@dataclass
class World:
    """The input of an engine, and the secrets that it must not get, by description."""

    uri: str
    warehouse: str
    token_endpoint: str
    key: Key
    # The engine's own namespace; another principal's table, and a file of it.
    namespace: str
    sibling: str
    foreign: str
    secrets: dict[str, str] = field(default_factory=dict)


def make_world(running: SecuredLake, engine: str) -> World:
    """Creates a key for an engine, and another principal's table with credentials vended for it."""
    key, other = (running.newcomer(f"{engine}-{name}") for name in ["loud", "other"])
    catalog = clients.pyiceberg_catalog(running, credential=other.text)
    namespace = f"others_{engine}"
    catalog.create_namespace(namespace)
    table = catalog.create_table(f"{namespace}.events", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    [file] = [task.file.file_path for task in table.scan().plan_files()]
    told = requests.get(
        f"{running.uri}/v1/{running.warehouse}/namespaces/{namespace}/tables/events/credentials",
        headers={"Authorization": f"Bearer {other.text}", "X-Iceberg-Access-Delegation": VENDED}, timeout=30,
    )  # fmt: skip
    assert told.status_code == 200, told.text
    [given] = told.json()["storage-credentials"]
    secrets = {what: secret for what, secret in running.secrets().items() if secret != key.secret}
    secrets |= {f"{name} of {other.principal}": given["config"][name] for name in ["s3.secret-access-key", "s3.session-token"]}
    return World(running.uri, running.warehouse, running.token_endpoint, key, f"{SEED}_{engine}", f"{namespace}.events", file, secrets)


def check(world: World, channels: dict[str, str]) -> None:
    """Fails for each secret in a channel, and for each channel in which the search does not find the seed."""
    assert len(world.secrets) >= 5, world.secrets.keys()
    for channel, text in channels.items():
        assert holds(text, SEED), f"the search does not find the seed in {channel}: {text[:2000]}"
    assert [f"{what} is in {channel}" for channel, text in channels.items() for what, each in world.secrets.items() if holds(text, each)] == []


def holds(text: str, secret: str) -> bool:
    """Whether a text contains a secret, literally or encoded."""
    raw = secret.encode()
    padded = [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    return any(spelled in text for spelled in [secret, quote(secret, safe=""), raw.hex(), *(each.rstrip("=") for each in padded)])


def run(engine: str, world: World) -> dict[str, str]:
    """Runs an engine in a separate process, with the most verbose logging, and returns the output."""
    told = {**asdict(world), "secrets": {}}
    done = subprocess.run(
        [sys.executable, "-m", "harness.loud", engine], input=json.dumps(told), capture_output=True, text=True, errors="replace",
        env={**server.environment(None), "PYTHONPATH": str(paths.REPOSITORY / "interop" / "lib"), "AWS_EC2_METADATA_DISABLED": "true"},
        timeout=ENGINE_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return {f"{engine}'s stdout": done.stdout, f"{engine}'s stderr": done.stderr}


def statements(catalog: str, world: World) -> list[tuple[str, bool]]:
    """The SQL statements for an engine, and whether each succeeds."""
    return [
        (f"CREATE SCHEMA {catalog}.{world.namespace}", True),
        (f"CREATE TABLE {catalog}.{world.namespace}.events AS SELECT 1 AS id, '{SEED}' AS place", True),
        (f"INSERT INTO {catalog}.{world.namespace}.events VALUES (2, '{SEED}')", True),
        (f"SELECT * FROM {catalog}.{world.namespace}.events", True),
        (f"SELECT * FROM {catalog}.{world.namespace}.missing", False),
        (f"SELECT * FROM {catalog}.{world.sibling}", False),
        (f"DROP TABLE {catalog}.{world.namespace}.events", True),
        (f"DROP SCHEMA {catalog}.{world.namespace}", True),
    ]


def asking(world: World) -> dict[str, str]:
    """The properties for a Java or PyIceberg catalog that sends the engine's key and requests credentials."""
    return {"credential": world.key.text, "oauth2-server-uri": world.token_endpoint, ASKED: VENDED}
