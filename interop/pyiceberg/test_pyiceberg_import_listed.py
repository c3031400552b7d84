"""The commands of docs/guide/move-in.md that make a list of the tables of another catalog, as they stand there.

Glue is moto's double, as is S3 Tables, from which no list helps. There is no Hive Metastore here: its database has the tables and columns that the
query reads, as Hive's schema for PostgreSQL has them.
"""

import os
import re
import subprocess

import pyarrow as pa
import pytest
from harness import aws, cluster, paths, s3, server
from harness.compare import rows
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

pytestmark = pytest.mark.moorage_only


def commands(heading: str) -> str:
    """The commands of the guide below a comment."""
    guide = (paths.REPOSITORY / "docs" / "guide" / "move-in.md").read_text()
    (block,) = [each for each in re.findall(r"```bash\n(.*?)```", guide, re.DOTALL) if f"# {heading}" in each]
    return re.split(r"^# .*\n", block.split(f"# {heading}", 1)[1].split("\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def run(running, heading: str, **environment: str) -> str:
    """Runs the commands, with moorage and aws where a shell looks for them. The folder of the server is not theirs."""
    path = os.pathsep.join([str(running.binary.parent), str(aws.PROGRAMS), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands(heading)], capture_output=True, text=True, timeout=600,
        env=os.environ | {"PATH": path, "MOORAGE_URI": running.uri} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def filled(folder, names: list[str]) -> dict[str, str]:
    """Makes tables below a folder, each with one row, and returns their metadata files by name."""
    old = SqlCatalog("old", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    old.create_namespace("sales")
    for name in names:
        old.create_table(f"sales.{name}", schema=ids().schema).append(ids(1))
    return {name: old.load_table(f"sales.{name}").metadata_location for name in names}


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def arrived(running, names: list[str]) -> None:
    """The tables, and no others, are here with their rows."""
    here = load_catalog("here", type="rest", uri=running.uri, warehouse=running.warehouse)
    assert sorted(here.list_tables("sales")) == sorted(("sales", name) for name in names)
    for name in names:
        assert rows(here.load_table(("sales", name)), "id") == [(1,)]


@pytest.mark.timeout(900)
def test_from_glue(tmp_path):
    with aws.Moto() as moto, server.Moorage(["--allow-location", f"file://{tmp_path}"]) as running:
        moto.aws("glue", "create-database", "--database-input", "Name=sales")
        for name, location in filled(tmp_path, ["orders", "items"]).items():
            moto.aws("glue", "create-table", "--database-name", "sales", "--table-input",
                     f"Name={name},TableType=EXTERNAL_TABLE,Parameters={{table_type=ICEBERG,metadata_location={location}}}")  # fmt: skip
        moto.aws("glue", "create-table", "--database-name", "sales", "--table-input", "Name=other,TableType=EXTERNAL_TABLE,Parameters={a=b}")
        run(running, "AWS Glue", **moto.environment)
        arrived(running, ["orders", "items"])


@pytest.mark.timeout(900)
def test_not_from_s3_tables(lake_files):
    """The location of such a table is a bucket, and a warehouse takes none that is its root: the guide says so."""
    with aws.Moto() as moto, server.Moorage(s3=lake_files) as running:
        arn = moto.aws("s3tables", "create-table-bucket", "--name", "analytics", "--query", "arn", "--output", "text").strip()
        moto.aws("s3tables", "create-namespace", "--table-bucket-arn", arn, "--namespace", "sales")
        table = ["--table-bucket-arn", arn, "--namespace", "sales", "--name", "orders"]
        moto.aws("s3tables", "create-table", *table, "--format", "ICEBERG")
        asked = ["get-table", *table, "--output", "text", "--query"]
        location, token = (moto.aws("s3tables", *asked, each).strip() for each in ("warehouseLocation", "versionToken"))
        lake_files.make_bucket(lake_files.path(location))  # S3 Tables has made it
        properties = lake_files.client_properties | {"s3.endpoint": lake_files.url, "s3.region": s3.REGION}
        old = SqlCatalog("old", uri="sqlite:///:memory:", warehouse=location, **properties)
        old.create_namespace("sales")
        old.create_table("sales.orders", schema=ids().schema, location=location).append(ids(1))
        moto.aws("s3tables", "update-table-metadata-location", *table, "--version-token", token,
                 "--metadata-location", old.load_table("sales.orders").metadata_location)  # fmt: skip
        change = [str(running.binary), "warehouse", "change", "default", "--allow-location", location, "--uri", running.uri]
        subprocess.run(change, check=True, timeout=300)
        listed = moto.aws("s3tables", "get-table-metadata-location", *table, "--query", "metadataLocation", "--output", "text")
        words = [str(running.binary), "import", "list", "-", "--dry-run", "--uri", running.uri]
        plan = subprocess.run(words, input=f"sales,orders,table,{listed}", capture_output=True, text=True, timeout=300)
        assert plan.returncode == 3 and "location-outside" in plan.stdout and "Location is the root" in plan.stdout, plan


HIVE = """
CREATE TABLE "DBS" ("DB_ID" bigint NOT NULL PRIMARY KEY, "NAME" varchar(128), "CTLG_NAME" varchar(256));
CREATE TABLE "TBLS" ("TBL_ID" bigint NOT NULL PRIMARY KEY, "DB_ID" bigint, "TBL_NAME" varchar(256), "TBL_TYPE" varchar(128));
CREATE TABLE "TABLE_PARAMS" ("TBL_ID" bigint NOT NULL, "PARAM_KEY" varchar(256) NOT NULL, "PARAM_VALUE" text);
INSERT INTO "DBS" VALUES (1, 'default', 'hive'), (2, 'sales', 'hive');
INSERT INTO "TBLS" VALUES (1, 2, 'orders', 'EXTERNAL_TABLE'), (2, 2, 'items', 'EXTERNAL_TABLE'), (3, 2, 'other', 'MANAGED_TABLE');
INSERT INTO "TABLE_PARAMS" VALUES (1, 'table_type', 'ICEBERG'), (3, 'EXTERNAL', 'TRUE');
"""


@pytest.mark.timeout(900)
def test_from_the_database_of_hive(tmp_path):
    with cluster.postgres() as metastore, server.Moorage(["--allow-location", f"file://{tmp_path}"]) as running:
        found = filled(tmp_path, ["orders", "items"])
        files = "".join(
            f"INSERT INTO \"TABLE_PARAMS\" VALUES ({number}, 'metadata_location', '{found[name]}'), "
            f"({number}, 'previous_metadata_location', 'file:/before');\n"
            for number, name in ((1, "orders"), (2, "items"))
        )
        subprocess.run(["psql", "-qv", "ON_ERROR_STOP=1", metastore.dsn], input=HIVE + files, text=True, check=True, timeout=300)
        run(running, "Hive, from the database of its metastore", METASTORE=metastore.dsn)
        arrived(running, ["orders", "items"])
