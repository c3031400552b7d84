#!/usr/bin/env python3
"""Runs an S3 server for tests: SeaweedFS, on free ports of 127.0.0.1.

    interop/setup.sh s3                 once: installs it below .cache
    scripts/s3server.py [--data DIR]    DIR: where its files are; else a folder that is removed

Prints one line, its URL, when it answers. Ends when its standard input ends or on SIGTERM,
so that it outlives whoever started it by no more than a moment. Clients sign with the key
`moorage-test`, the secret `moorage-test-secret` and the region us-east-1; a bucket is there when it is made.
The server makes credentials (AssumeRole) at the same URL, for the role arn:aws:iam::000000000000:role/moorage.
"""

import base64
import json
import urllib.request
from pathlib import Path

import servers

ACCESS_KEY_ID = "moorage-test"
SECRET_ACCESS_KEY = "moorage-test-secret"
ROLE_ARN = "arn:aws:iam::000000000000:role/moorage"

# The parts that the server is made of; each listens on a port for HTTP and on one for gRPC.
PARTS = ["master", "volume", "filer", "s3"]

# A bucket gets two volumes at a time, not seven, which 140 buckets would use up. No option says it.
ENVIRONMENT = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "2"}

# Where each part listens besides, for the others; no option says that it should not, or where else.
SOCKETS = "/tmp/seaweedfs-{part}-grpc-{port}.sock"


class SeaweedFS(servers.Server):
    name = "SeaweedFS"
    program = servers.CACHE / "s3" / "bin" / "weed"
    part = "s3"

    def prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        numbers = servers.free_ports(2 * len(PARTS))
        ports = {part: (numbers[2 * i], numbers[2 * i + 1]) for i, part in enumerate(PARTS)}
        self.url = f"http://127.0.0.1:{ports['s3'][0]}"
        self._master = f"http://127.0.0.1:{ports['master'][0]}"
        self._sockets = [Path(SOCKETS.format(part=part, port=grpc)) for part, (_, grpc) in ports.items()]
        files = folder / "files"
        files.mkdir(exist_ok=True)
        config = folder / "identities.json"
        config.write_text(identities())
        config.with_name("policies.json").write_text(policies())
        return arguments(files, config, ports), ENVIRONMENT

    def ready(self) -> bool:
        """Whether its parts know one another, too: before, it refuses to write."""
        servers.answers(f"{self.url}/healthz")
        with urllib.request.urlopen(f"{self._master}/dir/status", timeout=servers.ANSWER_SECONDS_MAX) as answer:
            return json.load(answer)["Topology"]["Max"] > 0  # the volumes for which there is room

    def kill(self) -> None:
        super().kill()
        for path in self._sockets:
            path.unlink(missing_ok=True)


def identities() -> str:
    """Who may do what: one user, everything."""
    key = {"accessKey": ACCESS_KEY_ID, "secretKey": SECRET_ACCESS_KEY}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return json.dumps({"identities": [{"name": "test", "credentials": [key], "actions": actions}]})


def policies() -> str:
    """Lets the one user make credentials that a policy narrows (AssumeRole), for a role and without one."""
    anybody = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}
    everything = {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": ["*"]}
    role = {
        "roleName": "moorage",
        "roleArn": ROLE_ARN,
        "trustPolicy": {"Version": "2012-10-17", "Statement": [anybody]},
        "attachedPolicies": ["everything"],
    }
    return json.dumps(
        {
            "sts": {
                "tokenDuration": "1h",
                "maxSessionLength": "12h",
                "issuer": "moorage-test",
                "signingKey": base64.b64encode(b"a key for tests of 32 characters").decode(),
            },
            "policy": {"defaultEffect": "Deny", "storeType": "memory"},
            "policies": [
                {"name": "everything", "document": {"Version": "2012-10-17", "Statement": [everything]}},
            ],
            "roles": [role],
        }
    )


def arguments(files: Path, config: Path, ports: dict[str, tuple[int, int]]) -> list[str]:
    listed = [
        "-logtostderr=true",
        "server",
        f"-dir={files}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        f"-s3.config={config}",
        f"-s3.iam.config={config.with_name('policies.json')}",
        "-s3.iam=false",
        # A bucket that nobody made is missing, as it is everywhere else.
        "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        # It is alone.
        "-master.electionTimeout=1s",
        # Its volumes are files of this size, and a bucket takes two or more.
        "-master.volumeSizeLimitMB=64",
        "-volume.max=1000",
        # Its names must not be those of other servers on this machine.
        f"-filer.localSocket={files}/filer.sock",
        f"-s3.localSocket={files}/s3.sock",
    ]
    for part, (http, grpc) in ports.items():
        listed += [f"-{part}.port={http}", f"-{part}.port.grpc={grpc}"]
    return listed


if __name__ == "__main__":
    servers.main(__doc__, SeaweedFS)
