#!/usr/bin/env bash
# The page of `mulciber conform --html` can be read with the keyboard alone: every control is reached by Tab and shows it,
# and does what a click does. Needs Chromium.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
. "$here/exits.bash"
. "$here/browser.bash"
cd "$work"
exits 0 "$MULCIBER" conform --filter 'mulciber.softmax.*' --filter 'mulciber.layer_norm.*' --fraction 0,8 --repeat 1 --html page.html
exits 0 timeout 900 python3 "$here/page.py" "$browser" page.html
