#!/usr/bin/env bash
# `mulciber verify` passes the reference models and notices what is off; `inspect` reads every
# family. MULCIBER and MULCIBER_SOURCE come from ctest, MULCIBER_FIXTURES from whoever has the models.
set -euo pipefail
models=${MULCIBER_FIXTURES:-$MULCIBER_SOURCE/../shared/fixtures}/models
if [[ ! -d $models ]]; then
  echo "no reference models (set MULCIBER_FIXTURES)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/exits.bash"
cd "$work"
exec </dev/null

exits 0 "$MULCIBER" verify -m "$models/whisper" "$models/whisper/expected.safetensors"
grep -qE "^greedy0.*pass" out || fail "no text was compared"
for name in marian marian_realistic; do
  exits 0 "$MULCIBER" verify -m "$models/$name" "$models/$name/expected.safetensors"
  grep -qE '^beam.*pass' out || fail "no beam search was compared"
  grep -q ' 0 failed' out || fail "$(tail -n 1 out)"
done
marian=$models/marian
exits 0 "$MULCIBER" verify -m "$marian" --limits groups=8 "$marian/expected.safetensors"
exits 1 "$MULCIBER" verify -m "$marian" --tolerance 1e-12 "$marian/expected.safetensors"
exits 0 "$MULCIBER" verify -m "$marian" --json "$marian/expected.safetensors"
python3 -c 'import json; r = json.load(open("out")); assert r["passed"] > 10 and r["failed"] == 0' ||
  fail "verify --json"

mkdir nothing
cp "$marian/expected.safetensors" nothing/
echo '{"notes": {}, "cases": []}' >nothing/expected.json
exits 3 "$MULCIBER" verify -m "$marian" nothing/expected.safetensors
exits 2 "$MULCIBER" verify -m "$marian" no-such-file.safetensors

for folder in "$models"/*/; do
  exits 0 "$MULCIBER" inspect "$folder"
  [[ -s out ]] || fail "inspect $folder says nothing"
done
