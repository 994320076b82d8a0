#!/usr/bin/env bash
# Uses that nobody means: each ends with one clear error and the documented exit code, and never with a crash.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/exits.bash"
cd "$work"
exec </dev/null
# refuses WORDS COMMAND...: exit code 2, and two lines of error at most, which hold the words.
refuses() {
  local words=$1
  shift
  exits 2 "$@"
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
  (($(wc -l <err) <= 2)) || fail "more than two lines of error: $(cat err)"
}
# full WORDS COMMAND...: the same, where standard output is a full disk.
full() {
  local words=$1 status=0
  shift
  "$@" >/dev/full 2>err || status=$?
  [[ $status == 2 ]] || fail "exit $status with a full disk: $* ($(cat err))"
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
  (($(wc -l <err) <= 2)) || fail "more than two lines of error: $(cat err)"
}
model=$MULCIBER_SOURCE/assets/en-de
one=(--filter mulciber.elementwise.f32.n1.add --repeat 1)
exits 0 "$MULCIBER" conform "${one[@]}" --list
[[ $(wc -l <out) == 1 ]] || fail "not one case of that name: $(cat out)"

echo 'a dog' >text
full "cannot be written" "$MULCIBER" tokenize -m "$model" <text
full "cannot be written" "$MULCIBER" devices
full "cannot be written" "$MULCIBER" conform --list
# Words that cannot be written end nothing: not a command before its exit code, nor a server that logs.
status=0
"$MULCIBER" inspect no-such-file 2>/dev/full || status=$?
[[ $status == 2 ]] || fail "exit $status where standard error is a full disk"
"$MULCIBER" serve -m "$model" --port 0 >/dev/full 2>/dev/full &
server=$!
# listens: on the port that the system knows, as its log cannot say it.
listens() {
  kill -0 "$server" 2>/dev/null || fail "a server whose log is a full disk ends"
  port=$(python3 - "$server" <<'PYTHON'
import os, sys
folder = f"/proc/{sys.argv[1]}/fd"
mine = {os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
for line in list(open(f"/proc/{sys.argv[1]}/net/tcp"))[1:]:
    _, local, _, state, *_, inode = line.split()[:10]
    if state == "0A" and f"socket:[{inode}]" in mine:
        print(int(local.split(":")[1], 16))
PYTHON
  ) && [[ -n $port ]] && curl -sf "http://127.0.0.1:$port/health" >health
}
awaits "a server whose log is a full disk does not listen" listens
curl -sf -d '{"text": "a dog"}' "http://127.0.0.1:$port/translate" >answer || fail "no answer where the log is a full disk"
kill -TERM "$server"
wait "$server" || fail "such a server ends with $?"
refuses /dev/full "$MULCIBER" conform "${one[@]}" --output /dev/full
# The verdict is printed even where the page cannot be.
exits 2 "$MULCIBER" conform "${one[@]}" --html /dev/full
grep -q /dev/full err || fail "$(cat err)"
grep -q '^all .* 1 ' out || fail "no summary: $(cat out)"
refuses "no-such-folder" "$MULCIBER" conform "${one[@]}" --html no-such-folder/page.html
refuses "no-such-folder" "$MULCIBER" conform "${one[@]}" --output no-such-folder/run.jsonl

for number in 0 -1 1e3 nan inf 99999999999999999999999 '' 3x; do
  refuses --repeat "$MULCIBER" conform "${one[@]}" --repeat "$number"
done
for number in 0 -1 nan inf 1e300 '' 3x; do
  refuses --timeout "$MULCIBER" conform "${one[@]}" --timeout "$number"
done
for part in 1 1,1 -1,2 0,0 '0,' ',2' 0,99999999999999999999 nan,2 '0, 2' 1,2,3; do
  refuses --fraction "$MULCIBER" conform --list --fraction "$part"
done
exits 0 "$MULCIBER" conform --list --fraction 0,18446744073709551615
[[ $(wc -l <out) == 1 ]] || fail "one case of so many parts, but $(wc -l <out)"

: >empty.gguf
refuses empty.gguf "$MULCIBER" tokenize -m empty.gguf
refuses empty.gguf "$MULCIBER" inspect empty.gguf
refuses empty.jsonl "$MULCIBER" conform --report empty.jsonl --html page.html
: >empty.jsonl
refuses empty.jsonl "$MULCIBER" conform --report empty.jsonl --html page.html
refuses empty.jsonl "$MULCIBER" conform "${one[@]}" --baseline empty.jsonl
refuses empty.gguf "$MULCIBER" conform "${one[@]}" --vectors empty.gguf
