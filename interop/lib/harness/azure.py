"""An emulator of Azure Storage of a test's own, by scripts/azureserver.py."""

import base64
import hashlib
import hmac
import subprocess
import sys
import urllib.request
from email.utils import formatdate

from harness import paths

sys.path.insert(0, str(paths.REPOSITORY / "scripts"))

from azureserver import ACCOUNT, ACCOUNT_KEY

CONTAINER = "lake"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
WAREHOUSE = f"abfss://{CONTAINER}@{HOST}/warehouse"
API_VERSION = "2022-11-02"


class Server:
    """A running emulator with an empty container, as a context manager."""

    in_s3 = False
    kind = "azure"
    variables: dict[str, str] = {}

    def __init__(self):
        self.url = ""

    @property
    def client_properties(self) -> dict[str, str]:
        """What a client of Java must know to reach the emulator, and who it is there."""
        return {
            f"adls.connection-string.{HOST}": self.url,
            "adls.auth.shared-key.account.name": ACCOUNT,
            "adls.auth.shared-key.account.key": ACCOUNT_KEY,
        }

    def __enter__(self) -> "Server":
        self._child = subprocess.Popen(
            [sys.executable, str(paths.REPOSITORY / "scripts" / "azureserver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for whoever stops it in order
        )
        self.url = self._child.stdout.readline().strip()
        if not self.url:
            raise RuntimeError("the emulator of Azure Storage did not start: its reason is above")
        urllib.request.urlopen(self._making_container()).close()
        return self

    def __exit__(self, *_) -> None:
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()

    def _making_container(self) -> urllib.request.Request:
        """A request that makes CONTAINER, signed with the account's key (Azure: Authorize with Shared Key)."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API_VERSION}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in sorted(headers.items()))]
        lines += [f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"]
        signature = hmac.digest(base64.b64decode(ACCOUNT_KEY), "\n".join(lines).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
        return urllib.request.Request(f"{self.url}/{CONTAINER}?restype=container", method="PUT", headers=headers)

    def settings(self) -> dict[str, str]:
        """Variables of a Moorage server whose default warehouse is WAREHOUSE, on this emulator."""
        return {
            "MOORAGE_DEFAULT_LOCATION": WAREHOUSE,
            "MOORAGE_ADLS_ENDPOINT": self.url,
            "MOORAGE_ADLS_ACCOUNT_KEY": ACCOUNT_KEY,
        }
