"""The files of tables on local disks, for tests that check which files exist.

`s3.Server` and `gcs.Server` have the same methods for buckets.
"""

import re
from pathlib import Path


class Folder:
    """Local disks. Clients need no configuration for them."""

    in_s3 = False
    # The name of the jars that Java clients need for these files; empty: none.
    kind = ""
    client_properties: dict[str, str] = {}
    variables: dict[str, str] = {}

    def path(self, location: str) -> str:
        """A single spelling for file:/x, file:///x and /x."""
        return "/" + re.sub(r"^file:", "", location).lstrip("/")

    def list(self, location: str) -> list[str]:
        """The paths of the files at a location or below it."""
        top = Path(self.path(location))
        return sorted(str(path) for path in [top, *top.rglob("*")] if path.is_file())
