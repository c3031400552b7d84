"""Names: namespaces, rename, register, drop, purge, and what a client is told when they clash."""

import pyarrow as pa
import pytest
from harness import clients
from harness.compare import eventually, rows
from harness.management import rollback, undrop
from harness.names import NAMES
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)

ONE = pa.table({"id": pa.array([1], pa.int64())})
TWO = pa.table({"id": pa.array([2], pa.int64())})


def test_namespaces(iceberg, namespace):
    iceberg.create_namespace((namespace, "inner"), {"owner": "somebody", "comment": "ü"})
    iceberg.create_namespace((namespace, "inner", "most"))
    assert iceberg.list_namespaces(namespace) == [(namespace, "inner")]
    assert iceberg.list_namespaces((namespace, "inner")) == [(namespace, "inner", "most")]
    assert (namespace,) in iceberg.list_namespaces()
    assert (namespace, "inner") not in iceberg.list_namespaces()
    assert iceberg.namespace_exists((namespace, "inner", "most"))
    assert not iceberg.namespace_exists((namespace, "other"))

    properties = iceberg.load_namespace_properties((namespace, "inner"))
    assert {key: properties.get(key) for key in ("owner", "comment")} == {"owner": "somebody", "comment": "ü"}
    summary = iceberg.update_namespace_properties((namespace, "inner"), {"comment", "absent"}, {"owner": "else"})
    assert (summary.removed, summary.updated, summary.missing) == (["comment"], ["owner"], ["absent"])
    properties = iceberg.load_namespace_properties((namespace, "inner"))
    assert (properties.get("owner"), properties.get("comment")) == ("else", None)

    with pytest.raises(NamespaceAlreadyExistsError):
        iceberg.create_namespace((namespace, "inner"))
    with pytest.raises(NamespaceNotEmptyError):
        iceberg.drop_namespace((namespace, "inner"))
    iceberg.drop_namespace((namespace, "inner", "most"))
    iceberg.drop_namespace((namespace, "inner"))
    with pytest.raises(NoSuchNamespaceError):
        iceberg.load_namespace_properties((namespace, "inner"))
    with pytest.raises(NoSuchNamespaceError):
        iceberg.drop_namespace((namespace, "inner"))


def test_namespace_with_a_table_is_not_dropped(iceberg, namespace):
    iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    with pytest.raises(NamespaceNotEmptyError):
        iceberg.drop_namespace(namespace)
    iceberg.drop_table(f"{namespace}.events")
    iceberg.drop_namespace(namespace)
    assert not iceberg.namespace_exists(namespace)


def test_tables_are_listed_and_clash(iceberg, namespace):
    for name in ("b", "a", "c"):
        iceberg.create_table(f"{namespace}.{name}", schema=ONE.schema)
    assert sorted(iceberg.list_tables(namespace)) == [(namespace, name) for name in "abc"]
    with pytest.raises(TableAlreadyExistsError):
        iceberg.create_table(f"{namespace}.a", schema=ONE.schema)
    assert iceberg.table_exists(f"{namespace}.a")
    assert not iceberg.table_exists(f"{namespace}.d")
    with pytest.raises(NoSuchTableError):
        iceberg.load_table(f"{namespace}.d")
    with pytest.raises(NoSuchNamespaceError):
        iceberg.create_table("absent_namespace.a", schema=ONE.schema)
    with pytest.raises(NoSuchNamespaceError):
        iceberg.list_tables("absent_namespace")


@pytest.mark.parametrize("name", NAMES)
def test_names(iceberg, namespace, name):
    inner = (namespace, f"of {name}")
    iceberg.create_namespace(inner)
    table = iceberg.create_table((*inner, name), schema=ONE.schema)
    table.append(ONE)
    assert iceberg.list_namespaces(namespace) == [inner]
    assert iceberg.list_tables(inner) == [(*inner, name)]
    assert rows(iceberg.load_table((*inner, name))) == [(1,)]
    iceberg.rename_table((*inner, name), (*inner, f"new {name}"))
    assert iceberg.list_tables(inner) == [(*inner, f"new {name}")]
    iceberg.drop_table((*inner, f"new {name}"))
    iceberg.drop_namespace(inner)


def test_rename(iceberg, namespace):
    iceberg.create_namespace((namespace, "other"))
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    iceberg.create_table(f"{namespace}.taken", schema=ONE.schema)
    with pytest.raises(TableAlreadyExistsError):
        iceberg.rename_table(f"{namespace}.events", f"{namespace}.taken")
    with pytest.raises(NoSuchTableError):
        iceberg.rename_table(f"{namespace}.absent", f"{namespace}.free")

    table.refresh()  # others may have committed since it was answered
    renamed = iceberg.rename_table(f"{namespace}.events", (namespace, "other", "history"))
    assert renamed.metadata_location == table.metadata_location
    assert not iceberg.table_exists(f"{namespace}.events")
    renamed.append(TWO)
    assert rows(iceberg.load_table((namespace, "other", "history"))) == [(1,), (2,)]
    # The old name is free, and a new table there leaves the renamed one alone.
    iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    iceberg.drop_table(f"{namespace}.events")
    assert rows(iceberg.load_table((namespace, "other", "history"))) == [(1,), (2,)]


def test_register(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    location = iceberg.load_table(f"{namespace}.events").metadata_location
    with pytest.raises(TableAlreadyExistsError):
        iceberg.register_table(f"{namespace}.events", location)
    iceberg.drop_table(f"{namespace}.events")
    registered = iceberg.register_table(f"{namespace}.again", location)
    assert registered.metadata_location == location
    assert rows(registered) == [(1,)]
    registered.append(TWO)
    assert rows(iceberg.load_table(f"{namespace}.again")) == [(1,), (2,)]


def test_register_with_overwrite(iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    before = iceberg.load_table(f"{namespace}.events").metadata_location
    table.append(TWO)
    registered = iceberg.register_table(f"{namespace}.events", before, overwrite=True)
    assert registered.metadata_location == before
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,)]


def test_drop_keeps_the_files(catalog_server, iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    files = catalog_server.files.list(table.location())
    iceberg.drop_table(f"{namespace}.events")
    with pytest.raises(NoSuchTableError):
        iceberg.drop_table(f"{namespace}.events")
    assert catalog_server.files.path(table.metadata_location) in files
    assert catalog_server.files.list(table.location()) == files
    again = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    assert rows(again) == []
    assert again.metadata.table_uuid != table.metadata.table_uuid


@pytest.mark.moorage_only
def test_undrop(catalog_server, iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    table.append(TWO)
    dropped = iceberg.load_table(f"{namespace}.events")
    iceberg.drop_table(f"{namespace}.events")
    undrop(catalog_server, (namespace,), "events")
    back = iceberg.load_table(f"{namespace}.events")
    assert back.metadata_location == dropped.metadata_location
    assert rows(back) == [(1,), (2,)]
    back.append(ONE)
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,), (1,), (2,)]


@pytest.mark.moorage_only
def test_undrop_over_another_table(catalog_server, iceberg, namespace):
    iceberg.create_table(f"{namespace}.events", schema=ONE.schema).append(ONE)
    iceberg.drop_table(f"{namespace}.events")
    iceberg.create_table(f"{namespace}.events", schema=TWO.schema).append(TWO)
    undrop(catalog_server, (namespace,), "events", replace=True)
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,)]
    undrop(catalog_server, (namespace,), "events", **{"as": {"namespace": [namespace], "name": "again"}})
    assert rows(iceberg.load_table(f"{namespace}.again")) == [(2,)]


@pytest.mark.moorage_only
def test_rollback(catalog_server, iceberg, namespace):
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    table.append(TWO)
    done = rollback(catalog_server, (namespace,), "events", "now~1")
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,)]
    rollback(catalog_server, (namespace,), "events", done["previous-metadata-location"].rpartition("/")[2])
    back = iceberg.load_table(f"{namespace}.events")
    assert rows(back) == [(1,), (2,)]
    back.append(ONE)
    assert rows(iceberg.load_table(f"{namespace}.events")) == [(1,), (1,), (2,)]


def test_purge_removes_the_files(catalog_server, iceberg, namespace):
    kept = iceberg.create_table(f"{namespace}.kept", schema=ONE.schema, properties={"gc.enabled": "false"})
    kept.append(ONE)
    table = iceberg.create_table(f"{namespace}.events", schema=ONE.schema)
    table.append(ONE)
    table.append(TWO)
    iceberg.purge_table(f"{namespace}.events")
    assert not iceberg.table_exists(f"{namespace}.events")
    assert eventually(lambda: catalog_server.files.list(table.location()) == []), "files are left"
    assert rows(iceberg.load_table(f"{namespace}.kept")) == [(1,)]


def test_missing_warehouse(catalog_server):
    class Elsewhere:
        uri = catalog_server.uri
        warehouse = "absent"
        files = catalog_server.files

    with pytest.raises(RESTError, match="absent"):
        clients.pyiceberg_catalog(Elsewhere)
