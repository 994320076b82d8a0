#!/usr/bin/env bash
# `mulciber perplexity`: chunks, forms of output, errors. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
model=$MULCIBER_SOURCE/tests/data/gemma3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"

printf 'The red hammer and the %d blue nails are here. ' {1..40} >text
exits 0 "$MULCIBER" perplexity -m "$model" --context 64 text
grep -q '^perplexity [0-9.]* +- [0-9.]* over [0-9]* tokens, the second halves of [0-9]* chunks of 64$' out || fail "$(cat out)"
exits 0 "$MULCIBER" perplexity -m "$model" --context 64 --chunks 2 --json - <text
python3 - <<'PYTHON' || fail "perplexity --json: $(cat out)"
import json
result = json.load(open("out"))
# Random weights are surprised: more than by chance among 420 ids.
assert result["chunks"] == 2 and result["tokens"] == 2 * 31 and result["perplexity"] > 420 and result["error"] > 0, result
PYTHON
# Without --context: 512, or what the model was made for.
exits 0 "$MULCIBER" perplexity -m "$model" text
grep -q 'second halves of [0-9]* chunks of 128$' out || fail "the model's own context: $(cat out)"
echo short >short
exits 2 "$MULCIBER" perplexity -m "$model" --context 64 short
grep -q 'two chunks of 64' err || fail "a text too short: $(cat err)"
exits 2 "$MULCIBER" perplexity -m "$model" --context 4096 text
exits 2 "$MULCIBER" perplexity -m "$model" nothing-here
exits 2 "$MULCIBER" perplexity -m "$MULCIBER_SOURCE/tests/data/marian" text
