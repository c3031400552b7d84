#!/usr/bin/env python3
"""Runs MinIO for tests, on a free port of 127.0.0.1.

    interop/setup.sh minio              once: builds it below .cache
    scripts/minioserver.py [--data DIR] DIR: where its files are; else a folder that is removed

Prints one line, its URL, when it answers. Ends when its standard input ends or on SIGTERM. Key, secret and region
are those of scripts/s3server.py. It makes credentials (AssumeRole) at the same URL, and needs no role.
"""

from pathlib import Path

import s3server
import servers


class MinIO(servers.Server):
    name = "MinIO"
    program = servers.CACHE / "minio" / "bin" / "minio"
    part = "minio"

    def prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        port, console = servers.free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        files = folder / "files"
        files.mkdir(exist_ok=True)
        settings = {
            "MINIO_ROOT_USER": s3server.ACCESS_KEY_ID,
            "MINIO_ROOT_PASSWORD": s3server.SECRET_ACCESS_KEY,
            "MINIO_REGION": "us-east-1",
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_CALLHOME_ENABLE": "off",
            "HOME": str(folder),
        }
        addresses = [f"--address=127.0.0.1:{port}", f"--console-address=127.0.0.1:{console}"]
        return ["server", "--quiet", *addresses, str(files)], settings

    def ready(self) -> bool:
        return servers.answers(f"{self.url}/minio/health/ready")


if __name__ == "__main__":
    servers.main(__doc__, MinIO)
