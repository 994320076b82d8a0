#!/usr/bin/env bash
# mulciber tune: measures once, remembers, shows what it chose, forgets. MULCIBER comes from ctest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
export MULCIBER_CACHE=$work/cache MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/tests/data/gemma3
[[ -d $model ]] || fail "no model $model"

# No time limit: another test has rows that time leaves unmeasured.
tune=("$MULCIBER" tune -m "$model" --context 64 --seconds 3600)
"${tune[@]}" --json >first.json
"${tune[@]}" --json >second.json
"$MULCIBER" devices -v >devices.txt
python3 - <<'CHECK'
import json
first, second = (json.load(open(f"{n}.json")) for n in ("first", "second"))
assert first["kept"] and first["left"] == 0 and first["problems"], first
for p in first["problems"]:
    times = {c["row"]: c["milliseconds"] for c in p["candidates"]}
    assert len(times) > 1 and all(t > 0 for t in times.values()) and p["row"] in times, p
    # The table's first row stays unless another is clearly quicker.
    first_row = p["candidates"][0]["row"]
    assert p["row"] == first_row or times[p["row"]] <= 0.97 * times[first_row], p
assert not second["problems"] and second["known"] == len(first["problems"]), second
devices = open("devices.txt").read()
assert "chosen by measurement" in devices
for p in first["problems"]:
    assert f'{p["op"]} {p["activation"]} {p["weight"]}' in devices and p["row"] in devices, p
CHECK
"$MULCIBER" generate -m "$model" --context 64 -p "a" -n 2 --raw >/dev/null || fail "generate with choices"
"$MULCIBER" tune --forget | grep -q "choices forgotten" || fail "--forget"
"$MULCIBER" devices -v | grep -q "chosen by measurement" && fail "choices outlived --forget"
status=0
"$MULCIBER" tune >out 2>err || status=$?
if [[ $status != 2 ]] || ! grep -q "no model was named" err; then fail "without a model: $status $(cat err)"; fi
for wrong in "-m $model --forget" "-m $model --seconds 0" "-m $model --seconds inf" "-m $model --kv q9"; do
  status=0
  # shellcheck disable=SC2086 # words
  "$MULCIBER" tune $wrong >out 2>err || status=$?
  if [[ $status != 2 ]] || (($(wc -c <err) > 200)); then fail "tune $wrong: $status $(cat err)"; fi
done
"$MULCIBER" tune --forget --json | python3 -c 'import json, sys; assert json.load(sys.stdin) == {"forgotten": 0}'
MULCIBER_TUNE=1 "$MULCIBER" generate -v -m "$model" --context 64 -p "a" -n 2 --raw 2>err >/dev/null
grep -q "^tuned: " err || fail "MULCIBER_TUNE=1 measured nothing: $(cat err)"

"${tune[@]}" >/dev/null
MULCIBER_TUNE=1 "$MULCIBER" generate -v -m "$model" --context 64 -p "a" -n 2 --raw 2>err >/dev/null
if grep -q "^tuned: " err; then fail "nothing was left to measure: $(cat err)"; fi
# What has nowhere to be kept is not measured at every start.
MULCIBER_CACHE=$work/err/cache MULCIBER_TUNE=1 \
  "$MULCIBER" generate -v -m "$model" --context 64 -p "a" -n 2 --raw 2>other >/dev/null
if grep -q "^tuned: " other; then fail "measured without a folder: $(cat other)"; fi
echo passed
