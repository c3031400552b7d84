"""Moorage with authentication and access control, and the clients' credentials for it.

The first administrator is created in the store before the server starts; everything else goes through the
server.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass

from harness import clients, s3, server
from harness.clients import VENDED
from harness.s3 import Server as S3

COMMAND_SECONDS_MAX = 180

# The lifetime of a token in tests that wait for its expiry. Java clients renew a token when a tenth of that is left,
# which must be enough for a busy machine.
LIFETIME_SECONDS = 20

# The three parts of a JWT, the first starting with its header.
TOKEN = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}")


@dataclass(frozen=True)
class Key:
    """An API key, which a client sends as a credential or as a token."""

    principal: str
    text: str

    @property
    def id(self) -> str:
        return self.text.split("_")[1]

    @property
    def secret(self) -> str:
        return self.text.split("_")[2]

    @property
    def pair(self) -> str:
        """ID:SECRET, the form for OAuth clients."""
        return f"{self.id}:{self.secret}"


class Secured(server.Moorage):
    """A server with authentication and access control.

    `admin` is the key of an administrator without access to data.
    """

    name = "secured"

    def __init__(self, arguments: list[str] | None = None, s3: S3 | None = None):
        super().__init__(["--keys", *(arguments or [])], s3)
        self._keys: list[Key] = []
        self.folder.joinpath("data").mkdir(exist_ok=True)
        self.admin = self._key(self._on_store("key", "create", "root", "--admin"), "key:root")

    def _on_store(self, *words: str) -> str:
        return self._run([*words, "--data", str(self.data)], self._env)

    def command(self, *words: str, key: Key | None = None) -> str:
        """Runs a moorage command against the server, as the administrator unless a key is given."""
        return self._run([*words, "--uri", self.uri], {**self._env, "MOORAGE_TOKEN": (key or self.admin).text})

    def _run(self, words: list[str], env: dict[str, str]) -> str:
        done = subprocess.run(
            [str(self.binary), *words], capture_output=True, text=True, env=env, timeout=COMMAND_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, f"moorage {' '.join(words)}: exit status {done.returncode}\n{done.stderr}"
        return done.stdout

    def _key(self, printed: str, principal: str) -> Key:
        made = Key(principal, printed.splitlines()[-1])
        self._keys.append(made)
        return made

    def _check(self) -> list[str]:
        return super()._check() + self._leaks()

    def _leaks(self) -> list[str]:
        """The places in the server's output that contain a key or a token of the run.

        It first checks that a search works in each.
        """
        faults = []
        for place, known in {self.log: self.uri, self.data / "audit.log": self.admin.principal}.items():
            written = place.read_text(errors="replace")
            if known not in written:
                faults.append(f"the search for secrets does not find {known!r} in {place.name}")
            faults += [f"{what} stands in {place.name}" for what, secret in self.secrets().items() if secret in written]
            faults += [f"a token stands in {place.name}: {found[:20]}…" for found in TOKEN.findall(written)]
        return faults

    def secrets(self) -> dict[str, str]:
        """The secrets that only their owners may see, by description."""
        return {f"the secret of {key.principal}": key.secret for key in self._keys}

    def key(self, name: str, *options: str) -> Key:
        """Creates a key for key:NAME."""
        return self._key(self.command("key", "create", name, *options), f"key:{name}")

    def newcomer(self, name: str) -> Key:
        """Creates a key that may create namespaces, and owns them. It cannot read anything of other principals."""
        made = self.key(name)
        self.command("grant", "create", "on", "warehouse", self.warehouse, "to", made.principal)
        return made

    def engineer(self, name: str) -> Key:
        """Creates a key that may create namespaces and tables in the warehouse, and owns them."""
        made = self.key(name)
        self.command("grant", "create,write,alter,maintain", "on", "warehouse", self.warehouse, "to", made.principal)
        return made

    def owner(self, name: str) -> Key:
        """Creates a key that owns the warehouse, and so may do everything there."""
        made = self.key(name)
        self.command("owner", "warehouse", self.warehouse, "to", made.principal)
        return made

    @property
    def token_endpoint(self) -> str:
        return f"{self.uri}/v1/oauth/tokens"


class SecuredLake(Secured):
    """A Secured server with a warehouse `lake` on an S3 server. It vends credentials for the warehouse's tables.

    The server's storage key is sealed, and the server has no other one.
    """

    warehouse = "lake"
    name = "secured lake"

    def __init__(self, files: S3, arguments: list[str] | None = None):
        super().__init__(arguments)
        self.storage, self.files = files, s3.WithoutKeys(files)
        keys, secret = self.folder / "secrets.json", self.folder / "lake.json"
        self._env["MOORAGE_SECRETS_KEY"] = str(keys)
        self._run(["secrets", "init"], self._env)
        secret.write_text(json.dumps({"access-key-id": s3.ACCESS_KEY_ID, "secret-access-key": s3.SECRET_ACCESS_KEY}))
        self._on_store(
            "warehouse", "create", "--location", s3.WAREHOUSE, "--storage-option", f"s3.endpoint={files.url}",
            "--storage-option", f"s3.region={s3.REGION}", "--delegation", VENDED, "--secret-file", str(secret), self.warehouse,
        )  # fmt: skip
        sealing = json.loads(keys.read_text())["key"]
        self._sealing = {f"the key {number} that seals": each["keyData"]["value"] for number, each in enumerate(sealing)}

    def secrets(self) -> dict[str, str]:
        return {**super().secrets(), **self._sealing, "the key of the storage": s3.SECRET_ACCESS_KEY}


def java_credentials(running: Secured, key: Key, **more: str) -> dict[str, str]:
    """The catalog properties with which the Java client sends a key."""
    return {"credential": key.text, "oauth2-server-uri": running.token_endpoint, **more}


def trino_credentials(running: Secured, key: Key, **more: str) -> dict[str, str]:
    """The properties with which a Trino catalog sends a key."""
    return {
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.credential": key.text,
        "iceberg.rest-catalog.oauth2.server-uri": running.token_endpoint,
        **more,
    }


def trino_catalog(running: Secured, key: Key, **more: str) -> dict[str, str]:
    """All properties for a Trino catalog that sends a key."""
    return clients.trino_catalog(running) | trino_credentials(running, key, **more)


def duckdb_secrets(running: Secured, key: Key) -> dict[str, str]:
    """The ways in which DuckDB sends a key, as arguments of CREATE SECRET."""
    return {
        "token": f"TOKEN '{key.text}'",
        "credential": f"CLIENT_ID '{key.id}', CLIENT_SECRET '{key.secret}', OAUTH2_SERVER_URI '{running.token_endpoint}'",
    }


def attach_duckdb(connection, running: Secured, secret: str) -> None:
    """Attaches the server to a DuckDB connection as `ice`, with a secret."""
    connection.execute(f"CREATE SECRET ice_secret (TYPE ICEBERG, {secret})")
    connection.execute(
        f"ATTACH '{running.warehouse}' AS ice (TYPE ICEBERG, ENDPOINT '{running.uri}', SECRET ice_secret, "
        "SUPPORT_NESTED_NAMESPACES true, PURGE_REQUESTED false)"
    )


def curl(running: Secured, path: str, *options: str) -> str:
    """The output of curl for a request, with the status on the last line."""
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(
        ["curl", "-sS", "-w", "\n%{http_code}", *options, running.uri + path],
        capture_output=True, text=True, env=env, timeout=COMMAND_SECONDS_MAX, check=True,
    )  # fmt: skip
    return done.stdout
