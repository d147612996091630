#!/bin/sh
# a build without the network but for one mirror
exec landrun --rox /usr,/lib --ro /etc \
  --rwx "$HOME/project" --rw=/tmp --connect-tcp 443,80 --bind-tcp 8080 \
  --env PATH --env 'GREETING=hi $USER' --best-effort --ldd --log-level debug \
  -- make -C "$HOME/project" --rw x
