#!/usr/bin/env bash
# Answers by many random JSON schemas are valid by them, as python3-jsonschema sees it. MULCIBER and MULCIBER_SOURCE
# come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2>/dev/null || { echo "skipped: python3-jsonschema is not installed"; exit 77; }
chat_model chat
serve -m chat --sequences 8
python3 "$here/serve_schemas.py" "$url" "${SCHEMAS:-150}" || fail "answers by schemas"
stop_server
