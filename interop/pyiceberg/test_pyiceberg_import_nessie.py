"""Tables that PyIceberg made in Nessie move in, from each branch by its prefix."""

import json
import subprocess
import urllib.request

import pyarrow as pa
import pytest
from harness import server
from harness.compare import rows
from harness.nessie import BRANCH, WAREHOUSE, Nessie
from pyiceberg.catalog import load_catalog

pytestmark = pytest.mark.moorage_only


def moorage(running, *words, code=0) -> str:
    """Runs a command against the server, and returns what it printed."""
    done = subprocess.run([str(running.binary), *words, "--uri", running.uri], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def branched(nessie, name: str) -> None:
    """Makes a branch of the main one."""
    with urllib.request.urlopen(f"{nessie.api}/trees/{BRANCH}") as answer:
        head = json.load(answer)["reference"]
    body = json.dumps({"type": "BRANCH", "name": BRANCH, "hash": head["hash"]}).encode()
    request = urllib.request.Request(f"{nessie.api}/trees?name={name}&type=BRANCH", data=body, headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


# Nessie alone takes some minutes to start on a busy machine.
@pytest.mark.timeout(1800)
def test_from_branches_of_nessie(lake_files):
    with Nessie(lake_files) as nessie, server.Moorage(s3=lake_files) as running:
        opened = {"type": "rest", "uri": nessie.uri, **lake_files.client_properties}
        old = load_catalog("nessie", **opened)
        old.create_namespace("sales", {"team": "blue"})
        old.create_table("sales.orders", schema=ids().schema).append(ids(1, 2))
        branched(nessie, "audit")
        load_catalog("audit", **opened | {"prefix": f"audit%7C{WAREHOUSE}"}).load_table("sales.orders").append(ids(3))
        old.load_table("sales.orders").append(ids(4))

        moorage(running, "warehouse", "change", "default", "--allow-location", nessie.location)
        assert "1 object: 1 new; 1 compared, 1 alike." in moorage(running, "import", "rest", nessie.uri, "--source-warehouse", WAREHOUSE)
        here = load_catalog("here", type="rest", uri=running.uri, warehouse=running.warehouse, **lake_files.client_properties)
        assert rows(here.load_table("sales.orders"), "id") == [(1,), (2,), (4,)]
        assert here.load_namespace_properties("sales")["team"] == "blue"

        # Of the other branch it is the same table, with the same uuid: a warehouse has it once.
        audit = [nessie.uri, "--source-prefix", f"audit|{WAREHOUSE}"]
        assert "uuid-taken" in moorage(running, "import", "rest", *audit, "--into", "audit", "--dry-run", code=3)
        moorage(running, "import", "cutover", "rest", nessie.uri, "--source-warehouse", WAREHOUSE, "--source-frozen", "--yes")
        here.load_table("sales.orders").append(ids(5))
        assert rows(here.load_table("sales.orders"), "id") == [(1,), (2,), (4,), (5,)]
        with server.Moorage(s3=lake_files) as other:
            moorage(other, "warehouse", "change", "default", "--allow-location", nessie.location)
            moorage(other, "import", "rest", *audit, "--into", "audit")
            there = load_catalog("there", type="rest", uri=other.uri, warehouse=other.warehouse, **lake_files.client_properties)
            assert rows(there.load_table("audit.sales.orders"), "id") == [(1,), (2,), (3,)]
