"""An S3 server of a test's own: scripts/s3server.py."""

import subprocess
import sys

from harness import paths

# What the script's server knows; it has no others.
ACCESS_KEY_ID = "moorage-test"
SECRET_ACCESS_KEY = "moorage-test-secret"
REGION = "us-east-1"


class Server:
    """A running server, as a context manager."""

    def __init__(self):
        self.url = ""

    def __enter__(self) -> "Server":
        self._child = subprocess.Popen(
            [sys.executable, str(paths.REPOSITORY / "scripts" / "s3server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for whoever stops it in order
        )
        self.url = self._child.stdout.readline().strip()
        if not self.url:
            raise RuntimeError("the S3 server did not start: its reason is above")
        return self

    def __exit__(self, *_) -> None:
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def files(self):
        """The server's objects, as a file system of PyArrow's whose top folders are buckets."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key=ACCESS_KEY_ID,
            secret_key=SECRET_ACCESS_KEY,
            region=REGION,
            endpoint_override=self.url,
            allow_bucket_creation=True,
        )

    def make_bucket(self, name: str) -> None:
        self.files().create_dir(name)

    def keys(self, folder: str) -> list[str]:
        """The objects below bucket/folder."""
        from pyarrow import fs

        found = self.files().get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
        return sorted(info.path for info in found if info.type == fs.FileType.File)

    def settings(self, location: str) -> dict[str, str]:
        """Variables of a Moorage server whose default warehouse is at location, on this server."""
        return {
            "MOORAGE_DEFAULT_LOCATION": location,
            "MOORAGE_S3_ENDPOINT": self.url,
            "MOORAGE_S3_REGION": REGION,
            "MOORAGE_S3_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "MOORAGE_S3_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        }
