"""Keycloak: an identity provider of a test run's own, with one realm and the clients of engines in it."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from harness import paths, server

REALM = "lake"
AUDIENCE = "moorage"
ROLE = "engineers"
SECRET = "a-secret-of-keycloak-0123456789"  # noqa: S105 - of a server that ends with the test

# The client with which people sign in to the console, and a person.
CONSOLE = "moorage-console"
PERSON = {"username": "ann", "id": "7d0f6a9e-2f52-4a0e-9d6d-0c1a8a3c1f11", "password": "a-password-of-ann"}

# How long its access tokens are good.
LIFETIME_SECONDS = 10

# Its first start makes the tables of its database, which takes a small machine minutes.
START_SECONDS_MAX = 600

HEAP = "-Xms64m -Xmx640m"


def realm(clients: list[str]) -> dict:
    """A realm in which each client is a principal of its own, by client credentials, and has ROLE."""
    audience = {
        "name": "audience",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-audience-mapper",
        "config": {"included.custom.audience": AUDIENCE, "access.token.claim": "true"},
    }
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "accessTokenLifespan": LIFETIME_SECONDS,
        "roles": {"realm": [{"name": ROLE}]},
        "clients": [
            {
                "clientId": client,
                "enabled": True,
                "protocol": "openid-connect",
                "publicClient": False,
                "secret": SECRET,
                "standardFlowEnabled": False,
                "serviceAccountsEnabled": True,
                "protocolMappers": [audience],
            }
            for client in clients
        ]
        + [
            {
                "clientId": CONSOLE,
                "enabled": True,
                "protocol": "openid-connect",
                "publicClient": True,
                "standardFlowEnabled": True,
                "redirectUris": ["*"],
                "attributes": {"pkce.code.challenge.method": "S256"},
                "protocolMappers": [audience],
            }
        ],
        "users": [
            {
                "id": PERSON["id"],
                "username": PERSON["username"],
                "enabled": True,
                "email": "ann@example.com",
                "emailVerified": True,
                "firstName": "Ann",
                "lastName": "Ann",
                "credentials": [{"type": "password", "value": PERSON["password"], "temporary": False}],
                "realmRoles": [ROLE],
            }
        ]
        + [
            {"username": f"service-account-{client}", "enabled": True, "serviceAccountClientId": client, "realmRoles": [ROLE]}
            for client in clients
        ],
    }


class Keycloak:
    """A server on a loopback port, as a context manager. Leaving the block stops it and removes its folder."""

    def __init__(self, clients: list[str]):
        self._clients = clients
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-keycloak-"))
        self.log = self.folder / "keycloak.log"

    def __enter__(self) -> "Keycloak":
        # It writes into its own folder when it starts.
        home = self.folder / "keycloak"
        shutil.copytree(paths.keycloak(), home, symlinks=True)
        imports = home / "data" / "import"
        imports.mkdir(parents=True)
        (imports / "realm.json").write_text(json.dumps(realm(self._clients)))
        port = server.free_port()
        command = [str(home / "bin" / "kc.sh"), "start", "--optimized", "--http-enabled", "true"]
        command += ["--http-host", "127.0.0.1", "--http-port", str(port)]
        # Its own addresses stand in its tokens, whatever name a client asked for.
        command += ["--hostname", f"http://127.0.0.1:{port}", "--cache", "local", "--import-realm"]
        env = {**os.environ, "JAVA_OPTS_KC_HEAP": HEAP, "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1"}
        self._process = server.Process(command, self.log, env, cwd=self.folder)
        self._process.wait_for(r"Listening on: http://127\.0\.0\.1", START_SECONDS_MAX)
        self.issuer = f"http://127.0.0.1:{port}/realms/{REALM}"
        self.token_endpoint = f"{self.issuer}/protocol/openid-connect/token"
        return self

    def __exit__(self, kind, *_) -> None:
        self._process.stop()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"Keycloak's folder is kept: {self.folder}")
