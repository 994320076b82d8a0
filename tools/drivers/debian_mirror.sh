#!/usr/bin/env bash
# Prints the Debian mirror to fetch packages from: MULCIBER_DEBIAN_MIRROR, or the one that this
# machine's own apt sources name. Exits 1 without output where there is none (as on Ubuntu).
set -euo pipefail

if [[ -n ${MULCIBER_DEBIAN_MIRROR:-} ]]; then
  echo "${MULCIBER_DEBIAN_MIRROR%/}"
  exit 0
fi
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
    2>/dev/null | grep -v '^[[:space:]]*#' |
  grep -oE 'https?://[^[:space:]]+/debian/?([[:space:]]|$)' | head -n 1 | tr -d '[:space:]') || true
[[ -n $mirror ]] || exit 1
echo "${mirror%/}"
