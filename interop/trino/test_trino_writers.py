"""Concurrent writers with Trino's own retries, and answers that are lost."""

import pytest
from harness import clients
from harness.compare import rows
from harness.history import parents
from harness.proxy import bad_gateway, cut, unavailable
from harness.trino import metadata, told
from harness.writers import WRITERS, append, change_own_rows, each_once, in_parallel, insert, one_wins
from trino.transaction import IsolationLevel

INSERTS_PER_WRITER = 4


@pytest.fixture
def table(sql, namespace):
    """A table partitioned by writer. More tries than the default four: the writers meet at every commit."""
    name = f"{namespace}.events"
    sql(f"CREATE TABLE {name} (writer INTEGER, number INTEGER) WITH (partitioning = ARRAY['writer'], max_commit_retry = 20)")
    return name


def test_concurrent_inserts_all_arrive_once(sql, catalogs, iceberg, table):
    in_parallel(lambda writer: insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER))
    assert sql(f"SELECT * FROM {table}") == each_once(INSERTS_PER_WRITER)
    # One line of history, also as Trino sees it, from the empty snapshot with which Trino makes a table.
    snapshots = sql(f"SELECT snapshot_id, parent_id FROM {metadata(table, 'snapshots')}")
    assert len(snapshots) == WRITERS * INSERTS_PER_WRITER + 1
    assert snapshots == parents(iceberg.load_table(table))


def test_concurrent_inserts_without_retries(sql, catalogs, table):
    """What Trino acknowledged is there, once, and nothing else: a conflict means that nothing happened."""
    sql(f"ALTER TABLE {table} SET PROPERTIES max_commit_retry = 0")
    acknowledged, faults = [], []

    def attempt(writer: int) -> None:
        for number in range(INSERTS_PER_WRITER):
            try:
                sql(f"INSERT INTO {catalogs[writer]}.{table} VALUES ({writer}, {number})")
                acknowledged.append((writer, number))
            except Exception as fault:
                faults.append(str(fault))

    in_parallel(attempt)
    assert acknowledged
    assert all("ICEBERG_COMMIT_ERROR" in fault for fault in faults), faults
    assert len(acknowledged) + len(faults) == WRITERS * INSERTS_PER_WRITER
    assert sql(f"SELECT * FROM {table}") == sorted(acknowledged)


def test_concurrent_row_changes_of_different_partitions(sql, catalogs, table):
    for writer in range(WRITERS):
        sql(f"INSERT INTO {table} VALUES ({writer}, 0), ({writer}, 10), ({writer}, 20)")
    in_parallel(lambda writer: change_own_rows(sql, f"{catalogs[writer]}.{table}", writer))
    assert sql(f"SELECT * FROM {table}") == [(w, n) for w in range(WRITERS) for n in (1, 12, 30)]


def test_concurrent_deletes_of_one_row(sql, catalogs, table):
    """Of those that change a row at once one does; the others find it gone, or are told of the conflict."""
    sql(f"INSERT INTO {table} VALUES (0, 1), (0, 2)")
    deleted = []

    def delete(writer: int) -> None:
        try:
            [(count,)] = sql(f"DELETE FROM {catalogs[writer]}.{table} WHERE number = 1")
            deleted.append(count)
        except Exception as fault:
            assert "ICEBERG_COMMIT_ERROR" in str(fault), fault

    in_parallel(delete)
    assert sorted(deleted)[-1:] == [1]
    assert sum(deleted) == 1
    assert sql(f"SELECT * FROM {table}") == [(0, 2)]


def test_concurrent_creates_one_wins(sql, catalogs, namespace):
    """Two tries to make a view and two to make a table of one name: exactly one does, the others are told that it exists."""

    def create(writer: int) -> None:
        kind = "TABLE" if writer % 2 else "VIEW"
        sql(f"CREATE {kind} {catalogs[writer]}.{namespace}.once AS SELECT {writer} AS writer")

    winner = one_wins(create, lambda fault: "already exists" in told(fault).lower())
    assert sql(f"SELECT writer FROM {namespace}.once") == [(winner,)]
    assert sql(f"SHOW TABLES FROM {namespace}") == [("once",)]


def test_writers_of_two_engines(sql, catalogs, iceberg, catalog_server, table):
    """Trino and PyIceberg append to one table at once, each with its own retries."""

    def write(writer: int) -> None:
        if writer % 2:
            insert(sql, f"{catalogs[writer]}.{table}", writer, INSERTS_PER_WRITER)
        else:
            append(catalog_server, table, writer, INSERTS_PER_WRITER)

    in_parallel(write)
    assert sql(f"SELECT * FROM {table}") == rows(iceberg.load_table(table)) == each_once(INSERTS_PER_WRITER)


def test_no_transactions(engine, sql, table):
    """Trino has no commit of several statements over Iceberg."""
    with engine.connect(isolation_level=IsolationLevel.SERIALIZABLE) as connection:
        with pytest.raises(Exception, match="only supports writes using autocommit"):
            connection.cursor().execute(f"INSERT INTO {table} VALUES (1, 1)").fetchall()
        connection.rollback()
    assert sql(f"SELECT * FROM {table}") == []


@pytest.fixture
def proxied(engine, watched):
    """A catalog that reaches the server through the proxy."""
    return engine.add(clients.trino_catalog(watched))


@pytest.fixture
def lose(watched):
    """Loses the answer to the next change, and writes instead what is asked for."""

    def lose(instead) -> None:
        watched.lose(lambda exchange: exchange.method in ("POST", "DELETE") and not exchange.path.endswith("/metrics"), instead)

    return lose


@pytest.mark.moorage_only
@pytest.mark.parametrize("instead", [unavailable, bad_gateway])
def test_lost_answers_to_new_rows(sql, iceberg, watched, proxied, lose, namespace, instead):
    """Trino sends the commit again, without a key. The server knows the snapshots, and answers that it happened."""
    for statement, expected in [
        ("CREATE TABLE {table} AS SELECT 1 AS id", [(1,)]),
        ("INSERT INTO {table} VALUES 2", [(1,), (2,)]),
        ("DELETE FROM {table} WHERE id = 1", [(2,)]),
        ("CREATE OR REPLACE TABLE {table} WITH (partitioning = ARRAY['place']) AS SELECT 3 AS number, 'oslo' AS place", [(3, "oslo")]),
        ("MERGE INTO {table} USING (VALUES 3, 4) AS s (n) ON number = n WHEN MATCHED THEN UPDATE SET place = 'rome' "
         "WHEN NOT MATCHED THEN INSERT VALUES (n, 'bern')", [(3, "rome"), (4, "bern")]),
        ("TRUNCATE TABLE {table}", []),
    ]:  # fmt: skip
        lose(instead)
        before = len(watched.posts("/events"))
        sql(statement.format(table=f"{proxied}.{namespace}.events"))
        assert len(watched.posts("/events")) >= before + (1 if "TABLE {table} AS" in statement else 2)
        assert sql(f"SELECT * FROM {namespace}.events") == rows(iceberg.load_table(f"{namespace}.events")) == expected
    assert not any("idempotency-key" in exchange.headers for exchange in watched.seen)


@pytest.mark.moorage_only
def test_lost_answers_to_other_changes(sql, iceberg, proxied, lose, namespace):
    """They are told how it looks the second time; all of it happened once."""
    schema, name = f"{proxied}.{namespace}", f'"{namespace}.inner"'
    for statement, error in [
        (f"CREATE SCHEMA {proxied}.{name}", "Namespace already exists"),
        (f"CREATE TABLE {schema}.events (id INTEGER)", None),
        (f"ALTER TABLE {schema}.events ADD COLUMN note VARCHAR", "last assigned field id changed"),
        (f"COMMENT ON TABLE {schema}.events IS 'about it'", None),
        (f"CREATE VIEW {schema}.seen AS SELECT id FROM {schema}.events", "View already exists"),
        (f"CREATE OR REPLACE VIEW {schema}.seen AS SELECT note FROM {schema}.events", None),
        (f"ALTER TABLE {schema}.events RENAME TO {proxied}.{name}.events", "Table does not exist"),
        (f"ALTER VIEW {schema}.seen RENAME TO {proxied}.{name}.seen", "View does not exist"),
    ]:
        lose(unavailable)
        _run(sql, statement, error)
    loaded = iceberg.load_table((namespace, "inner", "events"))
    assert loaded.schema().column_names == ["id", "note"]
    assert loaded.properties["comment"] == "about it"
    assert len(iceberg.load_view((namespace, "inner", "seen")).versions) == 2
    for statement, error in [
        (f"DROP VIEW {proxied}.{name}.seen", None),
        (f"DROP TABLE {proxied}.{name}.events", "Failed to drop table"),
        (f"DROP SCHEMA {proxied}.{name}", None),
    ]:
        lose(unavailable)
        _run(sql, statement, error)
    assert iceberg.list_namespaces(namespace) == []


def _run(sql, statement: str, error: str | None) -> None:
    """Runs a statement, which must succeed, or fail with this error if there is one."""
    if error is None:
        sql(statement)
        return
    with pytest.raises(Exception, match=error):
        sql(statement)


def test_cut_connection(sql, watched, proxied, lose, table):
    """Trino gives up without another try; the rows are there once."""
    lose(cut)
    with pytest.raises(Exception, match="failed to respond"):
        sql(f"INSERT INTO {proxied}.{table} VALUES (1, 1)")
    assert len(watched.posts("/events")) == 1
    assert sql(f"SELECT * FROM {table}") == [(1, 1)]
