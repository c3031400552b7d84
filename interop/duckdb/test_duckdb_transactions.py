"""Transactions over several tables. DuckDB sends what a transaction changes as one request when it commits."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import clients
from harness.compare import ordered, rows
from harness.proxy import unavailable

CONFLICT = "(?i)conflict|has changed|409"

WRITERS = 2
TRANSFERS_PER_WRITER = 5


@pytest.fixture
def query(watched):
    """Runs one statement in a DuckDB that is attached through the proxy, and returns its rows, ordered."""
    with clients.duckdb_connection(watched) as connection:
        yield lambda statement: ordered(connection.execute(statement).fetchall())


@pytest.fixture
def ice(query, namespace):
    """The namespace's name in DuckDB; it has two tables, with id 1 in both."""
    for name in ("first", "second"):
        query(f"CREATE TABLE ice.{namespace}.{name} (id INTEGER)")
        query(f"INSERT INTO ice.{namespace}.{name} VALUES (1)")
    return f"ice.{namespace}"


@pytest.fixture
def commits(watched, ice):
    """The commits of transactions that went through the proxy since the two tables were made."""
    before = len(watched.posts("/transactions/commit"))
    return lambda: watched.posts("/transactions/commit")[before:]


@pytest.fixture
def found(iceberg, namespace):
    """The rows of a table of the namespace, as another engine reads them; None if there is no such table."""

    def look(name: str) -> list[int] | None:
        if not iceberg.table_exists(f"{namespace}.{name}"):
            return None
        return [row[0] for row in rows(iceberg.load_table(f"{namespace}.{name}"))]

    return look


@pytest.mark.smoke
def test_changes_of_several_tables(query, commits, ice, found):
    query("BEGIN")
    query(f"INSERT INTO {ice}.first VALUES (2)")
    query(f"INSERT INTO {ice}.second VALUES (2)")
    query(f"DELETE FROM {ice}.second WHERE id = 1")
    query(f"ALTER TABLE {ice}.first ADD COLUMN note VARCHAR")
    assert query(f"SELECT * FROM {ice}.second") == [(2,)]
    assert (found("first"), found("second")) == ([1], [1])
    query("COMMIT")
    assert (found("first"), found("second")) == ([1, 2], [2])
    assert query(f"SELECT * FROM {ice}.first") == [(1, None), (2, None)]
    [request] = commits()
    assert sorted(set(request.names())) == ["first", "second"]
    assert request.status == 204


def test_change_of_one_table(query, commits, ice, found):
    """It is sent the same way."""
    query(f"UPDATE {ice}.first SET id = 5")
    assert found("first") == [5]
    assert [request.names() for request in commits()] == [["first"]]


def test_create_among_changes(query, commits, ice, found):
    """With a table that it creates, DuckDB does not send a transaction as one: each table commits on its own."""
    query("BEGIN")
    query(f"INSERT INTO {ice}.first VALUES (2)")
    query(f"CREATE TABLE {ice}.third AS SELECT 2 AS id")
    query(f"INSERT INTO {ice}.second VALUES (2)")
    assert found("third") is None
    query("COMMIT")
    assert (found("first"), found("second"), found("third")) == ([1, 2], [1, 2], [2])
    assert commits() == []


def test_create_among_changes_and_a_conflict(catalog_server, query, ice, found):
    """So one that fails leaves what was committed before. DuckDB chooses the order: a conflict on one of the two comes later."""
    parts = []
    for number, meanwhile in enumerate(["first", "second"], start=2):
        query("BEGIN")
        for name in ("first", "second"):
            query(f"INSERT INTO {ice}.{name} VALUES ({number})")
        query(f"CREATE TABLE {ice}.third_{number} AS SELECT {number} AS id")
        with clients.duckdb_connection(catalog_server) as other:
            other.execute(f"INSERT INTO {ice}.{meanwhile} VALUES (0)")
        with pytest.raises(Exception, match=CONFLICT):
            query("COMMIT")
        assert number not in found(meanwhile)
        parts += [name for name in ("first", "second", f"third_{number}") if number in (found(name) or [])]
    assert parts != []


def test_rollback(query, commits, ice, found):
    query("BEGIN")
    query(f"INSERT INTO {ice}.first VALUES (2)")
    query(f"CREATE TABLE {ice}.third (id INTEGER)")
    query(f"UPDATE {ice}.second SET id = 5")
    query("ROLLBACK")
    assert (found("first"), found("second"), found("third")) == ([1], [1], None)
    assert commits() == []
    assert query(f"SELECT * FROM {ice}.first") == [(1,)]


@pytest.mark.parametrize("meanwhile", ["first", "second"])
def test_conflict_changes_nothing(catalog_server, query, commits, ice, found, meanwhile):
    query("BEGIN")
    for name in ("first", "second"):
        query(f"INSERT INTO {ice}.{name} VALUES (2)")
    with clients.duckdb_connection(catalog_server) as other:
        other.execute(f"INSERT INTO {ice}.{meanwhile} VALUES (0)")
    with pytest.raises(Exception, match=CONFLICT):
        query("COMMIT")
    assert commits()[-1].status == 409
    assert {name: found(name) for name in ("first", "second")} == {"first": [1], "second": [1]} | {meanwhile: [0, 1]}


def test_lost_answer(query, watched, commits, ice, found):
    """DuckDB sends a request again after 503, with no key that would tell; the server knows the snapshots."""
    watched.lose(lambda exchange: exchange.path.endswith("/transactions/commit"), unavailable)
    query("BEGIN")
    for name in ("first", "second"):
        query(f"INSERT INTO {ice}.{name} VALUES (2)")
    query("COMMIT")
    first, again = commits()
    assert first.body == again.body
    assert (first.status, again.status) == (204, 204)
    assert (found("first"), found("second")) == ([1, 2], [1, 2])


def test_created_twice(catalog_server, query, ice, found):
    """A table that another made meanwhile: the transaction that wants to make it as well changes nothing."""
    query("BEGIN")
    query(f"CREATE TABLE {ice}.third (id INTEGER)")
    query(f"INSERT INTO {ice}.first VALUES (2)")
    with clients.duckdb_connection(catalog_server) as other:
        other.execute(f"CREATE TABLE {ice}.third AS SELECT 9 AS id")
    with pytest.raises(Exception, match=CONFLICT + "|already exists"):
        query("COMMIT")
    assert (found("first"), found("third")) == ([1], [9])


def test_dropped_meanwhile(query, iceberg, namespace, ice, found):
    query("BEGIN")
    for name in ("first", "second"):
        query(f"INSERT INTO {ice}.{name} VALUES (2)")
    iceberg.drop_table(f"{namespace}.second")
    with pytest.raises(Exception, match="(?i)not exist|404|conflict|409"):
        query("COMMIT")
    assert (found("first"), found("second")) == ([1], None)


def test_readers_see_all_or_nothing(catalog_server, query, ice, found, namespace):
    """Two writers put each number into both tables; who finds it in one of them finds it in the other from then on."""

    def write(writer: int) -> None:
        with clients.duckdb_connection(catalog_server) as connection:
            for number in range(TRANSFERS_PER_WRITER):
                while not transfer(connection, 100 * writer + number):
                    pass

    def transfer(connection, number: int) -> bool:
        """Whether it was committed: DuckDB leaves another try after a conflict to the caller."""
        connection.execute("BEGIN")
        for name in ("second", "first"):
            connection.execute(f"INSERT INTO {ice}.{name} VALUES ({number})")
        try:
            connection.execute("COMMIT")
        except Exception as fault:
            assert re.search(CONFLICT, str(fault)), fault
            return False
        return True

    def read(done) -> int:
        reader, looks = clients.pyiceberg_catalog(catalog_server), 0
        while not all(writer.done() for writer in done) or looks == 0:
            for one, other in (("first", "second"), ("second", "first")):
                seen = set(rows(reader.load_table(f"{namespace}.{one}")))
                assert seen <= set(rows(reader.load_table(f"{namespace}.{other}"))), f"{one} is ahead of {other}"
                looks += 1
        return looks

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writers = [pool.submit(write, writer) for writer in range(1, WRITERS + 1)]
        reader = pool.submit(read, writers)
        for outcome in [*writers, reader]:
            outcome.result()
    numbers = [100 * writer + number for writer in range(1, WRITERS + 1) for number in range(TRANSFERS_PER_WRITER)]
    assert found("first") == found("second") == [1, *numbers]
