"""Operations of the management API: undrop and rollback, as by the moorage commands, and labels."""

import json
import urllib.parse
import urllib.request

SECONDS_MAX = 120


def undrop(running, namespace, name: str, **more) -> dict:
    """Restores a dropped table or view; more are additional members of the request."""
    return _send(running, "POST", "undrop", {}, {"warehouse": running.warehouse, "namespace": list(namespace), "name": name, **more})


def rollback(running, namespace, name: str, to: str, kind: str = "table") -> dict:
    """Rolls a table or view back to an earlier version."""
    return _send(running, "POST", "rollback", _object(running, namespace, name, kind), {"to": to})


def put_labels(running, namespace, name: str, labels: dict, fields: dict[int, dict]) -> dict:
    """Sets the labels of a table, and of its fields by ID."""
    body = {"object-labels": labels, "fields": [{"field-id": key, "labels": value} for key, value in fields.items()]}
    return _send(running, "PUT", "labels", _object(running, namespace, name, "table"), body)


def _object(running, namespace, name: str, kind: str) -> dict:
    return {"warehouse": running.warehouse, "namespace": "\x1f".join(namespace), kind: name}


def _send(running, method: str, path: str, query: dict, body: dict) -> dict:
    request = urllib.request.Request(
        f"{running.uri}/management/v1/{path}?{urllib.parse.urlencode(query)}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return json.load(answer)
