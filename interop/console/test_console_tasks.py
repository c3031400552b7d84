"""What people come to the console for, done with a browser over tables that PyIceberg has written.

Each test follows links and presses buttons by their words, and never opens an address.
"""

import pyarrow as pa
import pytest
from harness import browser, clients, secured
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.types import LongType, StringType

pytestmark = [pytest.mark.smoke, pytest.mark.moorage_only]

NAMES = pa.table({"id": [1, 2, 3], "name": ["Aurora", "Borealis", "Corvus"]})


@pytest.fixture(scope="module")
def lake():
    """A server with access on. key:bob owns its warehouse, and key:carla works in it."""
    with secured.Secured() as running:
        yield running


@pytest.fixture(scope="module")
def bob(lake):
    return lake.owner("bob")


@pytest.fixture(scope="module")
def carla(lake, bob):
    made = lake.engineer("carla")
    lake.command("grant", "read", "on", "warehouse", lake.warehouse, "to", made.principal)
    return made


@pytest.fixture(scope="module")
def harbour(lake, bob):
    """Makes a table in the namespace harbour, by bob if no key is given."""
    clients.pyiceberg_catalog(lake, token=bob.text).create_namespace("harbour")

    def make(name: str, key=bob):
        catalog = clients.pyiceberg_catalog(lake, token=key.text)
        table = catalog.create_table(f"harbour.{name}", NAMES.schema)
        table.append(NAMES)
        return table

    return make


@pytest.fixture(scope="module")
def bobs_browser(lake, bob):
    """A browser in which bob has signed in."""
    with browser.person(lake.uri) as made:
        made.fill("API key, or a token of your identity provider", bob.text)
        made.press("Sign in")
        yield made


@pytest.fixture
def person(bobs_browser):
    """bob, on the first page."""
    bobs_browser.turn_to("Overview")
    return bobs_browser


def go_to(person, table: str, tab: str) -> None:
    """Browses to a page of a table in harbour."""
    person.turn_to("Browse")
    person.follow("default")
    person.follow("harbour")
    person.follow(table)
    person.follow(tab)


def test_who_dropped_a_table_and_undrop(lake, carla, harbour, person):
    table = harbour("ports", carla)
    clients.pyiceberg_catalog(lake, token=carla.text).drop_table("harbour.ports")
    with pytest.raises(NoSuchTableError):
        table.refresh()

    person.turn_to("Changes")
    newest = person.rows("Changes")[0]
    assert newest[1].startswith("drop-table") and "ports" in newest[2] and newest[3] == "key:carla"
    person.follow("harbour.ports")  # of the drop: the page of a table that is gone
    assert "key:carla" in person.sees()
    person.follow("bring back …")
    assert "key:carla" in person.sees()
    person.press("Bring back ports")
    assert person.sees().startswith("Done.")
    person.follow("ports")
    assert person.heading() == "ports"
    assert table.refresh().scan().to_arrow().num_rows == 3


def test_why_a_commit_was_refused(lake, carla, harbour, person):
    winner = harbour("tugs")
    loser = clients.pyiceberg_catalog(lake, token=carla.text).load_table("harbour.tugs")
    with winner.update_schema() as update:
        update.add_column("length", LongType())
    with pytest.raises(CommitFailedException), loser.update_schema() as update:
        update.add_column("flag", StringType())

    go_to(person, "tugs", "History")
    [[_, who, client, why]] = person.rows("Refused commits")
    assert who == "key:carla" and "PyIceberg" in client
    assert "current schema changed" in why and "lost a race against a commit by key:bob" in why
    person.follow("See what that commit changed")
    assert "length" in person.panel("Columns")


def test_why_a_table_is_not_compacted(lake, bob, harbour, person):
    table = harbour("buoys")
    for _ in range(7):
        table.append(NAMES)

    go_to(person, "buoys", "Maintenance")
    compaction = dict((row[0], row) for row in person.rows("Kinds of maintenance"))["compaction"]
    assert "No policy turns it on" in compaction[2]
    assert "moorage maintain set table default.harbour.buoys compaction on" in compaction[2]

    lake.command("maintain", "set", "table", "default.harbour.buoys", "compaction", "on", key=bob)
    person.follow("Maintenance")
    compaction = dict((row[0], row) for row in person.rows("Kinds of maintenance"))["compaction"]
    assert "Turned on by table harbour.buoys" in compaction[2]
    person.follow("preview", row="compaction")
    assert "8 files" in person.panel("Preview of compaction")

    lake.command("maintain", "pause", "table", "default.harbour.buoys", "--reason", "quarter end", key=bob)
    person.follow("Maintenance")
    assert "quarter end by key:bob" in person.sees()
    compaction = dict((row[0], row) for row in person.rows("Kinds of maintenance"))["compaction"]
    assert compaction[1] == "Paused"
    person.follow("Resume …")
    person.press("Resume")
    assert "quarter end" not in person.sees()


def test_why_ann_may_not_read(lake, bob, harbour, person):
    table = harbour("wages")
    clients.pyiceberg_catalog(lake, token=bob.text).create_namespace("yard")
    ann = lake.key("ann")
    lake.command("grant", "describe", "on", "namespace", "default.yard", "to", ann.principal)
    lake.command("grant", "audit", "on", "server", "to", bob.principal)
    theirs = clients.pyiceberg_catalog(lake, token=ann.text)
    with pytest.raises(NoSuchTableError):
        theirs.load_table("harbour.wages")

    go_to(person, "wages", "Access")
    person.fill("May", "key:ann")
    person.fill("Privilege", "read")
    person.press("Explain")
    assert "key:ann may not read" in person.panel("Answer") and "missing: read" in person.panel("Answer")
    person.follow("Grant read …")
    person.press("Grant")
    assert theirs.load_table("harbour.wages").scan().to_arrow().num_rows == 3
    person.fill("May", "key:ann")
    person.fill("Privilege", "read")
    person.press("Explain")
    assert "key:ann may read" in person.panel("Answer")
    assert table.scan().to_arrow().num_rows == 3


def test_rows_with_deletion_vectors(lake, bob, harbour, person):
    """DuckDB deletes with deletion vectors, and PyIceberg applies them. The page has the same rows."""
    harbour("whatever")
    with clients.duckdb_with_extensions() as duck:
        secured.attach_duckdb(duck, lake, secured.duckdb_secrets(lake, bob)["token"])
        duck.execute("CREATE TABLE ice.harbour.cargo (id BIGINT, name VARCHAR) WITH ('format-version' = '3')")
        duck.execute("INSERT INTO ice.harbour.cargo SELECT i, 'crate ' || i FROM range(150) t(i)")
        duck.execute("DELETE FROM ice.harbour.cargo WHERE id % 3 = 1")
    table = clients.pyiceberg_catalog(lake, token=bob.text).load_table("harbour.cargo")
    assert [file["file_format"] for file in table.inspect.delete_files().to_pylist()] == ["PUFFIN"]

    go_to(person, "cargo", "Rows")
    person.fill("Rows", "200")
    person.press("Show")
    expected = sorted([str(row["id"]), row["name"]] for row in table.scan().to_arrow().to_pylist())
    assert len(expected) == 100
    assert sorted(person.rows("Rows")) == expected
    assert "100 rows, which is all" in person.sees()


def test_roll_back(lake, carla, harbour, person):
    table = harbour("crews")
    theirs = clients.pyiceberg_catalog(lake, token=carla.text).load_table("harbour.crews")
    theirs.delete("id > 1")
    assert table.refresh().scan().to_arrow().num_rows == 1

    go_to(person, "crews", "History")
    assert "key:carla" in person.rows("Versions")[0][3]
    person.follow("roll back …")  # of the version before
    assert "1 → 3" in person.sees()
    person.press("Roll back crews")
    newest, undone = person.rows("Versions")[:2]
    assert "rollback" in newest[4] and "rolled back by key:bob" in undone[4]
    assert table.refresh().scan().to_arrow().equals(NAMES)
