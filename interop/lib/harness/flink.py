"""Flink: a cluster in a JVM of its own, and sessions of SQL in it.

The JVM is driven through Py4J, which Spark's package draws in. Flink's own Python
package would be four times the size of the jars, with pins of its own.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from py4j.java_collections import JavaArray, JavaMap
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway

from harness import clients
from harness.history import line

TASK_MANAGERS = 2
SLOTS_PER_TASK_MANAGER = 8
# Flink's own configuration opens these of java.base to it.
OPEN_PACKAGES = [
    *("java.io", "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.text", "java.time", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks", "sun.nio.ch"),
]
STOP_SECONDS_MAX = 60

# The client for S3 keeps the class loader of the job that it was first used in, which Flink takes for a fault when that job is over.
CLASS_LOADING = {"classloader.check-leaked-classloader": "false"}

BATCH = {"execution.runtime-mode": "BATCH", "table.dml-sync": "true"}
STREAMING = {
    "execution.runtime-mode": "STREAMING",
    # A job commits with each checkpoint.
    "execution.checkpointing.interval": "200ms",
    # It goes on at once after a failure, however often: how long it may wait is not what is tested.
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "200ms",
}

# The setting by which a session's jobs go on from where another one was stopped.
SAVED = "execution.state-recovery.path"


class Flink:
    """A cluster as a context manager; folder takes its log, and what its jobs keep beside their tables."""

    def __init__(self, folder: str, jars: list[Path]):
        self.folder = Path(folder)
        self._jars = jars

    def __enter__(self) -> "Flink":
        options = ["-Xmx1g", f"-Djava.io.tmpdir={self.folder}", "-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        with (self.folder / "flink.log").open("w") as log:
            port, self._child = launch_gateway(
                classpath=os.pathsep.join(str(jar) for jar in self._jars),
                javaopts=options + [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPEN_PACKAGES],
                die_on_exit=True,
                return_proc=True,
                redirect_stdout=log,
                redirect_stderr=log,
            )
        # The planner's state belongs to a thread. What launch_gateway starts gives a caller any thread; this gives each one of its own.
        launched = JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False))
        threads = launched.jvm.py4j.ClientServer.ClientServerBuilder().javaPort(0).build()
        threads.startServer()
        java = JavaParameters(port=threads.getJavaServer().getListeningPort())
        launched.close()
        self._gateway = ClientServer(java, PythonParameters(port=0, eager_load=False))
        self.jvm = self._gateway.jvm
        package = self.jvm.org.apache.flink.runtime.minicluster
        settings = {"rest.port": "0", "rest.address": "127.0.0.1", "rest.bind-address": "127.0.0.1"} | CLASS_LOADING
        builder = package.MiniClusterConfiguration.Builder().setConfiguration(self._configuration(settings))
        builder = builder.setCommonBindAddress("127.0.0.1").setNumTaskManagers(TASK_MANAGERS)
        self.cluster = package.MiniCluster(builder.setNumSlotsPerTaskManager(SLOTS_PER_TASK_MANAGER).build())
        self.cluster.start()
        self._lost = 0
        return self

    def __exit__(self, *_) -> None:
        self.cluster.close()
        self._gateway.shutdown()
        self._child.stdin.close()
        self._child.wait(STOP_SECONDS_MAX)

    def _configuration(self, settings: dict[str, str]):
        made = self.jvm.org.apache.flink.configuration.Configuration()
        for name, value in settings.items():
            made.setString(name, value)
        return made

    def session(self, server, settings: dict[str, str], **more: str) -> "Session":
        """A session of SQL whose current catalog `ice` is the server's, with further properties.

        The settings are BATCH or STREAMING, and others.
        """
        address = self.cluster.getRestAddress().get()
        common = {
            "execution.target": "remote",
            "rest.address": address.getHost(),
            "rest.port": str(address.getPort()),
            "parallelism.default": "2",
            "table.local-time-zone": "UTC",
            "execution.checkpointing.dir": f"file://{self.folder}/checkpoints",
            **CLASS_LOADING,
        }
        api = self.jvm.org.apache.flink.table.api
        environment = api.EnvironmentSettings.newInstance().withConfiguration(self._configuration(common | settings)).build()
        made = Session(self, api.TableEnvironment.create(environment))
        made.run(catalog("ice", server, **more))
        made.run("USE CATALOG ice")
        return made

    def lose_task_managers(self) -> None:
        """Ends all task managers, with all that they do, and starts others. A task that waits for an answer ends when it gets one."""
        for _ in range(TASK_MANAGERS):
            self.cluster.startTaskManager()
            self.cluster.terminateTaskManager(self._lost)
            self._lost += 1


def catalog(name: str, server, **more: str) -> str:
    """The statement by which a session has the server as a catalog of that name."""
    # Each statement asks the server; a cached table would hide what it answers.
    settings = {"type": "iceberg", "catalog-type": "rest", "cache-enabled": "false", **clients.java_properties(server), **more}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    return f"CREATE CATALOG {name} WITH ({options})"


class Session:
    """A session of SQL, for the thread that made it."""

    def __init__(self, flink: Flink, environment):
        self._flink = flink
        self._environment = environment
        self._jobs: list[Job] = []

    def run(self, statement: str) -> list[tuple]:
        """Runs a statement to its end and returns its rows, in the order in which they came."""
        with self.read(statement) as rows:
            return list(rows)

    @contextlib.contextmanager
    def read(self, statement: str) -> Iterator[Iterator[tuple]]:
        """A block in which the rows of a query come. Leaving it ends the query, which may have no end of its own."""
        found = self._environment.executeSql(statement).collect()
        try:
            yield self._rows(found)
        finally:
            found.close()

    def _rows(self, found) -> Iterator[tuple]:
        while found.hasNext():
            row = found.next()
            yield tuple(_value(row.getField(number)) for number in range(row.getArity()))

    def start(self, statement: str) -> "Job":
        """Starts an INSERT, and does not wait for its end if the session has STREAMING settings."""
        job = Job(self._flink, self._environment.executeSql(statement).getJobClient().get())
        self._jobs.append(job)
        return job

    def close(self) -> None:
        """Ends the jobs that still run."""
        for job in self._jobs:
            job.cancel()


def _value(value):
    """What Python has no like of as text."""
    if isinstance(value, JavaArray):
        return [_value(each) for each in value]
    if isinstance(value, JavaMap):
        return {key: _value(value[key]) for key in value}
    return value.toString() if isinstance(value, JavaObject) else value


class Job:
    """A job that was started."""

    def __init__(self, flink: Flink, client):
        self._flink = flink
        self._client = client
        form = flink.jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
        self._savepoint = (f"file://{flink.folder}/savepoints", form)
        self.id = client.getJobID().toString()

    def stop(self) -> str:
        """Ends the job with a last checkpoint, and returns where that is, for SAVED."""
        return self._client.stopWithSavepoint(False, *self._savepoint).get()

    def restarts(self) -> int:
        """How often the job went on from a checkpoint of its own or of another job."""
        graph = self._flink.cluster.getExecutionGraph(self._client.getJobID()).get()
        return graph.getCheckpointStatsSnapshot().getCounts().getNumberOfRestoredCheckpoints()

    def cancel(self) -> None:
        """Ends the job where it is, if it did not end yet."""
        if not self._client.getJobStatus().get().isGloballyTerminalState():
            self._client.cancel().get()


class Feed:
    """A folder that a job reads as files come to it: the rows that a test hands to the job."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._files = 0

    def declare(self, session: Session, columns: str, form: str = "json") -> str:
        """Makes the feed a table of the session, and returns the table's name."""
        name = "default_catalog.default_database.feed"
        session.run(
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector' = 'filesystem', "
            f"'path' = 'file://{self._folder}', 'format' = '{form}', 'source.monitor-interval' = '100ms')"
        )
        return name

    def put(self, *rows: dict) -> None:
        """Hands over rows, in one file."""
        self._files += 1
        hidden = self._folder / f".{self._files}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(self._folder / f"{self._files}.json")


def checkpoints(table) -> dict[str, list[int]]:
    """The checkpoints that were committed to a PyIceberg table, of each job, in the order of the table's history.

    Fails if a number comes twice or after a higher one: that is a checkpoint that was committed twice.
    """
    found: dict[str, list[int]] = {}
    for snapshot in line(table):
        summary = snapshot.summary.additional_properties
        if "flink.job-id" in summary:
            found.setdefault(summary["flink.job-id"], []).append(int(summary["flink.max-committed-checkpoint-id"]))
    for job, numbers in found.items():
        assert numbers == sorted(set(numbers)), f"job {job} committed the checkpoints {numbers}"
    return found
