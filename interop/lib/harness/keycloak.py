"""Keycloak: a separate identity provider for a test run, with one realm and a client per engine."""

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

# The client with which users sign in to the console, and one user.
CONSOLE = "moorage-console"
PERSON = {"username": "ann", "id": "7d0f6a9e-2f52-4a0e-9d6d-0c1a8a3c1f11", "password": "a-password-of-ann"}

# The lifetime of its access tokens.
LIFETIME_SECONDS = 10

# Its first start creates its database tables, which takes minutes on a small machine.
START_SECONDS_MAX = 600

HEAP = "-Xms64m -Xmx640m"


def realm(clients: list[str]) -> dict:
    """A realm in which each client is a separate principal with ROLE, and uses the client credentials grant."""
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
        # Keycloak writes into its own folder at the start.
        home = self.folder / "keycloak"
        shutil.copytree(paths.keycloak(), home, symlinks=True)
        imports = home / "data" / "import"
        imports.mkdir(parents=True)
        (imports / "realm.json").write_text(json.dumps(realm(self._clients)))
        port = server.free_port()
        command = [str(home / "bin" / "kc.sh"), "start", "--optimized", "--http-enabled", "true"]
        command += ["--http-host", "127.0.0.1", "--http-port", str(port)]
        # Its tokens contain these addresses, regardless of the host name in a request.
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
