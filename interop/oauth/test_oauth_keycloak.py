"""Engines with tokens of Keycloak: create, append, read, and on across the end of a token."""

import json
import time

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import ordered, rows
from harness.flink import BATCH
from harness.keycloak import LIFETIME_SECONDS, SECRET
from harness.secured import attach_duckdb, curl, trino_catalog, Key

pytestmark = pytest.mark.moorage_only

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
UNTIL_IT_ENDS = LIFETIME_SECONDS + 2


def test_curl(corporate_server, keycloak):
    form = ["-d", "grant_type=client_credentials", "-d", "client_id=curl", "-d", f"client_secret={SECRET}"]
    import subprocess

    answer = subprocess.run(["curl", "-sS", *form, keycloak.token_endpoint], capture_output=True, text=True, check=True).stdout
    token = json.loads(answer)["access_token"]
    authorization = ["-H", f"Authorization: Bearer {token}"]
    assert curl(corporate_server, "/v1/config?warehouse=default", *authorization).endswith("\n200")
    made = curl(corporate_server, "/v1/namespaces", *authorization, "-H", "Content-Type: application/json", "-d", '{"namespace":["curl"]}')
    assert made.endswith("\n200"), made
    cut = token[:-4] + "AAAA"
    assert curl(corporate_server, "/v1/namespaces", "-H", f"Authorization: Bearer {cut}").endswith("\n401")
    time.sleep(60 + UNTIL_IT_ENDS)  # the server forgives a minute
    late = curl(corporate_server, "/v1/namespaces", *authorization, "-i")
    assert late.endswith("\n401") and 'error_description="expired"' in late


def test_pyiceberg(corporate_server, keycloak):
    from pyiceberg.catalog import load_catalog

    oauth2 = {"client_id": "pyiceberg", "client_secret": SECRET, "token_url": keycloak.token_endpoint}
    catalog = load_catalog(
        "ice", type="rest", uri=corporate_server.uri, warehouse="default", auth={"type": "oauth2", "oauth2": oauth2}
    )
    catalog.create_namespace("py_oauth")
    table = catalog.create_table("py_oauth.events", schema=ROWS.schema)
    table.append(ROWS)
    time.sleep(UNTIL_IT_ENDS)
    table.append(ROWS)
    assert rows(catalog.load_table("py_oauth.events"), "id") == [(1,), (1,), (2,), (2,)]


def test_duckdb(corporate_server, keycloak):
    with clients.duckdb_with_extensions() as connection:
        secret = f"CLIENT_ID 'duckdb', CLIENT_SECRET '{SECRET}', OAUTH2_SERVER_URI '{keycloak.token_endpoint}', OAUTH2_SCOPE 'profile'"
        attach_duckdb(connection, corporate_server, secret)
        connection.execute("CREATE SCHEMA ice.duck_oauth")
        connection.execute("CREATE TABLE ice.duck_oauth.events AS SELECT 1 AS id")
        time.sleep(UNTIL_IT_ENDS)
        connection.execute("INSERT INTO ice.duck_oauth.events VALUES (2)")
        assert sorted(connection.execute("SELECT id FROM ice.duck_oauth.events").fetchall()) == [(1,), (2,)]


def test_spark(spark, corporate_server, keycloak):
    more = {"credential": f"spark:{SECRET}", "oauth2-server-uri": keycloak.token_endpoint, "scope": "profile"}
    clients.add_spark_catalog(spark, "corp", corporate_server, **more)
    spark.sql("CREATE NAMESPACE corp.spark_oauth")
    spark.sql("CREATE TABLE corp.spark_oauth.events (id BIGINT) USING iceberg")
    spark.sql("INSERT INTO corp.spark_oauth.events VALUES (1)")
    time.sleep(UNTIL_IT_ENDS)
    spark.sql("INSERT INTO corp.spark_oauth.events VALUES (2)")
    assert ordered(spark.sql("SELECT id FROM corp.spark_oauth.events").collect()) == [(1,), (2,)]


def test_trino(engine, corporate_server, keycloak):
    more = {
        "iceberg.rest-catalog.oauth2.credential": f"trino:{SECRET}",
        "iceberg.rest-catalog.oauth2.server-uri": keycloak.token_endpoint,
        "iceberg.rest-catalog.oauth2.scope": "profile",
    }
    catalog = engine.add(trino_catalog(corporate_server, Key("", ""), **more))
    engine.execute(f"CREATE SCHEMA {catalog}.trino_oauth")
    engine.execute(f"CREATE TABLE {catalog}.trino_oauth.events AS SELECT 1 AS id")
    time.sleep(UNTIL_IT_ENDS)
    engine.execute(f"INSERT INTO {catalog}.trino_oauth.events VALUES (2)")
    assert ordered(engine.execute(f"SELECT id FROM {catalog}.trino_oauth.events")) == [(1,), (2,)]


def test_flink(flink, corporate_server, keycloak):
    more = {"credential": f"flink:{SECRET}", "oauth2-server-uri": keycloak.token_endpoint, "scope": "profile"}
    session = flink.session(corporate_server, BATCH, **more)
    session.run("CREATE DATABASE flink_oauth")
    session.run("CREATE TABLE flink_oauth.events (id BIGINT)")
    session.run("INSERT INTO flink_oauth.events VALUES (1)")
    time.sleep(UNTIL_IT_ENDS)
    session.run("INSERT INTO flink_oauth.events VALUES (2)")
    assert ordered(session.run("SELECT id FROM flink_oauth.events")) == [(1,), (2,)]
