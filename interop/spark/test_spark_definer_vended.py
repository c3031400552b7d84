"""Credentials through a definer view: an engine without a right to a table reads its files, as long as the view's owner may.

Spark's own catalog says nothing about views yet, so Java's client is called in the JVM of the session.
"""

import pyarrow as pa
import pytest
import requests
from harness import clients
from harness.delegated import ASKED, VENDED
from harness.secured import java_credentials

pytestmark = pytest.mark.moorage_only

VIEW = {
    "name": "v",
    "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]},
    "view-version": {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["definer"],
        "representations": [{"type": "sql", "sql": "select id from definer.t", "dialect": "spark"}],
    },
    "properties": {"security": "definer"},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(secured_lake):
    """Two tables of one key, a definer view of another on one of them, and the key of an engine that may read the view alone.

    Yields the files of the two tables as well, and the engine.
    """
    made = {name: secured_lake.key(f"definer-{name}") for name in ["maker", "owner", "engine"]}
    lake, space = secured_lake.warehouse, f"{secured_lake.warehouse}.definer"

    def grant(privileges: str, kind: str, name: str, to: str) -> None:
        secured_lake.command("grant", privileges, "on", kind, name, "to", made[to].principal)

    grant("create", "warehouse", lake, "maker")
    catalog = clients.pyiceberg_catalog(secured_lake, credential=made["maker"].text)
    catalog.create_namespace("definer")
    files = {}
    for name in ["t", "other"]:
        table = catalog.create_table(f"definer.{name}", schema=pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1]}))
        [files[name]] = [task.file.file_path for task in table.scan().plan_files()]
    grant("create", "namespace", space, "owner")
    grant("read", "table", f"{space}.t", "owner")
    views = f"{secured_lake.uri}/v1/{lake}/namespaces/definer/views"
    answer = requests.post(views, json=VIEW, headers={"Authorization": f"Bearer {made['owner'].text}"}, timeout=30)
    assert answer.status_code == 200, answer.text
    secured_lake.command("revoke", "create", "on", "namespace", space, "from", made["owner"].principal)
    grant("read", "view", f"{space}.v", "engine")
    grant("delegate", "warehouse", lake, "engine")
    return secured_lake, made, files


def test_files_through_a_view(spark, world):
    running, made, files = world
    jvm = spark._jvm
    properties = jvm.java.util.HashMap()
    for name, value in {**clients.java_properties(running), **java_credentials(running, made["engine"]), ASKED: VENDED}.items():
        properties[name] = value
    catalog = jvm.org.apache.iceberg.rest.RESTCatalog()
    catalog.setConf(spark._jsc.hadoopConfiguration())
    catalog.initialize("engine", properties)
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse

    def through_the_view():
        names = jvm.java.util.ArrayList()
        names.add(identifier("definer.v"))
        return catalog.loadTable(identifier("definer.t"), jvm.org.apache.iceberg.catalog.LoadContext.builder().referencedBy(names).build())

    with pytest.raises(Exception, match="Table does not exist"):
        catalog.loadTable(identifier("definer.t"))
    loaded = through_the_view()
    assert first_byte(loaded, files["t"]) == ord("P")
    with pytest.raises(Exception, match="403"):
        first_byte(loaded, files["other"])
    with pytest.raises(Exception, match="403"):
        loaded.io().deleteFile(files["t"])
    # Where a client renews its credential: it comes through the same view.
    renewal = f"{running.uri}/{loaded.io().properties()['client.refresh-credentials-endpoint']}"
    assert "referenced-by=" in renewal
    engine = {"Authorization": f"Bearer {made['engine'].text}", "X-Iceberg-Access-Delegation": VENDED}
    assert requests.get(renewal, headers=engine, timeout=30).json()["storage-credentials"]
    assert requests.get(renewal.partition("?")[0], headers=engine, timeout=30).status_code == 404
    # The right is the owner's, so it ends with his.
    running.command("revoke", "read", "on", "table", f"{running.warehouse}.definer.t", "from", made["owner"].principal)
    with pytest.raises(Exception, match="Table does not exist"):
        through_the_view()
    assert requests.get(renewal, headers=engine, timeout=30).status_code == 404
    catalog.close()


def first_byte(table, location: str) -> int:
    stream = table.io().newInputFile(location).newStream()
    try:
        return stream.read()
    finally:
        stream.close()
