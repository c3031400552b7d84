#!/bin/sh
# A server that runs goes on with the new version. A first installation starts nothing: first look at
# /etc/moorage/moorage.yaml, then systemctl enable --now moorage
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart moorage.service
fi
