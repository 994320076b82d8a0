#!/usr/bin/env bash
# `mulciber generate`: the answer of the small model, its pieces, limits and errors. MULCIBER and
# MULCIBER_SOURCE come from ctest.
set -euo pipefail
model=$MULCIBER_SOURCE/tests/data/gemma3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"
exec </dev/null
generate() { exits 0 "$MULCIBER" generate -m "$model" --ignore-end "$@"; }

generate -p "The red hammer" -n 12
[[ -s out ]] || fail "no answer"
cp out wanted
for steps in 1 5; do
  generate -p "The red hammer" -n 12 --steps-per-submission "$steps"
  cmp -s out wanted || fail "another answer with $steps steps per submission"
done
printf 'The red hammer' >prompt.txt
generate --prompt-file prompt.txt -n 12
cmp -s out wanted || fail "another answer from a file"

generate -p "The red hammer" -n 12 --json --stats
python3 - <<'PYTHON' || fail "generate --json"
import json
answer, wanted = json.load(open("out")), open("wanted", "rb").read().decode("utf-8", "replace")
assert answer["text"] + "\n" == wanted and len(answer["ids"]) == 12 and answer["end"] == "token limit"
s = answer["statistics"]
assert s["new_tokens"] == 12 and s["decode_tps"] > 0 and s["prefill_tps"] > 0
assert s["predicted_device_bytes"] * 1.1 >= s["weight_bytes"] > 0
PYTHON

generate -p "The red hammer" --context 24
grep -q 'context of 24 tokens is full' err || fail "a full context goes unsaid"
exits 2 "$MULCIBER" generate -m "$model" -p "$(printf 'word %.0s' {1..200})" --context 24
grep -q 'context of 24' err || fail "a prompt too long: $(cat err)"
exits 2 "$MULCIBER" generate -m "$model"
exits 2 "$MULCIBER" generate -m "$model" -p x --context 1000000
exits 2 "$MULCIBER" generate -m "$MULCIBER_SOURCE/tests/data/marian" -p x
grep -q 'marian' err || fail "a model that does not continue texts: $(cat err)"
exits 2 "$MULCIBER" translate -m "$model" x

exits 0 "$MULCIBER" bench -m "$model" -p 9 -n 4 -r 1 --json
python3 -c 'import json; r = json.load(open("out")); assert r["prefill_tps"] > 0 and r["decode_tps"] > 0 and r["kernels"]' ||
  fail "bench -m"
