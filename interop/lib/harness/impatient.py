"""A proxy in front of MinIO whose credentials expire within seconds. MinIO's own live for at least 15 minutes."""

import http.client
import math
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from harness import s3
from harness.proxy import HOP_BY_HOP, NODE_SECONDS_MAX

# Amazon sends this with status 400.
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"


def read_chunks(file):
    """The chunks of a body without a length. PyArrow sends the parts of an upload in this form."""
    while size := int(file.readline().partition(b";")[0], 16):
        yield file.read(size)
        file.readline()
    while file.readline().strip():  # trailers after the body
        pass


class Impatient:
    """A proxy on a loopback port, as a context manager. It looks like the S3 server behind it.

    The responses to AssumeRole say that a credential expires in told_seconds. The proxy refuses a credential
    that is older than lives_seconds, as S3 refuses an expired one. It also refuses all credentials older than
    a call of `end`. Java clients renew a credential when a minute is left.
    """

    def __init__(self, files, told_seconds: float, lives_seconds: float = math.inf):
        self._files = files
        self._told_seconds, self._lives_seconds = told_seconds, lives_seconds
        self._mutex = threading.Lock()  # guards the fields below
        self._ends: dict[str, float] = {}  # by access key: its expiry on the monotonic clock
        self._refused: list[str] = []

    def __getattr__(self, name: str):
        return getattr(self._files, name)

    def __enter__(self) -> "Impatient":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def client(self, *keys: str):
        """A client of the proxy."""
        return s3.Server.client(self, *keys)

    @property
    def refused(self) -> list[str]:
        """The access keys of the requests that were refused as expired."""
        with self._mutex:
            return list(self._refused)

    def end(self) -> None:
        """Expires every credential issued so far."""
        with self._mutex:
            self._ends = dict.fromkeys(self._ends, -math.inf)

    def _is_old(self, authorization: str) -> bool:
        found = re.search(r"Credential=([^/]+)/", authorization)
        with self._mutex:
            old = found is not None and time.monotonic() > self._ends.get(found.group(1), math.inf)
            if old:
                self._refused.append(found.group(1))
        return old

    def _shorten(self, answer: bytes) -> bytes:
        """Records a lifetime for the credential in an AssumeRole response, and replaces the expiration in the response.
        """
        with self._mutex:
            key = re.search(rb"<AccessKeyId>([^<]+)<", answer).group(1).decode()
            self._ends[key] = time.monotonic() + self._lives_seconds
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self._told_seconds))
        return re.sub(rb"<Expiration>[^<]*<", f"<Expiration>{end}<".encode(), answer)

    def _handler(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def forward(self) -> None:
                chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
                body = b"".join(read_chunks(self.rfile)) if chunked else self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if proxy._is_old(self.headers.get("Authorization", "")):
                    self._answer(400, [("Content-Type", "application/xml")], EXPIRED)
                    return
                connection = http.client.HTTPConnection(urlsplit(proxy._files.url).netloc, timeout=NODE_SECONDS_MAX)
                try:
                    # The client signed the proxy's host name, so keep it.
                    connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        if name.lower() not in HOP_BY_HOP - {"host", "content-length", "transfer-encoding"} | {"expect"}:
                            connection.putheader(name, value)
                    connection.endheaders([body] if chunked else body, encode_chunked=chunked)
                    answer = connection.getresponse()
                    content = answer.read()
                finally:
                    connection.close()
                if b"<AssumeRoleResponse" in content:
                    content = proxy._shorten(content)
                headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP]
                length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else None
                self._answer(answer.status, headers, content, length)

            def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                if status != http.client.NO_CONTENT:
                    self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_DELETE = do_PUT = forward

            def log_message(self, *_) -> None:
                pass

        return Handler
