#!/usr/bin/env bash
# Answers by many random JSON schemas are valid by them, as python3-jsonschema sees it. MULCIBER and MULCIBER_SOURCE
# come from ctest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/exits.bash"
. "$here/server.bash"
python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || { echo "skipped: python3-jsonschema is not installed"; exit 77; }
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -KILL $server; rm -rf "$work"' EXIT
cd "$work"
exec </dev/null
chat_model chat
serve -m chat --sequences 8
python3 "$here/serve_schemas.py" "$url" "${SCHEMAS:-150}" || fail "answers by schemas"
stop_server
