"""An HTTP proxy in front of one or several nodes, which records requests and can drop responses."""

import http.client
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

NODE_SECONDS_MAX = 120

# A single-table commit.
COMMIT = re.compile(r"^POST .*/namespaces/[^/]+/tables/[^/?]+$")

# Headers of a single connection, which are not forwarded.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(frozen=True)
class Exchange:
    """A request, the node that it went to, and the node's response."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    node: str
    status: int
    answer: bytes

    def names(self) -> list[str]:
        """The names of the tables in a multi-table commit, in the order of the request."""
        return [change["identifier"]["name"] for change in json.loads(self.body)["table-changes"]]


class Proxy:
    """A proxy on a loopback port in front of a running server, as a context manager; clients use it as the server.

    Each request goes to the next node of a cluster. So a client can read from one node after a change on
    another, unlike a client connected to one node.

    beside is the number of other clients that commit to the same table with each commit through the proxy.
    Each sets its own property, "beside0" and so on. They get their responses before the commit gets its own.
    """

    def __init__(self, server, beside: int = 0):
        self._beside = beside
        self.warehouse = server.warehouse
        self.files = server.files
        self.uri = ""
        self._nodes = server
        self._mutex = threading.Lock()  # guards the fields below
        self._seen: list[Exchange] = []
        self._lost: list[tuple[Callable[[Exchange], bool], Callable[[BaseHTTPRequestHandler], None]]] = []

    def __getattr__(self, name: str):
        return getattr(self._nodes, name)  # other attributes are the server's

    def __enter__(self) -> "Proxy":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True  # a client may keep its connection open forever
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.uri = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def seen(self) -> list[Exchange]:
        """The exchanges so far, in the order of the nodes' responses."""
        with self._mutex:
            return list(self._seen)

    def posts(self, end: str) -> list[Exchange]:
        """The exchanges of POST requests whose path has this ending."""
        return [exchange for exchange in self.seen if exchange.method == "POST" and exchange.path.endswith(end)]

    def lose(self, which: Callable[[Exchange], bool], instead: Callable[[BaseHTTPRequestHandler], None]) -> None:
        """Drops the next response for which the function `which` returns true.

        The client gets the response from `instead`, which is one of the functions below.
        """
        with self._mutex:
            self._lost.append((which, instead))

    def _commits_beside(self, path: str) -> list[threading.Thread]:
        """Starts the other clients' commits, for a commit to path."""

        def commit(number: int) -> None:
            with self._mutex:
                node = self._nodes.uri
            update = {"action": "set-properties", "updates": {f"beside{number}": "yes"}}
            connection = http.client.HTTPConnection(urlsplit(node).netloc, timeout=NODE_SECONDS_MAX)
            try:
                body = json.dumps({"requirements": [], "updates": [update]})
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                connection.getresponse().read()  # any status is fine: the table may not exist yet
            finally:
                connection.close()

        threads = [threading.Thread(target=commit, args=(number,), daemon=True) for number in range(self._beside)]
        for thread in threads:
            thread.start()
        return threads

    def _judge(self, exchange: Exchange) -> Callable[[BaseHTTPRequestHandler], None] | None:
        with self._mutex:
            self._seen.append(exchange)
            for number, (which, instead) in enumerate(self._lost):
                if which(exchange):
                    del self._lost[number]
                    return instead
        return None

    def _handler(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with proxy._mutex:
                    node = proxy._nodes.uri
                headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
                commit = COMMIT.match(f"{self.command} {self.path}")
                others = proxy._commits_beside(self.path) if commit else []
                connection = http.client.HTTPConnection(urlsplit(node).netloc, timeout=NODE_SECONDS_MAX)
                try:
                    connection.request(self.command, self.path, body, headers)
                    answer = connection.getresponse()
                    content = answer.read()
                finally:
                    connection.close()
                    for other in others:
                        other.join()
                lower = {name.lower(): value for name, value in headers.items()}
                instead = proxy._judge(Exchange(self.command, self.path, lower, body, node, answer.status, content))
                if instead:
                    instead(self)
                    return
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                if answer.status != http.client.NO_CONTENT:
                    length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
                    self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_DELETE = do_PUT = forward

            def log_message(self, *_) -> None:
                pass

        return Handler


def unavailable(handler: BaseHTTPRequestHandler) -> None:
    """Answers 503 with Retry-After, as a load balancer may do for a lost node."""
    _answer(handler, 503, {"Retry-After": "1"})


def bad_gateway(handler: BaseHTTPRequestHandler) -> None:
    """Answers 502, which leaves the outcome open."""
    _answer(handler, 502, {})


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Closes the connection without a response."""
    handler.close_connection = True


def _answer(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
    handler.send_response_only(status)
    for name, value in {**headers, "Content-Length": "0"}.items():
        handler.send_header(name, value)
    handler.end_headers()
