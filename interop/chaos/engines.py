"""An engine for the chaos test: `engines.py NAME URI,URI…` does what lines on its input ask for.

A request and its answer are a line of JSON each; remote_test.go has their members. Requests are carried out as they
come, several at once. The process ends with its input.
"""

import faulthandler
import json
import os
import signal
import sys
import tempfile
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from harness import clients, flink, paths, trino
from harness.files import Folder

NAMESPACE = "chaos"
REQUESTS_AT_ONCE = 8


class NoRef(Exception):
    """A tag or branch is not there."""


class Node:
    """A server, as the clients of the harness take it."""

    warehouse = "default"
    files = Folder()

    def __init__(self, uri: str):
        self.uri = uri

    def ref(self, table: str, name: str) -> int | None:
        """The id of a ref's snapshot; None for main while nothing was written."""
        with urllib.request.urlopen(f"{self.uri}/v1/namespaces/{NAMESPACE}/tables/{table}", timeout=30) as answer:
            refs = json.load(answer)["metadata"].get("refs", {})
        if name not in refs and name != "main":
            raise NoRef(name)
        return refs[name]["snapshot-id"] if name in refs else None


class PyIceberg:
    actions, branches = ["append", "delete", "overwrite"], True

    def __init__(self, nodes: list[Node], parts: ExitStack):
        self.nodes = nodes
        self.catalogs = [clients.pyiceberg_catalog(node) for node in nodes]

    def do(self, asked: dict) -> list[tuple]:
        import pyarrow as pa

        table = self.catalogs[asked["node"]].load_table(f"{NAMESPACE}.{asked['table']}")
        ref = asked.get("ref") or "main"
        if asked["action"] == "delete":
            table.delete(f"writer == {asked['writer']} and number < {asked['below']}", branch=ref)
            return []
        if asked["action"] == "read":
            if (found := table.snapshot_by_name(ref)) is None:
                if ref != "main":
                    raise NoRef(ref)
                return []
            read = table.scan(snapshot_id=found.snapshot_id).to_arrow()
            return list(zip(read["writer"].to_pylist(), read["number"].to_pylist(), strict=True))
        numbers = asked["numbers"]
        rows = pa.table({"writer": [asked["writer"]] * len(numbers), "number": numbers}, schema=table.schema().as_arrow())
        change = table.append if asked["action"] == "append" else table.overwrite
        change(rows, branch=ref)
        return []


class InSQL:
    """An engine that is told what to do in SQL, with a catalog for each node."""

    actions, branches = ["append", "delete"], False

    def sql(self, statement: str) -> list[tuple]:
        raise NotImplementedError

    def table(self, asked: dict) -> str:
        return f"node{asked['node']}.{NAMESPACE}.{asked['table']}"

    def do(self, asked: dict) -> list[tuple]:
        return getattr(self, "_" + asked["action"])(asked)

    def _append(self, asked: dict) -> list[tuple]:
        self.sql(f"INSERT INTO {self.table(asked)} VALUES {values(asked)}")
        return []

    def _delete(self, asked: dict) -> list[tuple]:
        self.sql(f"DELETE FROM {self.table(asked)} WHERE writer = {asked['writer']} AND number < {asked['below']}")
        return []

    def version(self, ref: str) -> str:
        return f" FOR VERSION AS OF '{ref}'"

    def _read(self, asked: dict) -> list[tuple]:
        version = self.version(asked["ref"]) if asked.get("ref") else ""
        return self.sql(f"SELECT writer, number FROM {self.table(asked)}{version}")


def values(asked: dict) -> str:
    return ", ".join(f"({asked['writer']}, {number})" for number in asked["numbers"])


def merge(asked: dict, table: str, source: str) -> str:
    """The statement that removes some rows and adds others; source is SQL for rows, around the values `{}`.

    A row that is to go and is not there is not added.
    """
    rows = [(number, "true") for number in asked["numbers"]] + [(number, "false") for number in asked.get("gone", [])]
    changes = ", ".join(f"({asked['writer']}, {number}, {fresh})" for number, fresh in rows)
    return (
        f"MERGE INTO {table} t USING ({source.format(changes)}) s ON t.writer = s.writer AND t.number = s.number "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.fresh THEN INSERT (writer, number) VALUES (s.writer, s.number)"
    )


class Spark(InSQL):
    actions, branches = ["append", "delete", "merge", "overwrite", "cherrypick", "compact"], True

    def __init__(self, nodes: list[Node], parts: ExitStack):
        folder = parts.enter_context(tempfile.TemporaryDirectory(prefix="moorage-chaos-spark-"))
        self.session = clients.spark_session(nodes[0], folder, paths.jars("spark"))
        parts.callback(self.session.stop)
        for number, node in enumerate(nodes):
            clients.add_spark_catalog(self.session, f"node{number}", node)

    def sql(self, statement: str) -> list[tuple]:
        return [tuple(row) for row in self.session.sql(statement).collect()]

    def _append(self, asked: dict) -> list[tuple]:
        branch = f".branch_{asked['ref']}" if asked.get("ref") else ""
        self.sql(f"INSERT INTO {self.table(asked)}{branch} VALUES {values(asked)}")
        return []

    def _overwrite(self, asked: dict) -> list[tuple]:
        self.sql(f"INSERT OVERWRITE {self.table(asked)} VALUES {values(asked)}")
        return []

    def _cherrypick(self, asked: dict) -> list[tuple]:
        """A branch holds the snapshot that is picked, so that it does not expire before."""
        table, name = self.table(asked), f"pick{asked['numbers'][0]}"
        self.sql(f"ALTER TABLE {table} CREATE BRANCH {name}")
        try:
            self.sql(f"INSERT INTO {table}.branch_{name} VALUES {values(asked)}")
            [(picked,)] = self.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = '{name}'")
            self.call("cherrypick_snapshot", asked, f"snapshot_id => {picked}")
        finally:
            self.sql(f"ALTER TABLE {table} DROP BRANCH {name}")
        return []

    def _merge(self, asked: dict) -> list[tuple]:
        self.sql(merge(asked, self.table(asked), "SELECT * FROM VALUES {} AS v (writer, number, fresh)"))
        return []

    def _compact(self, asked: dict) -> list[tuple]:
        self.call("rewrite_data_files", asked, "options => map('rewrite-all', 'true')")
        self.call("rewrite_manifests", asked)
        return []

    def call(self, procedure: str, asked: dict, *more: str) -> None:
        arguments = ", ".join([f"table => '{NAMESPACE}.{asked['table']}'", *more])
        self.sql(f"CALL node{asked['node']}.system.{procedure}({arguments})")

    def version(self, ref: str) -> str:
        return f" VERSION AS OF '{ref}'"


class Trino(InSQL):
    actions, branches = ["append", "delete", "merge", "compact"], False

    def __init__(self, nodes: list[Node], parts: ExitStack):
        self.server = parts.enter_context(trino.Trino())
        for number, node in enumerate(nodes):
            self.server.add(clients.trino_catalog(node), f"node{number}")

    def sql(self, statement: str) -> list[tuple]:
        connection = self.server.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()

    def _merge(self, asked: dict) -> list[tuple]:
        self.sql(merge(asked, self.table(asked), "SELECT * FROM (VALUES {}) AS v (writer, number, fresh)"))
        return []

    def _compact(self, asked: dict) -> list[tuple]:
        self.sql(f"ALTER TABLE {self.table(asked)} EXECUTE optimize")
        return []


class DuckDB(InSQL):
    actions, branches = ["append", "delete", "merge"], False

    def __init__(self, nodes: list[Node], parts: ExitStack):
        self.nodes = nodes

    def do(self, asked: dict) -> list[tuple]:
        with clients.duckdb_connection(self.nodes[asked["node"]]) as connection:
            self._local.connection = connection
            return super().do(asked)

    _local = threading.local()

    def table(self, asked: dict) -> str:
        return f"ice.{NAMESPACE}.{asked['table']}"

    def sql(self, statement: str) -> list[tuple]:
        return self._local.connection.execute(statement).fetchall()

    def _read(self, asked: dict) -> list[tuple]:
        if not asked.get("ref"):
            return super()._read(asked)
        snapshot = self.nodes[asked["node"]].ref(asked["table"], asked["ref"])
        return self.sql(f"SELECT writer, number FROM {self.table(asked)} AT (VERSION => {snapshot})")

    def _merge(self, asked: dict) -> list[tuple]:
        self.sql(merge(asked, self.table(asked), "SELECT * FROM (VALUES {}) AS v (writer, number, fresh)"))
        return []


class Flink(InSQL):
    """Each statement is a job with an end. A session belongs to a thread and has the catalog of one node."""

    actions, branches = ["append", "upsert", "overwrite"], True

    def __init__(self, nodes: list[Node], parts: ExitStack):
        folder = parts.enter_context(tempfile.TemporaryDirectory(prefix="moorage-chaos-flink-"))
        self.nodes = nodes
        self.cluster = parts.enter_context(flink.Flink(folder, paths.jars("flink")))
        self._local = threading.local()

    def do(self, asked: dict) -> list[tuple]:
        sessions = self._local.__dict__.setdefault("sessions", {})
        node = asked["node"]
        if node not in sessions:
            sessions[node] = self.cluster.session(self.nodes[node], flink.BATCH)
        self._local.present = sessions[node]
        return super().do(asked)

    def sql(self, statement: str) -> list[tuple]:
        return self._local.present.run(statement)

    def table(self, asked: dict, **options: str) -> str:
        ref = asked.get("ref")
        if ref:
            options["tag" if ref.startswith("t") else "branch"] = ref
        said = ", ".join(f"'{name.replace('_', '-')}' = '{value}'" for name, value in options.items())
        return f"{NAMESPACE}.{asked['table']}" + (f" /*+ OPTIONS({said}) */" if said else "")

    def version(self, ref: str) -> str:
        return ""  # the table's name says it

    def _overwrite(self, asked: dict) -> list[tuple]:
        self.sql(f"INSERT OVERWRITE {self.table(asked)} VALUES {values(asked)}")
        return []

    def _upsert(self, asked: dict) -> list[tuple]:
        """Deletes by equality take out what was there of these rows."""
        self.sql(f"INSERT INTO {self.table(asked, upsert_enabled='true')} VALUES {values(asked)}")
        return []


ENGINES = {"pyiceberg": PyIceberg, "spark": Spark, "trino": Trino, "duckdb": DuckDB, "flink": Flink}


def main(name: str, uris: str) -> None:
    # What clients print to the output, JVMs of theirs included, is none of the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # The test sends it when it has waited too long for an answer.
    faulthandler.register(signal.SIGUSR1)
    writing = threading.Lock()

    def answer(**members) -> None:
        with writing:
            answers.write(json.dumps(members) + "\n")
            answers.flush()

    with ExitStack() as parts:
        try:
            engine = ENGINES[name]([Node(uri) for uri in uris.split(",")], parts)
        except Exception as fault:
            answer(id=0, error=repr(fault))
            raise

        def carry_out(asked: dict) -> None:
            try:
                answer(id=asked["id"], rows=[[int(writer), int(number)] for writer, number in engine.do(asked)])
            except NoRef as fault:
                answer(id=asked["id"], error=str(fault), **{"no-ref": True})
            except BaseException as fault:
                answer(id=asked["id"], error=f"{type(fault).__name__}: {' | '.join(str(fault).splitlines())}"[:2000])

        answer(id=0, actions=engine.actions, branches=engine.branches)
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
            for line in sys.stdin:
                pool.submit(carry_out, json.loads(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
