"""A separate Azure Storage emulator for each test, run by scripts/azureserver.py."""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

from harness import paths
from harness.doubles import Scripted

sys.path.insert(0, str(paths.REPOSITORY / "scripts"))

from azureserver import ACCOUNT, ACCOUNT_KEY

CONTAINER = "lake"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
WAREHOUSE = f"abfss://{CONTAINER}@{HOST}/warehouse"
API_VERSION = "2022-11-02"


class Server(Scripted):
    """A running emulator with an empty container, as a context manager."""

    script = "azureserver.py"
    in_s3 = False
    kind = "azure"
    variables: dict[str, str] = {}

    @property
    def client_properties(self) -> dict[str, str]:
        """The properties with which a Java client reaches the emulator, and its account."""
        return {
            f"adls.connection-string.{HOST}": self.url,
            "adls.auth.shared-key.account.name": ACCOUNT,
            "adls.auth.shared-key.account.key": ACCOUNT_KEY,
        }

    def make(self) -> None:
        urllib.request.urlopen(self._making_container()).close()

    def _making_container(self) -> urllib.request.Request:
        """A request that creates CONTAINER, signed with the account's key (Azure: Authorize with Shared Key)."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API_VERSION}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in sorted(headers.items()))]
        lines += [f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}", "restype:container"]
        signature = hmac.digest(base64.b64decode(ACCOUNT_KEY), "\n".join(lines).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
        return urllib.request.Request(f"{self.url}/{CONTAINER}?restype=container", method="PUT", headers=headers)

    def settings(self) -> dict[str, str]:
        """The environment variables of a Moorage server whose default warehouse is WAREHOUSE on this emulator."""
        return {
            "MOORAGE_DEFAULT_LOCATION": WAREHOUSE,
            "MOORAGE_DEFAULT_STORAGE_OPTION": f"adls.endpoint={self.url}",
            "AZURE_STORAGE_KEY": ACCOUNT_KEY,
        }
