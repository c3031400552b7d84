"""The files of tables on local disks, for tests that look at what is there.

`s3.Server` and `gcs.Server` answer the same questions about a bucket.
"""

import re
from pathlib import Path


class Folder:
    """Local disks. Clients need to know nothing to reach them."""

    in_s3 = False
    # What the jars are called that Java clients need for these files; empty: none.
    kind = ""
    client_properties: dict[str, str] = {}
    variables: dict[str, str] = {}

    def path(self, location: str) -> str:
        """One spelling of file:/x, file:///x and /x."""
        return "/" + re.sub(r"^file:", "", location).lstrip("/")

    def list(self, location: str) -> list[str]:
        """The files at a location or below it, as paths."""
        top = Path(self.path(location))
        return sorted(str(path) for path in [top, *top.rglob("*")] if path.is_file())
