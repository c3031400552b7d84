#!/bin/sh
# Before the files come, of which some belong to the server's user.
set -e
getent group moorage >/dev/null || groupadd --system moorage
getent passwd moorage >/dev/null ||
  useradd --system --gid moorage --home-dir /var/lib/moorage --no-create-home --shell /usr/sbin/nologin moorage
