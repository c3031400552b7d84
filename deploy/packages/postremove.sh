#!/bin/sh
# The data stays, also after a purge: it is a catalog, and perhaps the only copy of its tables. So does the user,
# to whom it belongs.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /etc/moorage
  if [ -d /var/lib/moorage ]; then
    rmdir /var/lib/moorage 2>/dev/null ||
      echo "moorage: the catalog in /var/lib/moorage stays; delete the folder if you need it no more"
  fi
fi
