"""Flink: a cluster in a separate JVM, and SQL sessions in it.

The JVM is controlled through Py4J, a dependency of Spark's package. Flink's own Python package would be four
times the size of the jars, and pins versions of other packages.
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
# Flink's default configuration opens these packages of java.base.
OPEN_PACKAGES = [
    *("java.io", "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.text", "java.time", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks", "sun.nio.ch"),
]
STOP_SECONDS_MAX = 60

# The S3 client keeps the class loader of the first job that used it. Flink reports that as a leak when the job is over.
CLASS_LOADING = {"classloader.check-leaked-classloader": "false"}

BATCH = {"execution.runtime-mode": "BATCH", "table.dml-sync": "true"}
STREAMING = {
    "execution.runtime-mode": "STREAMING",
    # A job commits at each checkpoint.
    "execution.checkpointing.interval": "200ms",
    # It restarts at once after every failure: the tests are not about restart delays.
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "200ms",
}

# The setting with which a session's jobs resume from a stopped job's savepoint.
SAVED = "execution.state-recovery.path"


class Flink:
    """A cluster as a context manager. folder contains its log and the state of its jobs."""

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
        # The planner's state is per thread. launch_gateway's server may use any thread for a caller; this one gives
        # each caller its own thread.
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
        """A SQL session whose current catalog `ice` is the server, with additional properties.

        The settings are BATCH or STREAMING, plus others.
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
        """Stops all task managers and their tasks, and starts new ones.

        A task that waits for a response ends when it gets one.
        """
        for _ in range(TASK_MANAGERS):
            self.cluster.startTaskManager()
            self.cluster.terminateTaskManager(self._lost)
            self._lost += 1


def catalog(name: str, server, **more: str) -> str:
    """The statement that adds the server to a session as a catalog with this name."""
    # Each statement asks the server; a cached table would hide the server's responses.
    settings = {"type": "iceberg", "catalog-type": "rest", "cache-enabled": "false", **clients.java_properties(server), **more}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    return f"CREATE CATALOG {name} WITH ({options})"


class Session:
    """A SQL session, for use only by the thread that created it."""

    def __init__(self, flink: Flink, environment):
        self._flink = flink
        self._environment = environment
        self._jobs: list[Job] = []

    def run(self, statement: str) -> list[tuple]:
        """Runs a statement to its end and returns its rows, in order of arrival."""
        with self.read(statement) as rows:
            return list(rows)

    @contextlib.contextmanager
    def read(self, statement: str) -> Iterator[Iterator[tuple]]:
        """A context manager that yields the rows of a query. Leaving it stops the query, which may be unbounded."""
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
        """Starts an INSERT. With STREAMING settings, it does not wait for the end."""
        job = Job(self._flink, self._environment.executeSql(statement).getJobClient().get())
        self._jobs.append(job)
        return job

    def close(self) -> None:
        """Stops the jobs that still run."""
        for job in self._jobs:
            job.cancel()


def _value(value):
    """A value for Python; types without a Python counterpart become text."""
    if isinstance(value, JavaArray):
        return [_value(each) for each in value]
    if isinstance(value, JavaMap):
        return {key: _value(value[key]) for key in value}
    return value.toString() if isinstance(value, JavaObject) else value


class Job:
    """A started job."""

    def __init__(self, flink: Flink, client):
        self._flink = flink
        self._client = client
        form = flink.jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
        self._savepoint = (f"file://{flink.folder}/savepoints", form)
        self.id = client.getJobID().toString()

    def stop(self) -> str:
        """Stops the job with a savepoint, and returns the savepoint's path, for SAVED."""
        return self._client.stopWithSavepoint(False, *self._savepoint).get()

    def restarts(self) -> int:
        """The number of times that the job resumed from a checkpoint of its own or of another job."""
        graph = self._flink.cluster.getExecutionGraph(self._client.getJobID()).get()
        return graph.getCheckpointStatsSnapshot().getCounts().getNumberOfRestoredCheckpoints()

    def cancel(self) -> None:
        """Cancels the job, unless it has ended already."""
        if not self._client.getJobStatus().get().isGloballyTerminalState():
            self._client.cancel().get()


class Feed:
    """A folder whose new files a job reads: a test passes rows to the job through it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._files = 0

    def declare(self, session: Session, columns: str, form: str = "json") -> str:
        """Declares the feed as a table in the session, and returns the table's name."""
        name = "default_catalog.default_database.feed"
        session.run(
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector' = 'filesystem', "
            f"'path' = 'file://{self._folder}', 'format' = '{form}', 'source.monitor-interval' = '100ms')"
        )
        return name

    def put(self, *rows: dict) -> None:
        """Passes rows to the job, in one file."""
        self._files += 1
        hidden = self._folder / f".{self._files}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(self._folder / f"{self._files}.json")


def checkpoints(table) -> dict[str, list[int]]:
    """The checkpoints of each job that were committed to a PyIceberg table, in the order of the table's history.

    Fails if a number is repeated or follows a higher one: that checkpoint was committed twice.
    """
    found: dict[str, list[int]] = {}
    for snapshot in line(table):
        summary = snapshot.summary.additional_properties
        if "flink.job-id" in summary:
            found.setdefault(summary["flink.job-id"], []).append(int(summary["flink.max-committed-checkpoint-id"]))
    for job, numbers in found.items():
        assert numbers == sorted(set(numbers)), f"job {job} committed the checkpoints {numbers}"
    return found
