"""Answers that are lost on their way: the Java client sends the request again, with the same Idempotency-Key."""

from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from harness import clients
from harness.proxy import bad_gateway, cut, unavailable

pytestmark = pytest.mark.moorage_only


@pytest.fixture
def wire(spark, watched, numbers):
    """The name of a Spark catalog whose requests go through the proxy: with three nodes, each to another one."""
    name = f"wire{next(numbers)}"
    clients.add_spark_catalog(spark, name, watched)
    return name


@pytest.fixture
def table(sql, namespace):
    """A table with one row."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (id INT) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1)")
    return name


@pytest.fixture
def answer_lost(watched):
    """A block in which the first answer to such a request is lost. It must come twice, and be answered alike."""

    @contextmanager
    def lost(method: str, end: str, instead=unavailable):
        def matches(exchange) -> bool:
            return exchange.method == method and urlsplit(exchange.path).path.endswith(end)

        before = len(watched.seen)
        watched.lose(matches, instead)
        yield
        first, again = [exchange for exchange in watched.seen[before:] if matches(exchange)]
        assert first.headers["idempotency-key"] == again.headers["idempotency-key"]
        assert first.body == again.body
        assert first.status == again.status < 300

    return lost


def test_namespaces(sql, wire, answer_lost, namespace):
    inner = f"{namespace}.inner"
    with answer_lost("POST", "/namespaces"):
        sql(f"CREATE NAMESPACE {wire}.{inner}")
    with answer_lost("POST", "/properties"):
        sql(f"ALTER NAMESPACE {wire}.{inner} SET PROPERTIES ('team' = 'a')")
    assert "(team,a)" in dict(sql(f"DESCRIBE NAMESPACE EXTENDED {inner}"))["Properties"]
    with answer_lost("DELETE", "inner"):
        sql(f"DROP NAMESPACE {wire}.{inner}")
    assert sql(f"SHOW NAMESPACES IN {namespace}") == []


def test_life_of_a_table(sql, iceberg, wire, answer_lost, namespace):
    with answer_lost("POST", "/tables"):
        sql(f"CREATE TABLE {wire}.{namespace}.events (id INT) USING iceberg")
    with answer_lost("POST", "/tables/events"):
        sql(f"INSERT INTO {wire}.{namespace}.events VALUES (1)")
    with answer_lost("POST", "/tables/events"):
        sql(f"ALTER TABLE {wire}.{namespace}.events ADD COLUMN note STRING")
    with answer_lost("POST", "/tables/events"):
        sql(f"UPDATE {wire}.{namespace}.events SET note = 'one'")
    assert sql(f"SELECT * FROM {namespace}.events") == [(1, "one")]
    assert len(iceberg.load_table(f"{namespace}.events").snapshots()) == 2
    with answer_lost("POST", "/tables/rename"):
        sql(f"ALTER TABLE {wire}.{namespace}.events RENAME TO {namespace}.renamed")
    location = iceberg.load_table(f"{namespace}.renamed").metadata_location
    with answer_lost("DELETE", "/tables/renamed"):
        sql(f"DROP TABLE {wire}.{namespace}.renamed")
    with answer_lost("POST", "/register"):
        sql(f"CALL {wire}.system.register_table(table => '{namespace}.again', metadata_file => '{location}')")
    assert sql(f"SHOW TABLES IN {namespace}") == [(namespace, "again", False)]
    assert sql(f"SELECT * FROM {namespace}.again") == [(1, "one")]
    with answer_lost("DELETE", "/tables/again"):
        sql(f"DROP TABLE {wire}.{namespace}.again PURGE")
    assert sql(f"SHOW TABLES IN {namespace}") == []


def test_life_of_a_view(sql, iceberg, wire, answer_lost, table, namespace):
    with answer_lost("POST", "/views"):
        sql(f"CREATE VIEW {wire}.{namespace}.seen AS SELECT * FROM {table}")
    with answer_lost("POST", "/views/seen"):
        sql(f"CREATE OR REPLACE VIEW {wire}.{namespace}.seen AS SELECT id + 1 AS next FROM {table}")
    with answer_lost("POST", "/views/seen"):
        sql(f"ALTER VIEW {wire}.{namespace}.seen SET TBLPROPERTIES ('team' = 'a')")
    assert sql(f"SELECT * FROM {namespace}.seen") == [(2,)]
    view = iceberg.load_view(f"{namespace}.seen")
    assert ([version.version_id for version in view.versions], view.properties["team"]) == ([1, 2], "a")
    with answer_lost("POST", "/views/rename"):
        sql(f"ALTER VIEW {wire}.{namespace}.seen RENAME TO {wire}.{namespace}.renamed")
    assert iceberg.load_view(f"{namespace}.renamed").metadata == view.metadata
    with answer_lost("DELETE", "/views/renamed"):
        sql(f"DROP VIEW {wire}.{namespace}.renamed")
    assert sql(f"SHOW VIEWS IN {namespace}") == []


def test_register_view(sql, java, answer_lost, table, namespace):
    view = java.create_view(f"{namespace}.seen", like=table, spark=f"SELECT * FROM {table}")
    location = view.operations().current().metadataFileLocation()
    sql(f"DROP VIEW {namespace}.seen")
    with answer_lost("POST", "/register-view"):
        java.catalog.registerView(java.identifier(f"{namespace}.again"), location)
    assert sql(f"SELECT * FROM {namespace}.again") == [(1,)]
    assert sql(f"SHOW VIEWS IN {namespace}") == [(namespace, "again", False)]


@pytest.mark.parametrize("instead", [unavailable, bad_gateway, cut])
def test_create_view(sql, iceberg, java, answer_lost, table, namespace, instead):
    """The specification names no key for it; Java sends one."""
    with answer_lost("POST", "/views", instead):
        made = java.create_view(f"{namespace}.seen", like=table, spark=f"SELECT * FROM {table}", trino="SELECT 1 AS id")
    assert str(made.uuid()) == iceberg.load_view(f"{namespace}.seen").metadata.view_uuid
    assert sql(f"SELECT * FROM {namespace}.seen") == [(1,)]


def test_create_as_select(sql, wire, answer_lost, namespace):
    """The commit of a staged create."""
    with answer_lost("POST", "/tables/events"):
        sql(f"CREATE TABLE {wire}.{namespace}.events USING iceberg AS SELECT 1 AS id")
    assert sql(f"SELECT * FROM {namespace}.events") == [(1,)]


def test_several_tables(sql, java, answer_lost, table, namespace):
    sql(f"CREATE TABLE {namespace}.other (id INT) USING iceberg")
    with answer_lost("POST", "/transactions/commit"):
        java.commit(java.append(f"{namespace}.other", *java.files(table)), java.set(table, "copied", "yes"))
    assert sql(f"SELECT * FROM {namespace}.other") == [(1,)]
    assert dict(sql(f"SHOW TBLPROPERTIES {table}"))["copied"] == "yes"


def test_refusal_is_replayed(sql, iceberg, java, watched, table, namespace):
    """What was refused stays refused, though the second time nothing would stand in its way."""
    sql(f"CREATE TABLE {namespace}.other (id INT) USING iceberg")
    start = iceberg.load_table(table).current_snapshot().snapshot_id
    changes = [java.append(name, *java.files(table)) for name in (table, f"{namespace}.other")]
    sql(f"INSERT INTO {table} VALUES (2)")

    def clear_the_way(handler) -> None:
        iceberg.load_table(table).manage_snapshots().rollback_to_snapshot(start).commit()
        unavailable(handler)

    watched.lose(lambda exchange: exchange.status == 409, clear_the_way)
    with pytest.raises(Exception, match="CommitFailedException"):
        java.commit(*changes)
    first, again = watched.posts("/transactions/commit")
    assert first.headers["idempotency-key"] == again.headers["idempotency-key"]
    assert (first.status, again.status) == (409, 409)
    assert sql(f"SELECT * FROM {table}") == [(1,)]
    assert sql(f"SELECT * FROM {namespace}.other") == []


@pytest.mark.parametrize("instead", [bad_gateway, cut])
def test_other_losses(sql, wire, answer_lost, table, instead):
    """With a key Java sends a POST again as well when the outcome is open: after 502, and without any answer."""
    with answer_lost("POST", "/tables/events", instead):
        sql(f"INSERT INTO {wire}.{table} VALUES (2)")
    assert sql(f"SELECT * FROM {table}") == [(1,), (2,)]
    assert sql(f"SELECT count(*) FROM {table}.snapshots") == [(2,)]
