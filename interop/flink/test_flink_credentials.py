"""Flink with credentials."""

import time

import pytest
from harness.compare import ordered
from harness.flink import BATCH
from harness.secured import LIFETIME_SECONDS, java_credentials

pytestmark = pytest.mark.moorage_only


def life_of_a_table(flink, running, name: str, pause: float) -> None:
    key = running.engineer(f"flink-{name}")
    session = flink.session(running, BATCH, **java_credentials(running, key))
    session.run(f"CREATE DATABASE flink_{name}")
    session.run(f"CREATE TABLE flink_{name}.events (id BIGINT)")
    session.run(f"INSERT INTO flink_{name}.events VALUES (1)")
    time.sleep(pause)
    session.run(f"INSERT INTO flink_{name}.events VALUES (2)")
    assert ordered(session.run(f"SELECT id FROM flink_{name}.events")) == [(1,), (2,)]


@pytest.mark.smoke
def test_credential(flink, secured_server):
    life_of_a_table(flink, secured_server, "smoke", 0)


def test_token_ends(flink, secured_server):
    life_of_a_table(flink, secured_server, "ends", 2 * LIFETIME_SECONDS)
