"""Drops and commits that are taken back by the management API, as moorage undrop and moorage rollback do it."""

import json
import urllib.parse
import urllib.request

SECONDS_MAX = 30


def undrop(running, namespace, name: str, **more) -> dict:
    """Brings a dropped table or view back; more are further members of the request."""
    return _post(running, "undrop", {"warehouse": running.warehouse, "namespace": list(namespace), "name": name, **more})


def rollback(running, namespace, name: str, to: str, kind: str = "table", **more) -> dict:
    """Takes a table or view back to an earlier version; more are further members of the request."""
    query = {"warehouse": running.warehouse, "namespace": "\x1f".join(namespace), kind: name}
    return _post(running, "rollback?" + urllib.parse.urlencode(query), {"to": to, **more})


def _post(running, path: str, body: dict) -> dict:
    request = urllib.request.Request(
        f"{running.uri}/management/v1/{path}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return json.load(answer)
