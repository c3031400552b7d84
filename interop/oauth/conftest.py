"""Fixtures of the suite with an identity provider."""

import pytest
from harness.keycloak import AUDIENCE, CONSOLE, ROLE, Keycloak
from harness.secured import Secured

# One client of Keycloak for each engine: a principal of its own.
ENGINES = ["pyiceberg", "duckdb", "spark", "trino", "flink", "curl"]

ALIAS = "corp"


@pytest.fixture(scope="session")
def keycloak():
    with Keycloak(ENGINES) as running:
        yield running


@pytest.fixture(scope="session")
def corporate_server(keycloak):
    """Moorage that accepts Keycloak's tokens, and lets its engineers work in the warehouse."""
    issuer = f"{ALIAS}={keycloak.issuer},audience={AUDIENCE},roles=realm_access.roles,console-client-id={CONSOLE}"
    with Secured(["--issuer", issuer]) as running:
        running.command("grant", "create", "on", "warehouse", running.warehouse, "to", "role", f"{ALIAS}/{ROLE}")
        yield running
