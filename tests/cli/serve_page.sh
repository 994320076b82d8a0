#!/usr/bin/env bash
# The page of `mulciber serve` in a browser: a question, the answer with its markdown, probabilities, attention, stopping
# and asking again, on a phone's screen too, without a request to anybody else. Needs Chromium. MULCIBER_SCREENSHOT=FOLDER:
# keeps pictures of it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/exits.bash"
. "$here/browser.bash"
. "$here/server.bash"
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -KILL $server 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
exec </dev/null
chat_model chat
serve -m chat --tokens 300
timeout 120 python3 "$here/serve_page.py" "$browser" "$url"
stop_server
