#!/usr/bin/env bash
# inspect and verify: what they print, and their exit codes on good, wrong and hostile input.
set -euo pipefail
data=$MULCIBER_SOURCE/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
# expect CODE COMMAND...: the exit code; standard output and error go to out and err.
expect() {
  local code=$1 status=0
  shift
  timeout 120 "$@" >out 2>err </dev/null || status=$?
  [[ $status == "$code" ]] || fail "exit $status, expected $code: $* ($(head -n 3 err))"
}

expect 0 "$MULCIBER" inspect "$data/marian"
grep -q "marian" out || fail "inspect names no architecture"
expect 0 "$MULCIBER" inspect --json "$data/marian"
python3 -c 'import json; assert json.load(open("out"))["totals"]["tensors"] > 0' || fail "inspect --json"

expect 0 "$MULCIBER" verify -m "$data/marian" "$data/marian/expected.safetensors"
grep -q "0 failed" out || fail "verify says nothing"
expect 1 "$MULCIBER" verify -m "$data/marian" "$data/marian/expected.safetensors" --tolerance 1e-12
cp -r "$data/marian" nothing
python3 - <<'PY'
import json
d = json.load(open("nothing/expected.json"))
d["cases"] = []
json.dump(d, open("nothing/expected.json", "w"))
PY
expect 3 "$MULCIBER" verify -m nothing nothing/expected.safetensors
expect 2 "$MULCIBER" verify -m "$data/marian" no-such.safetensors

# One clear error each: two lines at most, exit code 2, nothing worse.
broken() {
  local name=$1
  for command in inspect "translate -m"; do
    local arguments=()
    [[ $command == translate* ]] && arguments=("x")
    # shellcheck disable=SC2086
    expect 2 "$MULCIBER" $command "$name" "${arguments[@]}"
    (($(wc -l <err) <= 2)) || fail "$name: more than two lines: $(head -n 5 err)"
    [[ -s err ]] || fail "$name: no message"
  done
}
fresh() { rm -rf "$1"; cp -r "$data/marian" "$1"; rm -f "$1"/expected.*; }
fresh a; head -c 1000 "$data/marian/model.safetensors" >a/model.safetensors; broken a
fresh b; : >b/model.safetensors; broken b
fresh c; echo '{' >c/config.json; broken c
fresh d; rm d/model.safetensors; broken d
fresh e; sed -i 's/"d_model": 48/"d_model": 47/' e/config.json; broken e
fresh f; sed -i 's/"vocab_size": 273/"vocab_size": 274/g' f/config.json; expect 2 "$MULCIBER" translate -m f x
fresh g; head -c 5000 "$data/marian/source.spm" >g/source.spm; broken g
fresh h; printf '\377\377\377\377\377\377\377\017' >h/model.safetensors; broken h
fresh i; echo '{"</s>": 0}' >i/vocab.json; expect 2 "$MULCIBER" translate -m i x
fresh j; sed -i 's/"decoder_layers": 3/"decoder_layers": 100000000/' j/config.json; broken j
fresh k; sed -i 's/marian/no_such_family/' k/config.json; expect 2 "$MULCIBER" translate -m k x
expect 2 "$MULCIBER" inspect no-such-folder
expect 2 "$MULCIBER" inspect /dev/null
expect 2 "$MULCIBER"
expect 2 "$MULCIBER" no-such-command
expect 0 "$MULCIBER" --help
for command in devices translate verify inspect bench; do
  expect 0 "$MULCIBER" "$command" --help
  grep -q "Example" out || fail "$command --help has no example"
done
echo passed
