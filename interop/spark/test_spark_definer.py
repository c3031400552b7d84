"""Definer views: what Java's client says about the views that it comes through, and what a trusted engine is answered.

Spark's own catalog says nothing about views yet, so the client is called in the JVM of the session.
"""

import pytest
import requests
from harness import clients
from harness.secured import Secured, java_credentials

pytestmark = pytest.mark.moorage_only

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "int", "required": False}]}
VERSION = {
    "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["a"],
    "representations": [{"type": "sql", "sql": "select id from a.t", "dialect": "spark"}],
}  # fmt: skip
VIEWS = ["v", "b,c"]


@pytest.fixture(scope="module")
def world():
    """A table of one key, definer views of another, and the key of an engine that may read the views alone."""
    with Secured() as running:
        made = {name: running.key(name) for name in ["maker", "definer", "engine"]}
        space = f"{running.warehouse}.a"
        running.command("grant", "create", "on", "warehouse", running.warehouse, "to", "key:maker")
        send(running, made["maker"], "namespaces", {"namespace": ["a"]})
        send(running, made["maker"], "namespaces/a/tables", {"name": "t", "schema": SCHEMA})
        running.command("grant", "create", "on", "namespace", space, "to", "key:definer")
        running.command("grant", "read", "on", "table", f"{space}.t", "to", "key:definer")
        for view in VIEWS:
            body = {"name": view, "schema": SCHEMA, "view-version": VERSION, "properties": {"security": "definer"}}
            send(running, made["definer"], "namespaces/a/views", body)
            running.command("grant", "read", "on", "view", f'{space}."{view}"', "to", "key:engine")
        running.command("revoke", "create", "on", "namespace", space, "from", "key:definer")
        yield running, made["engine"]


def send(running, key, path: str, body: dict):
    uri = f"{running.uri}/v1/{running.warehouse}/{path}"
    answer = requests.post(uri, json=body, headers={"Authorization": f"Bearer {key.text}"}, timeout=30)
    assert answer.status_code == 200, answer.text


@pytest.mark.smoke
def test_java_through_views(spark, world):
    running, engine = world
    jvm = spark._jvm
    properties = jvm.java.util.HashMap()
    for name, value in {**clients.java_properties(running), **java_credentials(running, engine)}.items():
        properties[name] = value
    catalog = jvm.org.apache.iceberg.rest.RESTCatalog()
    catalog.setConf(spark._jsc.hadoopConfiguration())
    catalog.initialize("engine", properties)
    iceberg = jvm.org.apache.iceberg.catalog
    levels = spark.sparkContext._gateway.new_array(jvm.String, 1)
    levels[0] = "a"

    def named(name: str):
        return iceberg.TableIdentifier.of(iceberg.Namespace.of(levels), name)

    def through(view: str):
        names = jvm.java.util.ArrayList()
        names.add(named(view))
        return catalog.loadTable(named("t"), iceberg.LoadContext.builder().referencedBy(names).build())

    with pytest.raises(Exception, match="NoSuchTableException"):
        through("v")
    running.command("grant", "delegate", "on", "warehouse", running.warehouse, "to", "key:engine")
    for view in VIEWS:
        assert through(view).schema().findField("id") is not None
    for view in ["missing", "t"]:
        with pytest.raises(Exception, match="Table does not exist: a.t"):
            through(view)
    with pytest.raises(Exception, match="Table does not exist: a.t"):
        catalog.loadTable(named("t"))
    running.command("revoke", "read", "on", "table", f"{running.warehouse}.a.t", "from", "key:definer")
    with pytest.raises(Exception, match="Table does not exist: a.t"):
        through("v")
    catalog.close()
