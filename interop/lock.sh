#!/usr/bin/env bash
# Makes requirements.txt from requirements.in, and s3server.txt, psycopg.txt and aws.txt likewise:
# every package that they draw in, with its version and hashes, for Python 3.11 and later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
python3 -m venv "$tool"
"$tool/bin/python" -m pip install --quiet --disable-pip-version-check uv
for name in requirements s3server psycopg aws; do
  "$tool/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --custom-compile-command interop/lock.sh \
    --output-file "$name.txt" "$name.in"
done
