#!/usr/bin/env bash
# inspect and verify: what they print, and their exit codes on good, wrong and hostile input.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
exec </dev/null
data=$MULCIBER_SOURCE/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

exits 0 "$MULCIBER" inspect "$data/marian"
grep -q "marian" out || fail "inspect names no architecture"
exits 0 "$MULCIBER" inspect --json "$data/marian"
python3 -c 'import json; assert json.load(open("out"))["totals"]["tensors"] > 0' || fail "inspect --json"

exits 0 "$MULCIBER" verify -m "$data/marian" "$data/marian/expected.safetensors"
grep -q "0 failed" out || fail "verify says nothing"
exits 1 "$MULCIBER" verify -m "$data/marian" "$data/marian/expected.safetensors" --tolerance 1e-12
cp -r "$data/marian" nothing
python3 - <<'PY'
import json
d = json.load(open("nothing/expected.json"))
d["cases"] = []
json.dump(d, open("nothing/expected.json", "w"))
PY
exits 3 "$MULCIBER" verify -m nothing nothing/expected.safetensors
exits 2 "$MULCIBER" verify -m "$data/marian" no-such.safetensors

# One clear error each: two lines at most, exit code 2, nothing worse.
broken() {
  local name=$1
  for command in inspect "translate -m"; do
    local arguments=()
    [[ $command == translate* ]] && arguments=("x")
    # shellcheck disable=SC2086
    exits 2 "$MULCIBER" $command "$name" "${arguments[@]}"
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
fresh f; sed -i 's/"vocab_size": 273/"vocab_size": 274/g' f/config.json; exits 2 "$MULCIBER" translate -m f x
fresh g; head -c 5000 "$data/marian/source.spm" >g/source.spm; broken g
fresh h; printf '\377\377\377\377\377\377\377\017' >h/model.safetensors; broken h
fresh i; echo '{"</s>": 0}' >i/vocab.json; exits 2 "$MULCIBER" translate -m i x
fresh j; sed -i 's/"decoder_layers": 3/"decoder_layers": 100000000/' j/config.json; broken j
fresh k; sed -i 's/marian/no_such_family/' k/config.json; exits 2 "$MULCIBER" translate -m k x
exits 2 "$MULCIBER" inspect no-such-folder
exits 2 "$MULCIBER" inspect /dev/null
exits 2 "$MULCIBER"
exits 2 "$MULCIBER" no-such-command
exits 0 "$MULCIBER" --help

# A split GGUF file may be named by any of its parts. The first gets a chat template, in whole units
# of alignment.
python3 - "$data/gguf_families" <<'PY'
import shutil, struct, sys
parts = [f"qwen3-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
for part in parts:
    shutil.copy(f"{sys.argv[1]}/{part}", part)
data = open(parts[0], "rb").read()
key, text = b"tokenizer.chat_template", b"{% for m in messages %}the {{ m.content }} and {% endfor %}{#"
text += b" " * (-(8 + len(key) + 4 + 8 + len(text) + 2) % 32) + b"#}"
values = struct.unpack("<Q", data[16:24])[0] + 1
entry = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(text)) + text
open(parts[0], "wb").write(data[:16] + struct.pack("<Q", values) + entry + data[24:])
PY
printf 'the red and the blue nail %.0s' {1..12} >text
for part in 1 2 3; do
  split=qwen3-0000$part-of-00003.gguf
  exits 0 "$MULCIBER" generate -m "$split" -p "red" --ignore-end -n 6 --json
  grep -q '"chat":true' out || fail "$split: generate without the chat template"
  mv out "generate.$part"
  timeout 120 "$MULCIBER" tokenize -m "$split" <text >"tokenize.$part" || fail "$split: tokenize"
  exits 0 "$MULCIBER" perplexity -m "$split" --context 32 text
  mv out "perplexity.$part"
  exits 0 "$MULCIBER" inspect "$split"
  grep -q 'weights in 3 files' out || fail "$split: inspect: $(head -n 1 out)"
  for command in generate tokenize perplexity; do
    cmp -s "$command.1" "$command.$part" || fail "$split: another $command than by the first part"
  done
done

for command in devices translate verify inspect bench; do
  exits 0 "$MULCIBER" "$command" --help
  grep -q "Example" out || fail "$command --help has no example"
done
echo passed
