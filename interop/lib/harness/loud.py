"""An engine with the most verbose logging: `python -m harness.loud NAME`.

Its input is a World of harness.leaks as JSON. It creates, writes, reads and drops a table, and makes requests
that are forbidden. It prints the responses and its log.
"""

import json
import logging
import sys
import tempfile
import traceback
from collections.abc import Callable
from types import SimpleNamespace

from harness import clients, leaks, paths, s3, secured
from harness.leaks import SEED, World


# The loggers of Iceberg, with its HTTP client's full requests and responses, and of Amazon's SDK.
SPARK_LOGGERS = ["org.apache.iceberg", "software.amazon.awssdk"]


def pyiceberg(world: World, running) -> None:
    import pyarrow as pa

    logging.basicConfig(level=logging.DEBUG)
    catalog = clients.pyiceberg_catalog(running, **leaks.asking(world))
    catalog.create_namespace(world.namespace)
    rows = pa.table({"id": [1], "place": [SEED]})
    table = catalog.create_table(f"{world.namespace}.events", schema=rows.schema)
    table.append(rows)
    print(table.scan().to_arrow().to_pylist(), table)
    refuse(lambda: catalog.load_table(f"{world.namespace}.missing"))
    refuse(lambda: catalog.load_table(world.sibling).scan().to_arrow())
    refuse(lambda: table.io.new_input(world.foreign).open().read())
    refuse(lambda: table.io.new_output(world.foreign).create(overwrite=True).close())
    catalog.drop_table(f"{world.namespace}.events")
    catalog.drop_namespace(world.namespace)


def duckdb(world: World, running) -> None:
    with clients.duckdb_with_extensions() as connection:
        connection.execute("CALL enable_logging(level = 'trace', storage = 'stdout')")
        secured.attach_duckdb(connection, running, f"TOKEN '{world.key.text}'")
        ask(world, "ice", lambda statement: connection.execute(statement).fetchall())


def spark(world: World, running) -> None:
    with tempfile.TemporaryDirectory(prefix="moorage-loud-") as folder:
        session = clients.spark_session(running, folder, paths.jars("spark") + paths.jars("spark-s3"))
        log4j = session._jvm.org.apache.logging.log4j
        for logger in SPARK_LOGGERS:
            log4j.core.config.Configurator.setLevel(logger, log4j.Level.DEBUG)
        clients.add_spark_catalog(session, "loud", running, **leaks.asking(world))
        ask(world, "loud", lambda statement: session.sql(statement).collect())
        session.stop()


def ask(world: World, catalog: str, sql: Callable[[str], list]) -> None:
    for statement, succeeds in leaks.statements(catalog, world):
        print(statement)
        if succeeds:
            print(sql(statement))
        else:
            refuse(lambda statement=statement: sql(statement))


def refuse(call: Callable[[], object]) -> None:
    """Makes a call that must fail, and prints the error."""
    try:
        call()
    except Exception:
        traceback.print_exc()
        return
    raise AssertionError("it was not refused")


ENGINES = {"pyiceberg": pyiceberg, "duckdb": duckdb, "spark": spark}


def main(name: str) -> None:
    told = json.load(sys.stdin)
    world = World(**{**told, "key": secured.Key(**told["key"])})
    files = SimpleNamespace(in_s3=True, client_properties=s3.WithoutKeys.client_properties)
    running = SimpleNamespace(uri=world.uri, warehouse=world.warehouse, files=files)
    ENGINES[name](world, running)


if __name__ == "__main__":
    main(*sys.argv[1:])
