"""Several Moorage nodes over one PostgreSQL database and a shared warehouse, without a load balancer.

The warehouse is in a shared folder or in a bucket of an S3 server.
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness import server
from harness.files import Folder
from harness.s3 import Server as S3

POSTGRES_PROGRAMS = "/usr/lib/postgresql"
POLL_SECONDS = 0.1


def _programs() -> Path:
    """The folder with initdb and postgres of the newest installed version."""
    found = sorted(Path(POSTGRES_PROGRAMS).glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    if initdb is None:
        raise server.ServerError("PostgreSQL is not installed: run scripts/packages.sh")
    return Path(initdb).parent


class Postgres:
    """A PostgreSQL server with its files below folder."""

    def __init__(self, folder: Path):
        self._data = folder / "postgres"
        self._log = folder / "postgres.log"
        self._port = server.free_port()
        self.address = f"127.0.0.1:{self._port}"  # its user is moorage, without a password, and its database postgres
        # Only a hanging connection takes this long.
        self.dsn = f"postgres://moorage@127.0.0.1:{self._port}/postgres?sslmode=disable&connect_timeout=60"

    def __enter__(self) -> "Postgres":
        programs = _programs()
        self._data.mkdir()
        user = None
        if os.getuid() == 0:  # postgres refuses to run as root
            user = pwd.getpwnam("postgres").pw_uid
            os.chown(self._data, user, -1)
        initdb = [str(programs / "initdb"), f"--pgdata={self._data}", "--auth=trust", "--username=moorage", "--encoding=UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)
        command = [str(programs / "postgres"), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(self._port), "-k", ""]
        with self._log.open("w") as log:
            self._child = subprocess.Popen(command, user=user, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, process_group=0)
        deadline = time.monotonic() + server.START_SECONDS_MAX
        ready = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        while subprocess.run(ready, cwd="/").returncode != 0:
            if time.monotonic() > deadline or self._child.poll() is not None:
                self.__exit__()
                raise server.ServerError(f"PostgreSQL did not start:\n{self._log.read_text()}")
            time.sleep(POLL_SECONDS)
        return self

    def __exit__(self, *_) -> None:
        self._child.send_signal(2)  # SIGINT: fast shutdown
        try:
            self._child.wait(server.STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server in a fresh folder, which goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="moorage-postgres-"))
    folder.chmod(0o755)  # PostgreSQL may run as another user
    try:
        with Postgres(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder)


class Cluster:
    """Several processes of `moorage serve`; nodes is their number. Use it as a context manager.

    Leaving the block stops them with SIGTERM. It requires exit status 0 of each and a clean `moorage doctor
    --deep`.
    """

    warehouse = "default"
    name = "cluster"

    def __init__(self, nodes: int = 3, arguments: list[str] | None = None, s3: S3 | None = None):
        self.binary = server.build()
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-cluster-"))
        self.folder.chmod(0o755)  # PostgreSQL may run as another user
        self.uris: list[str] = []
        self.files = s3 or Folder()
        self._env = server.environment(s3)
        self._nodes = nodes
        self._arguments = arguments or []
        self._turn = itertools.count()
        self._parts = ExitStack()
        self._processes: list[server.Process] = []

    @property
    def uri(self) -> str:
        """The address of one node, the next one at each call. So connections are spread over the nodes."""
        return self.uris[next(self._turn) % len(self.uris)]

    @property
    def log(self) -> Path:
        return self._processes[0].log

    def __enter__(self) -> "Cluster":
        with ExitStack() as parts:
            self.dsn = parts.enter_context(Postgres(self.folder)).dsn
            store = ["--store", self.dsn, "--data", str(self.folder / "data")]
            command = [str(self.binary), "serve", *store, "--migrate", "--listen", "127.0.0.1:0", *self._arguments]
            self._check_command = [str(self.binary), "doctor", "--deep", *store]
            for number in range(self._nodes):
                process = server.Process(command, self.folder / f"node{number}.log", self._env)
                self._processes.append(process)
                parts.callback(process.kill)
                found = process.wait_for(r"ENDPOINT '(http://127\.0\.0\.1:[1-9]\d*)'", server.START_SECONDS_MAX)
                self.uris.append(found.group(1))
            self._parts = parts.pop_all()
        return self

    def __exit__(self, kind, *_) -> None:
        faults = []
        with self._parts:
            for process in self._processes:
                if not process.running():
                    faults.append(f"a node had ended by itself:\n{process.tail()}")
                elif (status := process.stop()) != 0:
                    faults.append(f"exit status {status} after SIGTERM:\n{process.tail()}")
            check = subprocess.run(self._check_command, env=self._env, capture_output=True, text=True, timeout=server.CHECK_SECONDS_MAX)
            if check.returncode != 0:
                faults.append(f"moorage doctor --deep: exit status {check.returncode}\n{check.stdout}{check.stderr}")
        if faults:
            raise server.ServerError("\n".join(faults + [f"its folder is kept: {self.folder}"]))
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"the cluster's folder is kept: {self.folder}")
