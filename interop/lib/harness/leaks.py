"""All that an engine writes, searched for what it must never have been told.

An engine may hold, and write down, its own key, its tokens, and the credentials that it is given for its own tables.
It must not be told the server's key of the storage, what seals that, nor what others show and are given.
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

# A text that the engine writes itself, so that each channel shows that what is in it is found.
SEED = "seed7qv2xnk4wtz9"

ENGINE_SECONDS_MAX = 240


@dataclass
class World:
    """What an engine is told, and what it must not be told, by what that is."""

    uri: str
    warehouse: str
    token_endpoint: str
    key: Key
    # A namespace of the engine's own; a table of somebody else's, and a file of it.
    namespace: str
    sibling: str
    foreign: str
    secrets: dict[str, str] = field(default_factory=dict)


def make_world(running: SecuredLake, engine: str) -> World:
    """A key for an engine, and a table of somebody else's, who is given credentials for it."""
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
    """Fails for each secret that stands in a channel, and for each channel in which the search finds nothing at all."""
    assert len(world.secrets) >= 5, world.secrets.keys()
    for channel, text in channels.items():
        assert holds(text, SEED), f"the search does not find the seed in {channel}: {text[:2000]}"
    assert [f"{what} is in {channel}" for channel, text in channels.items() for what, each in world.secrets.items() if holds(text, each)] == []


def holds(text: str, secret: str) -> bool:
    """Whether a secret is in a text, as it is or as it may be spelled."""
    raw = secret.encode()
    padded = [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    return any(spelled in text for spelled in [secret, quote(secret, safe=""), raw.hex(), *(each.rstrip("=") for each in padded)])


def run(engine: str, world: World) -> dict[str, str]:
    """Lets an engine work in a process of its own, as talkative as it can be, and returns what that wrote."""
    told = {**asdict(world), "secrets": {}}
    done = subprocess.run(
        [sys.executable, "-m", "harness.loud", engine], input=json.dumps(told), capture_output=True, text=True, errors="replace",
        env={**server.environment(None), "PYTHONPATH": str(paths.REPOSITORY / "interop" / "lib"), "AWS_EC2_METADATA_DISABLED": "true"},
        timeout=ENGINE_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return {f"{engine}'s stdout": done.stdout, f"{engine}'s stderr": done.stderr}


def statements(catalog: str, world: World) -> list[tuple[str, bool]]:
    """What an engine is asked in SQL, and whether that succeeds."""
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
    """The properties of a catalog of Java's or PyIceberg's that shows the engine's key and asks for credentials."""
    return {"credential": world.key.text, "oauth2-server-uri": world.token_endpoint, ASKED: VENDED}
