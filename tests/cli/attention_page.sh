#!/usr/bin/env bash
# The attention page of a language model in a browser: maps, windows, the small maps and the keyboard. Needs Chromium.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
. "$here/exits.bash"
. "$here/browser.bash"
cd "$work"
exec </dev/null
exits 0 "$MULCIBER" generate -m "$MULCIBER_SOURCE/tests/data/gemma3" --ignore-end -p "$(printf 'The red hammer %.0s' {1..8})" -n 12 \
  --attention page.html
exits 0 timeout 900 python3 "$here/attention_page.py" "$browser" page.html
