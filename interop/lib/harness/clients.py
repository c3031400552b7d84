"""Clients connected to a server, with the configuration of a normal user: no tuning without a comment on the reason.

Each client is imported where it is used, so that one suite does not need another suite's packages.
"""

import contextlib
import logging
import os
import sysconfig
from pathlib import Path

from harness import s3

# The ways to access files without a key that a client can request.
ASKED = "header.X-Iceberg-Access-Delegation"
VENDED, SIGNED = "vended-credentials", "remote-signing"

# DuckDB's extensions depend on one another in this order.
DUCKDB_EXTENSIONS = ["parquet", "avro", "httpfs", "iceberg"]


def pyiceberg_catalog(server, **more: str):
    from pyiceberg.catalog import load_catalog

    return load_catalog("ice", type="rest", uri=server.uri, warehouse=server.warehouse, **server.files.client_properties, **more)


def java_properties(server) -> dict[str, str]:
    """The catalog properties for the Java client."""
    properties = {"uri": server.uri, "warehouse": server.warehouse, **server.files.client_properties}
    if not server.files.in_s3:
        # Local files need an explicit FileIO; otherwise the catalog chooses one by scheme.
        properties["io-impl"] = "org.apache.iceberg.hadoop.HadoopFileIO"
    return properties


def spark_catalog(name: str, server, **more: str) -> dict[str, str]:
    """The settings that add the server to a Spark session as a catalog with this name.

    more are additional properties.
    """
    prefix = f"spark.sql.catalog.{name}"
    # Each statement asks the server; a cached table would hide the server's responses.
    settings = {"type": "rest", "cache-enabled": "false", **java_properties(server), **more}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {f"{prefix}.{key}": value for key, value in settings.items()}


def add_spark_catalog(spark, name: str, server, **more: str) -> None:
    """Adds the server to a Spark session as another catalog with this name. more are additional catalog properties."""
    for key, value in spark_catalog(name, server, **more).items():
        spark.conf.set(key, value)


def spark_session(server, folder: str, jars: list[Path]):
    """A local Spark session. Spark writes its own files into folder."""
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        **spark_catalog("ice", server),
        "spark.sql.defaultCatalog": "ice",
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        # The data is a handful of rows: more tasks only cost time.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[4]").appName("interop")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def trino_catalog(server) -> dict[str, str]:
    """The properties for a Trino catalog."""
    properties = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": server.uri,
        "iceberg.rest-catalog.warehouse": server.warehouse,
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.register-table-procedure.enabled": "true",
        # Tests cannot wait a week until files may be removed.
        "iceberg.expire-snapshots.min-retention": "0s",
        "iceberg.remove-orphan-files.min-retention": "0s",
    }
    if not server.files.in_s3:
        return {**properties, "fs.native-local.enabled": "true", "local.location": "/"}
    return {
        **properties,
        "fs.native-s3.enabled": "true",
        "s3.endpoint": server.files.url,
        "s3.region": s3.REGION,
        "s3.path-style-access": "true",
        "s3.aws-access-key": s3.ACCESS_KEY_ID,
        "s3.aws-secret-key": s3.SECRET_ACCESS_KEY,
    }


@contextlib.contextmanager
def duckdb_with_extensions():
    """A DuckDB connection that can attach Iceberg catalogs, with nothing attached."""
    import duckdb

    connection = duckdb.connect(
        config={
            "allow_unsigned_extensions": "true",
            # Everything comes from the installed wheels; nothing is fetched.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )
    try:
        for name in DUCKDB_EXTENSIONS:
            connection.execute(f"LOAD '{_duckdb_extension(duckdb.__version__, name)}'")
        yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def duckdb_connection(server):
    """A DuckDB connection with the server attached as `ice`."""
    with duckdb_with_extensions() as connection:
        delegation = ""
        if server.files.in_s3:
            duckdb_secret(connection, server.files)
            delegation = ", ACCESS_DELEGATION_MODE 'none'"
        connection.execute(
            f"ATTACH '{server.warehouse}' AS ice (TYPE ICEBERG, ENDPOINT '{server.uri}', "
            f"AUTHORIZATION_TYPE 'none', SUPPORT_NESTED_NAMESPACES true, PURGE_REQUESTED false{delegation})"
        )
        yield connection


def duckdb_secret(connection, files) -> None:
    """Creates the secret with which a DuckDB connection reaches the S3 server of files."""
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{s3.ACCESS_KEY_ID}', SECRET '{s3.SECRET_ACCESS_KEY}', REGION '{s3.REGION}', "
        f"ENDPOINT '{files.address}', URL_STYLE 'path', USE_SSL false)"
    )


def _duckdb_extension(version: str, name: str) -> Path:
    packages = Path(sysconfig.get_paths()["purelib"])
    return packages / f"duckdb_extension_{name}/extensions/v{version}/{name}.duckdb_extension"
