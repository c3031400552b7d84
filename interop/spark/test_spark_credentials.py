"""Spark with credentials: tokens that it exchanges before they end, and new ones where that is off."""

import time

import pytest
from harness import clients
from harness.compare import ordered
from harness.secured import LIFETIME_SECONDS, java_credentials

pytestmark = pytest.mark.moorage_only

# The client exchanges its token shortly before the end; with "false" it shows the credential again after a refusal.
EXCHANGE = {"exchange": {}, "no-exchange": {"token-exchange-enabled": "false"}, "no-refresh": {"token-refresh-enabled": "false"}}


def life_of_a_table(spark, running, name: str, pause: float, **more: str) -> None:
    key = running.engineer(f"spark-{name}")
    catalog = f"spark_{name.replace('-', '_')}"
    clients.add_spark_catalog(spark, catalog, running, **java_credentials(running, key, **more))
    spark.sql(f"CREATE NAMESPACE {catalog}.{catalog}")
    spark.sql(f"CREATE TABLE {catalog}.{catalog}.events (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {catalog}.{catalog}.events VALUES (1)")
    time.sleep(pause)
    spark.sql(f"INSERT INTO {catalog}.{catalog}.events VALUES (2)")
    assert ordered(spark.sql(f"SELECT id FROM {catalog}.{catalog}.events").collect()) == [(1,), (2,)]


@pytest.mark.smoke
def test_credential(spark, secured_server):
    life_of_a_table(spark, secured_server, "smoke", 0)


@pytest.mark.parametrize("name", ["exchange", "no-exchange"])
def test_token_ends(spark, secured_server, name):
    life_of_a_table(spark, secured_server, name, 2 * LIFETIME_SECONDS, **EXCHANGE[name])
