"""Views: PyIceberg creates, registers, lists, loads and drops them; it has no calls that change or rename one."""

import time

import pytest
from harness import clients
from harness.names import NAMES
from harness.proxy import bad_gateway, cut, unavailable
from harness.views import version
from harness.writers import one_wins
from pyiceberg.exceptions import (
    BadRequestError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from requests.exceptions import ConnectionError

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the id"),
    NestedField(2, "place", StringType(), required=False),
)


ONE = version({"spark": "SELECT 1"})


@pytest.mark.smoke
def test_create_and_load(iceberg, namespace):
    before = int(time.time() * 1000)
    made = iceberg.create_view(
        f"{namespace}.seen",
        SCHEMA,
        version(
            {"spark": "SELECT * FROM `events` WHERE place = 'ü'", "trino": "SELECT * FROM \"events\" WHERE place = 'ü'"},
            summary={"engine-name": "pyiceberg", "note": "kept"}, default_catalog="ice", default_namespace=(namespace, "inner"),
        ),
        properties={"team": "a"},
    )  # fmt: skip
    assert made.name() == (namespace, "seen")
    assert made.schema() == SCHEMA
    assert made.properties == {"team": "a"}
    current = made.current_version()
    assert (current.version_id, current.schema_id) == (1, 0)
    assert {key: current.summary.get(key) for key in ("engine-name", "note")} == {"engine-name": "pyiceberg", "note": "kept"}
    assert (current.default_catalog, current.default_namespace) == ("ice", (namespace, "inner"))
    assert [root.root.dialect for root in current.representations] == ["spark", "trino"]
    assert made.sql_for("TRINO").sql == "SELECT * FROM \"events\" WHERE place = 'ü'"
    assert made.sql_for("duckdb") is None
    assert [entry.version_id for entry in made.history()] == [1]
    assert before <= current.timestamp_ms <= int(time.time() * 1000)
    assert made.metadata.format_version == 1

    assert iceberg.load_view(f"{namespace}.seen") == made
    assert iceberg.view_exists(f"{namespace}.seen")
    other = iceberg.create_view(f"{namespace}.other", SCHEMA, ONE)
    assert other.uuid() != made.uuid()
    assert other.location() != made.location()


def test_location(iceberg, catalog_server, namespace):
    """A view at a location of its own, below the warehouse's."""
    beside = iceberg.create_view(f"{namespace}.first", SCHEMA, ONE).location() + "_elsewhere"
    made = iceberg.create_view(f"{namespace}.second", SCHEMA, ONE, location=beside + "/")
    assert catalog_server.files.path(made.location()) == catalog_server.files.path(beside)
    [file] = catalog_server.files.list(beside)
    assert file.startswith(f"{catalog_server.files.path(beside)}/metadata/00000-")


def test_listed_and_clash(iceberg, namespace):
    iceberg.create_namespace((namespace, "inner"))
    for name in ("b", "a", "c"):
        iceberg.create_view(f"{namespace}.{name}", SCHEMA, ONE)
    iceberg.create_view((namespace, "inner", "d"), SCHEMA, ONE)
    iceberg.create_table(f"{namespace}.events", SCHEMA)
    assert sorted(iceberg.list_views(namespace)) == [(namespace, name) for name in "abc"]
    assert iceberg.list_views((namespace, "inner")) == [(namespace, "inner", "d")]
    assert iceberg.list_tables(namespace) == [(namespace, "events")]
    assert not iceberg.view_exists(f"{namespace}.events")
    assert not iceberg.table_exists(f"{namespace}.a")
    for name in ("a", "events"):
        with pytest.raises(ViewAlreadyExistsError):
            iceberg.create_view(f"{namespace}.{name}", SCHEMA, ONE)
    with pytest.raises(TableAlreadyExistsError):
        iceberg.create_table(f"{namespace}.a", SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        iceberg.rename_table(f"{namespace}.events", f"{namespace}.a")
    with pytest.raises(NoSuchViewError):
        iceberg.load_view(f"{namespace}.events")
    with pytest.raises(NoSuchTableError):
        iceberg.load_table(f"{namespace}.a")
    with pytest.raises(NoSuchTableError):
        iceberg.drop_table(f"{namespace}.a")
    with pytest.raises(NoSuchNamespaceError):
        iceberg.list_views("absent_namespace")
    with pytest.raises(NoSuchViewError):
        iceberg.load_view("absent_namespace.a")
    assert not iceberg.view_exists("absent_namespace.a")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_pages(catalog_server, iceberg, namespace, size):
    names = [(namespace, name) for name in "abc"]
    for name in names:
        iceberg.create_view(name, SCHEMA, ONE)

    paged = clients.pyiceberg_catalog(catalog_server, **{"rest-page-size": str(size)})
    assert sorted(paged.list_views(namespace)) == names


@pytest.mark.parametrize("name", NAMES)
def test_names_of_namespaces(iceberg, namespace, name):
    inner = (namespace, f"of {name}")
    iceberg.create_namespace(inner)
    made = iceberg.create_view((*inner, "seen.it"), SCHEMA, ONE)
    assert iceberg.list_views(inner) == [(*inner, "seen.it")]
    assert iceberg.view_exists((*inner, "seen.it"))
    assert iceberg.load_view((*inner, "seen.it")) == made
    iceberg.drop_view((*inner, "seen.it"))
    assert iceberg.list_views(inner) == []
    iceberg.drop_namespace(inner)


def test_name_in_escapes(iceberg, namespace):
    """PyIceberg sends the name of a view to be made as a part of a path would be written, so that becomes the name."""
    iceberg.create_view((namespace, "with space"), SCHEMA, ONE)
    assert iceberg.list_views(namespace) == [(namespace, "with%20space")]
    assert not iceberg.view_exists((namespace, "with space"))
    iceberg.drop_view((namespace, "with%20space"))


def test_drop(iceberg, catalog_server, namespace):
    view = iceberg.create_view(f"{namespace}.seen", SCHEMA, ONE)
    files = catalog_server.files.list(view.location())
    with pytest.raises(NamespaceNotEmptyError):
        iceberg.drop_namespace(namespace)
    iceberg.drop_view(f"{namespace}.seen")
    assert not iceberg.view_exists(f"{namespace}.seen")
    assert iceberg.list_views(namespace) == []
    with pytest.raises(NoSuchViewError):
        iceberg.load_view(f"{namespace}.seen")
    with pytest.raises(NoSuchViewError):
        iceberg.drop_view(f"{namespace}.seen")
    # The name is free.
    iceberg.create_table(f"{namespace}.seen", SCHEMA)
    with pytest.raises(NoSuchViewError):
        iceberg.drop_view(f"{namespace}.seen")
    iceberg.drop_table(f"{namespace}.seen")
    again = iceberg.create_view(f"{namespace}.seen", SCHEMA, version({"spark": "SELECT 2"}))
    assert again.uuid() != view.uuid()
    if catalog_server.name != "reference":
        assert len(files) == 1
        assert set(files) <= set(catalog_server.files.list(view.location()))


@pytest.mark.smoke
@pytest.mark.moorage_only
def test_register(iceberg, catalog_server, namespace):
    """A metadata file of a view, found in its folder: PyIceberg does not tell where it is."""
    view = iceberg.create_view(f"{namespace}.seen", SCHEMA, ONE, properties={"team": "a"})
    [file] = catalog_server.files.list(view.location())
    location = view.location() + file.removeprefix(catalog_server.files.path(view.location()))
    assert location.endswith(".gz.metadata.json")
    iceberg.create_table(f"{namespace}.events", SCHEMA)
    with pytest.raises(ViewAlreadyExistsError):
        iceberg.register_view(f"{namespace}.seen", location)
    with pytest.raises(TableAlreadyExistsError):
        iceberg.register_view(f"{namespace}.events", location)
    with pytest.raises(ViewAlreadyExistsError):  # one view has one name
        iceberg.register_view(f"{namespace}.twice", location)
    iceberg.drop_view(f"{namespace}.seen")
    registered = iceberg.register_view(f"{namespace}.again", location)
    assert registered.metadata == view.metadata
    assert iceberg.load_view(f"{namespace}.again") == registered
    assert catalog_server.files.list(view.location()) == [file]
    with pytest.raises(RESTError, match="Namespace does not exist"):  # it has no error of its own for that
        iceberg.register_view("absent_namespace.again", location)


def test_refused(iceberg, namespace):
    """What is no view, in the words of the server."""
    for fault, wrong in (
        ("dialect", {"made": version({"spark": "SELECT 1", "Spark": "SELECT 1"})}),
        ("(?i)location", {"made": ONE, "location": "relative/place"}),
        ("num-entries", {"made": ONE, "properties": {"version.history.num-entries": "0"}}),
    ):
        made = wrong.pop("made")
        with pytest.raises(BadRequestError, match=fault):
            iceberg.create_view(f"{namespace}.seen", SCHEMA, made, **wrong)
    with pytest.raises(RESTError, match="Namespace does not exist"):  # it has no error of its own for that
        iceberg.create_view("absent_namespace.seen", SCHEMA, ONE)
    assert iceberg.list_views(namespace) == []


@pytest.mark.moorage_only
@pytest.mark.parametrize(("instead", "fault"), [(unavailable, ServiceUnavailableError), (bad_gateway, ServerError), (cut, ConnectionError)])
def test_lost_answer(watched, iceberg, namespace, instead, fault):
    """PyIceberg gives up without another try; the view is there."""
    client = clients.pyiceberg_catalog(watched)
    watched.lose(lambda exchange: exchange.method == "POST", instead)
    with pytest.raises(fault):
        client.create_view(f"{namespace}.seen", SCHEMA, ONE)
    assert len(watched.posts("/views")) == 1
    assert iceberg.load_view(f"{namespace}.seen").sql_for("spark").sql == "SELECT 1"
    with pytest.raises(ViewAlreadyExistsError):
        client.create_view(f"{namespace}.seen", SCHEMA, ONE)


def test_concurrent_creates_one_wins(iceberg, catalog_server, namespace):
    """One makes the view; whoever comes late is told that it exists, also with a table of that name."""

    def create(writer: int) -> None:
        client = clients.pyiceberg_catalog(catalog_server)
        if writer % 2:
            client.create_table(f"{namespace}.once", SCHEMA)
        else:
            client.create_view(f"{namespace}.once", SCHEMA, version({"spark": f"SELECT {writer}"}))

    winner = one_wins(create, lambda fault: isinstance(fault, (TableAlreadyExistsError, ViewAlreadyExistsError)))
    assert len(iceberg.list_views(namespace) + iceberg.list_tables(namespace)) == 1
    if winner % 2 == 0:
        assert iceberg.load_view(f"{namespace}.once").sql_for("spark").sql == f"SELECT {winner}"
