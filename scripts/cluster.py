#!/usr/bin/env python3
"""Starts PostgreSQL, N nodes of Moorage over it and, with --s3, an S3 server; stops all of it on Ctrl-C.

    make cluster N=3
    .cache/interop/venv/bin/python scripts/cluster.py [--nodes N] [--s3]
"""

import argparse
import contextlib
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop" / "lib"))

from harness import cluster, s3, server  # noqa: E402


def describe(running: cluster.Cluster) -> str:
    lines = [f"Node {number + 1} is ready at {uri}" for number, uri in enumerate(running.uris)]
    lines += ["", f"Store      {running.dsn}", f"Logs       {running.folder}/node*.log"]
    extra = ""
    if running.files.in_s3:
        keys = f'"s3.access-key-id": "{s3.ACCESS_KEY_ID}", "s3.secret-access-key": "{s3.SECRET_ACCESS_KEY}"'
        lines.append(f"S3         {running.files.url}, bucket {s3.BUCKET}")
        extra = f", **{{{keys}}}"
    lines += ["", "PyIceberg, with any node:", "  from pyiceberg.catalog import load_catalog"]
    lines.append(f'  catalog = load_catalog("moorage", type="rest", uri="{running.uri}", warehouse="default"{extra})')
    lines += ["", "Ctrl-C stops all of it and removes its files."]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=3, metavar="N")
    parser.add_argument("--s3", action="store_true", help="keep the warehouse in a bucket rather than a folder")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with contextlib.ExitStack() as parts:
            bucket = parts.enter_context(s3.Server()) if options.s3 else None
            running = parts.enter_context(cluster.Cluster(options.nodes, s3=bucket))
            print(describe(running), flush=True)
            ended.wait()
        print("All of it has stopped.", flush=True)
    except server.ServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
