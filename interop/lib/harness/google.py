"""A test double of Google Cloud Storage with authentication, and Moorage that vends tokens for it."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from harness import paths
from harness.delegated import VENDED, Lake
from harness.doubles import Started


class Cloud(Started):
    """The double in testkit/fakecloud, as a context manager: it issues and downscopes tokens, and enforces
    their access.
    """

    in_s3 = False
    kind = "gcs"
    client_properties: dict[str, str] = {}
    variables: dict[str, str] = {}
    folder = paths.REPOSITORY / "testkit" / "fakecloud"

    def command(self) -> list[str]:
        program = paths.REPOSITORY / "bin" / "fakecloud.test"
        subprocess.run(["go", "test", "-c", "-o", str(program), "./testkit/fakecloud"], cwd=paths.REPOSITORY, check=True)
        return [str(program), "-test.run=TestServe", "-test.timeout=0", "-serve"]

    def use(self, line: str) -> None:
        if not line.startswith("{"):
            raise RuntimeError(f"the double of Google Cloud Storage did not start: {line}\n{self._child.stdout.read()}")
        told = json.loads(line)
        self.url, self.behind, self.location = told["url"], told["behind"], told["location"]
        self.arguments, self.environment = told["arguments"], told["environment"]

    def list(self, location: str) -> list[str]:
        """The names of the objects below a location."""
        bucket, _, name = location.removeprefix("gs://").partition("/")
        query = urllib.parse.urlencode({"prefix": f"{name}/"})
        with urllib.request.urlopen(f"{self.behind}/storage/v1/b/{bucket}/o?{query}") as answer:
            return sorted(item["name"] for item in json.load(answer).get("items", []))

    def status(self, token: str, method: str, path: str, query: dict[str, str] | None = None, body: bytes | None = None) -> int:
        """The status of the response to a request with a token."""
        url = f"{self.url}{path}?{urllib.parse.urlencode(query or {})}"
        request = urllib.request.Request(url, body, {"Authorization": f"Bearer {token}"}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code


class InGoogle(Lake):
    """A server whose warehouse `lake` is in a Cloud, and vends tokens for its tables."""

    name = "in Google Cloud Storage"

    def __init__(self, cloud: Cloud):
        super().__init__(cloud.arguments)
        self._env |= cloud.environment
        self.files = self.storage = cloud
        self._create = ["--location", cloud.location, "--delegation", VENDED, *cloud.arguments]
        for option in ("gcs.service.host", "gcs.sts.endpoint"):
            self._create += ["--storage-option", f"{option}={cloud.url}"]


def check_reach(cloud: Cloud, token: str, own: str, sibling: str) -> None:
    """Checks that a token gives access to one table's files, and that other files are refused with 403.

    own is the location of the token's table, and sibling of another table. Both tables have files.
    """
    bucket, _, folder = sibling.removeprefix("gs://").partition("/")
    objects = f"/storage/v1/b/{bucket}/o"

    def path(location: str) -> str:
        name = next(name for name in cloud.list(location) if name.endswith(".parquet"))
        return f"{objects}/{urllib.parse.quote(name, safe='')}"

    mine, foreign, before = path(own), path(sibling), cloud.list(sibling)
    assert cloud.status(token, "GET", mine, {"alt": "media"}) == 200
    assert cloud.status(token, "GET", objects, {"prefix": f"{own.removeprefix(f'gs://{bucket}/')}/"}) == 200
    for method, at, query in [
        ("GET", foreign, {"alt": "media"}),
        ("GET", foreign, {}),
        ("DELETE", foreign, {}),
        ("PATCH", foreign, {}),
        ("POST", f"/upload{objects}", {"uploadType": "media", "name": f"{folder}/data/more"}),
        ("GET", objects, {"prefix": folder}),
        ("GET", objects, {"prefix": f"{folder}/"}),
        ("GET", objects, {}),
        ("POST", f"{foreign}/rewriteTo/b/{bucket}/o/{mine.rpartition('/')[2]}2", {}),
    ]:
        got = cloud.status(token, method, at, query, b"{}" if method in ("POST", "PATCH") else None)
        assert got == 403, f"{method} {at} {query}: {got}"
    assert cloud.list(sibling) == before
