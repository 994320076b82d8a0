#!/usr/bin/env bash
# The page of `mulciber serve` in a browser: a question, the answer with its markdown, probabilities, attention, stopping
# and asking again, on a phone's screen too, without a request to anybody else. Needs Chromium. MULCIBER_SCREENSHOT=FOLDER:
# keeps screenshots of it.
set -euo pipefail
. "$(dirname "$0")/browser.bash"
. "$(dirname "$0")/server.bash"
chat_model chat
serve -m chat --tokens 300
timeout 900 python3 "$here/serve_page.py" "$browser" "$url"
stop_server
# A server that needs a key.
echo secret >keys
serve -m chat --tokens 300 --api-key-file keys
timeout 900 python3 "$here/serve_page.py" "$browser" "$url" secret
stop_server
