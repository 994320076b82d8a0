#!/usr/bin/env bash
# `mulciber pull` against a server of its own: resumed, redirected, cut off, changed, refused, damaged. MULCIBER and
# MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
work=$(mktemp -d)
server=
finish() {
  [[ -z $server ]] || kill "$server"
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
export XDG_DATA_HOME=$work/data
unset HF_TOKEN http_proxy HTTP_PROXY all_proxy ALL_PROXY
# pull_says CODE WORDS ARGUMENTS...: `says` of pull.
pull_says() { says "$1" "$2" "$MULCIBER" pull "${@:3}"; }

"$MULCIBER" pull --list >list
grep -q '^gemma-3-270m ' list || fail "--list"
"$MULCIBER" pull --list --json | python3 -c '
import json, sys
models = json.load(sys.stdin)
assert len(models) >= 4, models
for m in models:
    assert bool(m["url"]) != bool(m["repository"]), m
    assert m["sha256"] == "" or len(m["sha256"]) == 64 and m["bytes"] > 0, m' || fail "--list --json"
pull_says 2 "what to fetch"
pull_says 2 "names no model" no-such-model
pull_says 2 "names no model" ftp://host/file
pull_says 2 "names no model" ../some/where
pull_says 2 "names no file" http://127.0.0.1/
pull_says 2 "is no name for a file" some/model:../../outside
pull_says 2 "64 hexadecimal digits" --sha256 12 some/model

# A build without libcurl says so, and there is nothing more to test.
if "$MULCIBER" pull http://127.0.0.1:1/x.bin 2>&1 | grep -q 'built without libcurl'; then
  echo "built without libcurl"
  exit 77
fi
pull_says 2 "127.0.0.1:1/x.bin" http://127.0.0.1:1/x.bin

python3 "$MULCIBER_SOURCE/tests/cli/pull_server.py" address log &
server=$!
awaits "the test's own server does not begin" test -e address
read -r port sha other_sha <address
base=http://127.0.0.1:$port
export HF_ENDPOINT=$base
models=$XDG_DATA_HOME/mulciber/models
same() { [[ $(sha256sum <"$1" | cut -d' ' -f1) == "${2:-$sha}" ]] || fail "$1 is not what was sent"; }
no_rest() { [[ -z $(find . -name '*.part*') ]] || fail "left behind: $(find . -name '*.part*')"; }

pull_says 0 "SHA-256 $sha" "$base/whole.bin"
[[ $(cat out) == "$models/whole.bin" ]] || fail "the path is not printed: $(cat out)"
same "$models/whole.bin"
no_rest
pull_says 0 "was there" "$base/whole.bin" --sha256 "$sha"
[[ $(grep -c '^/whole.bin' log) == 1 ]] || fail "fetched what was there"
pull_says 2 "and not $other_sha" "$base/whole.bin" --sha256 "$other_sha"
same "$models/whole.bin"

pull_says 0 "as expected" "$base/whole.bin?download=true" -o named.bin --sha256 "${sha^^}"
same named.bin
mkdir folder
pull_says 0 "as expected" "$base/there.bin" -o folder --sha256 "$sha"
same folder/there.bin
pull_says 0 "SHA-256" "$base/empty.bin" -o new/folder/
[[ -e new/folder/empty.bin && ! -s new/folder/empty.bin ]] || fail "an empty file"

# Cut off: goes on by itself as long as something comes.
pull_says 0 "as expected" "$base/cut.bin" -o cut.bin --sha256 "$sha"
same cut.bin
grep -q '^/cut.bin range=bytes=200000- if-range="v1"' log || fail "no second part was asked for: $(cat log)"
pull_says 2 "stops after 1000 bytes" "$base/stuck.bin" -o stuck.bin
[[ -e stuck.bin.part && ! -e stuck.bin ]] || fail "the beginning is not kept"
pull_says 0 "as expected" "$base/busy.bin" -o busy.bin --sha256 "$sha"
pull_says 2 "answers 500" "$base/down.bin" -o down.bin
pull_says 0 "SHA-256 $other_sha" "$base/changed.bin" -o changed.bin
same changed.bin "$other_sha"
pull_says 0 "as expected" "$base/norange.bin" -o norange.bin --sha256 "$sha"
same norange.bin

# A beginning of an earlier run: of the same URL and file, whole already, longer, of another URL, or of no known one.
beginning() { head -c "$2" named.bin >"$1.part"; printf '%s\n"v1"\n' "${3:-$base/whole.bin}" >"$1.part.from"; }
beginning resumed.bin 123456
"$MULCIBER" pull "$base/whole.bin" -o resumed.bin --json | python3 -c '
import json, sys
file, = json.load(sys.stdin)["files"]
assert file["resumed_at"] == 123456 and file["bytes"] == 300000 and not file["checked"], file' || fail "was not resumed"
same resumed.bin
beginning full.bin 300000
pull_says 0 "$sha" "$base/whole.bin" -o full.bin
same full.bin
{ cat named.bin; echo more; } >long.bin.part
printf '%s\n"v1"\n' "$base/whole.bin" >long.bin.part.from
pull_says 0 "$sha" "$base/whole.bin" -o long.bin
same long.bin
beginning elsewhere.bin 1000 "$base/other.bin"
echo nonsense >>elsewhere.bin.part
pull_says 0 "$sha" "$base/whole.bin" -o elsewhere.bin
same elsewhere.bin
echo nonsense >unknown.bin.part
pull_says 0 "$sha" "$base/whole.bin" -o unknown.bin
same unknown.bin

# Damage is seen, and not resumed from.
beginning damaged.bin 5000
printf 'XXXX' | dd of=damaged.bin.part bs=1 seek=100 conv=notrunc status=none
pull_says 2 "has the SHA-256" "$base/whole.bin" -o damaged.bin --sha256 "$sha"
[[ ! -e damaged.bin && ! -e damaged.bin.part ]] || fail "damaged bytes are kept"
pull_says 2 "and not 00000000" wronglink/x:x.bin -o wrong.bin
rm -f stuck.bin.part*
no_rest

pull_says 2 "there is no such file" "$base/nothing.bin" -o nothing.bin
pull_says 2 "HF_TOKEN" "$base/forbidden.bin" -o forbidden.bin
pull_says 2 "redirects" "$base/round.bin" -o round.bin
pull_says 2 "file" "$base/file.bin" -o file.bin
mkdir -p taken/whole.bin
pull_says 2 "is a folder" "$base/whole.bin" -o taken
[[ ! -e nothing.bin && ! -e forbidden.bin && ! -e file.bin ]] || fail "an answer that is no file was kept"
no_rest
pull_says 2 "cannot be written" "$base/whole.bin" -o /proc/nowhere/file

# The hub: a folder, one file, a choice, names that lead elsewhere. The token goes to the hub alone.
HF_TOKEN=secret pull_says 0 "model.safetensors: 0 MB, SHA-256 $sha as expected" some/model:model.safetensors
same "$models/some/model/model.safetensors"
grep -q 'some/model/resolve/main/model.safetensors.*auth=Bearer secret' log || fail "the hub got no token"
rm -rf "$models"
"$MULCIBER" pull some/model >out 2>err || fail "a repository: $(cat err)"
[[ $(cat out) == "$models/some/model" ]] || fail "the folder is not printed: $(cat out)"
[[ $(cd "$models/some/model" && echo *) == "config.json model.safetensors tokenizer.json" ]] || fail "files: $(ls "$models/some/model")"
pull_says 0 "as expected" one/gguf
same "$models/one/gguf/model-q4_0.gguf"
pull_says 2 "choose one: two/gguf:a.gguf" two/gguf
pull_says 2 "neither safetensors nor GGUF" no/weights
pull_says 2 "there is no such file" not/there
"$MULCIBER" pull evil/names >out 2>err || fail "names that lead elsewhere: $(cat err)"
[[ -z $(find "$work" -name 'outside*') ]] || fail "a file outside of its folder"

# Interrupted, and resumed.
HF_TOKEN=secret "$MULCIBER" pull "$base/silent.bin" -o later.bin 2>err &
pid=$!
awaits "nothing is asked for" grep -q '^/silent.bin' log
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[[ $status == 130 ]] || fail "interrupted: exit $status, $(cat err)"
