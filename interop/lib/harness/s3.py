"""Separate S3 servers for each test: SeaweedFS (scripts/s3server.py) and MinIO (scripts/minioserver.py)."""

import re

from harness.doubles import Scripted

# The only keys of the script's server.
ACCESS_KEY_ID = "moorage-test"
SECRET_ACCESS_KEY = "moorage-test-secret"
REGION = "us-east-1"

BUCKET = "lake"
WAREHOUSE = f"s3://{BUCKET}/warehouse"

# Only a hanging server takes this long.
SECONDS_MAX = 60


class Server(Scripted):
    """A running server with an empty bucket, as a context manager."""

    in_s3 = True
    kind = "s3"

    # The configuration that Iceberg clients need, with higher timeouts for PyIceberg than its few seconds. The rest
    # comes from the catalog.
    client_properties = {
        "s3.access-key-id": ACCESS_KEY_ID,
        "s3.secret-access-key": SECRET_ACCESS_KEY,
        "s3.connect-timeout": str(SECONDS_MAX),
        "s3.request-timeout": str(SECONDS_MAX),
    }
    # The same for clients that are configured by their environment.
    variables = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}

    script = "s3server.py"

    def make(self) -> None:
        self.make_bucket(BUCKET)

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def files(self):
        """The server's objects, as a PyArrow file system whose top folders are buckets."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key=ACCESS_KEY_ID,
            secret_key=SECRET_ACCESS_KEY,
            region=REGION,
            endpoint_override=self.url,
            allow_bucket_creation=True,
            connect_timeout=SECONDS_MAX,
            request_timeout=SECONDS_MAX,
        )

    def client(self, access_key: str = ACCESS_KEY_ID, secret_key: str = SECRET_ACCESS_KEY, session_token: str | None = None):
        """A boto3 client that makes each call once, without retries."""
        import botocore.config
        import botocore.session

        return botocore.session.get_session().create_client(
            "s3", region_name=REGION, endpoint_url=self.url, aws_access_key_id=access_key, aws_secret_access_key=secret_key,
            aws_session_token=session_token, config=botocore.config.Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
        )  # fmt: skip

    def make_bucket(self, name: str) -> None:
        self.files().create_dir(name)

    def path(self, location: str) -> str:
        """The BUCKET/KEY of s3://, s3a:// and s3n:// locations."""
        return re.sub(r"^s3[an]?://", "", location)

    def list(self, location: str) -> list[str]:
        """The objects at a location or below it, as BUCKET/KEY."""
        from pyarrow import fs

        files, path = self.files(), self.path(location)
        found = [files.get_file_info(path), *files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))]
        return sorted(info.path for info in found if info.type == fs.FileType.File)

    def settings(self) -> dict[str, str]:
        """The environment variables of a Moorage server whose default warehouse is WAREHOUSE on this server."""
        return {
            "MOORAGE_DEFAULT_LOCATION": WAREHOUSE,
            "MOORAGE_DEFAULT_STORAGE_OPTION": f"s3.endpoint={self.url} s3.region={REGION}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        }


class MinIO(Server):
    """MinIO, which issues credentials (AssumeRole) and enforces their policies."""

    script = "minioserver.py"


class WithoutKeys:
    """The files of a server, for clients without their own keys."""

    in_s3 = True
    kind = "s3"
    variables: dict[str, str] = {}
    client_properties = {name: value for name, value in Server.client_properties.items() if name.endswith("timeout")}

    def __init__(self, files: Server):
        self._files = files
        self.url = files.url
        self.list = files.list
        self.path = files.path
