"""PyIceberg and curl with credentials: what each shows, across the end of a token, and what is hidden from whom."""

import json
import time

import pyarrow as pa
import pytest
from harness.compare import rows
from harness.secured import LIFETIME_SECONDS, Key, Secured, curl
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

pytestmark = pytest.mark.moorage_only

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def catalog(running: Secured, **properties: str):
    from pyiceberg.catalog import load_catalog

    return load_catalog("ice", type="rest", uri=running.uri, warehouse=running.warehouse, **properties)


def ways(running: Secured, key: Key) -> dict[str, dict]:
    """The ways in which PyIceberg shows a key."""
    oauth2 = {"client_id": key.id, "client_secret": key.secret, "token_url": running.token_endpoint}
    return {
        "credential": {"credential": key.text},
        "pair": {"credential": key.pair, "oauth2-server-uri": running.token_endpoint},
        "token": {"token": key.text},
        "basic": {"auth": {"type": "basic", "basic": {"username": key.id, "password": key.secret}}},
        "oauth2": {"auth": {"type": "oauth2", "oauth2": oauth2}},
    }


def life_of_a_table(running: Secured, way: str, pause: float = 0) -> None:
    key = running.engineer(f"py-{way}")
    made = catalog(running, **ways(running, key)[way])
    namespace = f"credentials_{way}"
    made.create_namespace(namespace)
    table = made.create_table(f"{namespace}.events", schema=ROWS.schema)
    table.append(ROWS)
    time.sleep(pause)
    table.append(ROWS)
    assert rows(made.load_table(f"{namespace}.events"), "id") == [(1,), (1,), (2,), (2,), (3,), (3,)]


@pytest.mark.smoke
def test_credential(secured_server):
    life_of_a_table(secured_server, "credential")


@pytest.mark.parametrize("way", ["pair", "token", "basic", "oauth2"])
def test_ways(secured_server, way):
    life_of_a_table(secured_server, way)


@pytest.mark.parametrize("way", ["credential", "pair"])
def test_token_ends(secured_server, way):
    """The token ends between two appends: the client asks for another one."""
    key = secured_server.engineer(f"ends-{way}")
    made = catalog(secured_server, **ways(secured_server, key)[way])
    made.create_namespace(f"ends_{way}")
    table = made.create_table(f"ends_{way}.events", schema=ROWS.schema)
    table.append(ROWS)
    time.sleep(LIFETIME_SECONDS + 1)
    table.append(ROWS)
    assert len(rows(made.load_table(f"ends_{way}.events"), "id")) == 6


@pytest.mark.smoke
def test_what_others_see(secured_server):
    """A reader sees what it was granted and nothing beside, and hears of the rest as of what never was."""
    owner, reader = secured_server.engineer("seen-owner"), secured_server.key("seen-reader")
    made = catalog(secured_server, token=owner.text)
    made.create_namespace("seen")
    for name in ["shown", "hidden"]:
        made.create_table(f"seen.{name}", schema=ROWS.schema).append(ROWS)
    other = catalog_of_nobody(secured_server, reader)
    assert other.startswith("404") or "NoSuchWarehouse" in other
    secured_server.command("grant", "read", "on", "table", "default.seen.shown", "to", reader.principal, key=owner)
    found = catalog(secured_server, token=reader.text)
    table = found.load_table("seen.shown")
    assert rows(table, "id") == [(1,), (2,), (3,)]
    with pytest.raises(NoSuchTableError):
        found.load_table("seen.hidden")
    with pytest.raises(ForbiddenError):
        table.append(ROWS)
    secured_server.command("revoke", "read", "on", "table", "default.seen.shown", "from", reader.principal, key=owner)
    assert "404" in curl(secured_server, "/v1/namespaces/seen/tables/shown", "-H", f"Authorization: Bearer {reader.text}")


@pytest.mark.smoke
def test_lists(secured_server):
    """A list has what its reader sees, and nothing beside."""
    owner, reader = secured_server.engineer("lists-owner"), secured_server.key("lists-reader")
    made = catalog(secured_server, token=owner.text)
    made.create_namespace("listed")
    for name in ["shown", "hidden"]:
        made.create_table(f"listed.{name}", schema=ROWS.schema)
    secured_server.command("grant", "read", "on", "table", "default.listed.shown", "to", reader.principal, key=owner)
    found = catalog(secured_server, token=reader.text)
    assert found.list_namespaces() == [("listed",)]
    assert found.list_tables("listed") == [("listed", "shown")]


def catalog_of_nobody(running: Secured, key: Key) -> str:
    """What somebody without grants hears of the warehouse."""
    return curl(running, "/v1/config?warehouse=default", "-H", f"Authorization: Bearer {key.text}")


@pytest.mark.smoke
def test_curl(secured_server):
    """A token from the endpoint, and each refusal of the guide."""
    key = secured_server.engineer("curl")
    *answer, status = curl(
        secured_server, "/v1/oauth/tokens", "-d", "grant_type=client_credentials", "-d", f"client_secret={key.text}"
    ).splitlines()
    token = json.loads("".join(answer))
    assert status == "200" and token["token_type"] == "bearer" and token["expires_in"] == LIFETIME_SECONDS
    authorization = ["-H", f"Authorization: Bearer {token['access_token']}"]
    assert curl(secured_server, "/v1/namespaces", *authorization).endswith("\n200")
    assert curl(secured_server, "/v1/namespaces").endswith("\n401")
    wrong = key.text[:-7] + "A" + key.text[-6:]
    assert curl(secured_server, "/v1/namespaces", "-H", f"Authorization: Bearer {wrong}").endswith("\n401")
    refused = curl(secured_server, "/v1/oauth/tokens", "-d", "grant_type=client_credentials", "-d", f"client_secret={wrong}")
    assert '"invalid_client"' in refused and refused.endswith("\n401")
    assert curl(secured_server, "/management/v1/principals", *authorization).endswith("\n403")
    secured_server.command("key", "withdraw", "curl", key.id)
    assert curl(secured_server, "/v1/namespaces", *authorization).endswith("\n401")
