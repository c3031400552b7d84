"""A separate double of Google Cloud Storage for each test, run by scripts/gcsserver.py, without authentication."""

import json
import urllib.parse
import urllib.request

from harness.doubles import Scripted

BUCKET = "lake"
WAREHOUSE = f"gs://{BUCKET}/warehouse"


class Server(Scripted):
    """A running server with an empty bucket, as a context manager."""

    script = "gcsserver.py"
    in_s3 = False
    kind = "gcs"
    # Clients get their whole configuration from the catalog.
    client_properties: dict[str, str] = {}
    variables: dict[str, str] = {}

    def make(self) -> None:
        bucket = json.dumps({"name": BUCKET}).encode()
        urllib.request.urlopen(f"{self.url}/storage/v1/b?project=test", bucket).close()

    def path(self, location: str) -> str:
        """The BUCKET/NAME of a gs:// location."""
        return location.removeprefix("gs://")

    def list(self, location: str) -> list[str]:
        """The objects at a location or below it, as BUCKET/NAME."""
        bucket, _, name = self.path(location).partition("/")
        query = urllib.parse.urlencode({"prefix": name})
        with urllib.request.urlopen(f"{self.url}/storage/v1/b/{bucket}/o?{query}") as answer:
            names = [item["name"] for item in json.load(answer).get("items", [])]
        below = name.rstrip("/") + "/"
        return sorted(f"{bucket}/{each}" for each in names if each == name or each.startswith(below))

    def settings(self) -> dict[str, str]:
        """The environment variables of a Moorage server whose default warehouse is WAREHOUSE on this server."""
        return {
            "MOORAGE_DEFAULT_LOCATION": WAREHOUSE,
            "MOORAGE_DEFAULT_STORAGE_OPTION": f"gcs.service.host={self.url} gcs.no-auth=true",
        }
