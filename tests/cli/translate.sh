#!/usr/bin/env bash
# `mulciber translate` as a person uses it: sentences, files, standard input, order, empty lines, formats of
# output, and errors that cost nothing already made. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
model=$MULCIBER_SOURCE/tests/data/marian
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
translate() { "$MULCIBER" translate -m "$model" --max-tokens 6 -b 2 "$@"; }

printf 'The red hammer.\n\nWhy did the smith melt?\nThe red hammer.' >lines
translate -f lines >from_file
translate <lines >from_stdin
cmp from_file from_stdin || fail "file and standard input differ"
[[ $(wc -l <from_file) == 4 ]] || fail "4 lines in, $(wc -l <from_file) out"
[[ -z $(sed -n 2p from_file) ]] || fail "an empty line must stay empty"
[[ $(sed -n 1p from_file) == "$(sed -n 4p from_file)" ]] || fail "one sentence, two translations"
translate "The red hammer." "Why did the smith melt?" >from_arguments
[[ $(sed -n 1p from_file) == "$(sed -n 1p from_arguments)" ]] || fail "batches change results"
translate --chunk 1 -f lines | cmp - from_file || fail "the chunk size changes results"
printf 'The red hammer.\r\n' | translate >crlf
[[ $(cat crlf) == "$(sed -n 1p from_file)" ]] || fail "a carriage return changes the result"
[[ -z $(translate "") ]] || fail "empty text"
[[ -z $(translate </dev/null) ]] || fail "no input"
printf 'a \xff\xfe b\n' | translate >/dev/null || fail "invalid UTF-8 must be read as U+FFFD"

translate --nbest 2 "The red hammer." >best
[[ $(grep -c $'\t' best) == 2 ]] || fail "two hypotheses with their scores"
translate --json --stats "The red hammer." "" >json
python3 - <<'PY' || fail "JSON"
import json
rows = [json.loads(line) for line in open("json")]
assert rows[0]["source"] == "The red hammer." and rows[0]["ids"] and rows[0]["hypotheses"]
assert rows[1]["text"] == ""
assert rows[2]["statistics"]["target_tokens"] > 0 and rows[2]["statistics"]["first_token_seconds"] > 0
PY
translate --stats "The red hammer." 2>stats >/dev/null
for words in "tokens/s" "1st token" device; do grep -q "$words" stats || fail "no '$words' in --stats"; done

for kind in html svg json; do
  translate --attention "map.$kind" "The red hammer." >/dev/null 2>&1
  [[ -s map.$kind ]] || fail "no map.$kind"
done
for view in cross.0.1 'encoder.*.*' decoder cross_rollout.1; do
  translate --attention view.svg --attention-view "$view" "The red hammer." >/dev/null 2>&1 || fail "--attention-view $view"
done
grep -q rollout view.svg || fail "the rollout's title"
says 2 "names no kind" translate --attention view.svg --attention-view heads "The red hammer."
says 2 "asks for '9'" translate --attention view.svg --attention-view cross.9 "The red hammer."
translate --mask-heads cross.0.0 decoder.2.1 -- "The red hammer." >/dev/null || fail "--mask-heads"

printf 'The red hammer.\nIron cools.\n' >source
printf 'Iron cools.\nThe red hammer.\n' >reference
"$MULCIBER" heads -m "$model" --source source --reference reference --step 9 --json >ranking || fail "heads"
python3 - <<'PY' || fail "the ranking of heads"
import json
found = json.load(open("ranking"))
heads, stages = found["heads"], found["pruning"]
names = {h["head"] for h in heads}
assert len(names) == len(heads) > 0 and found["pairs"] == 2
assert [h["lost"] for h in heads] == sorted((h["lost"] for h in heads), reverse=True)
assert stages[0]["left"] == len(heads) and stages[0]["log_probability"] == found["log_probability"]
assert stages[-1]["left"] == 0 and set(stages[-1]["masked"]) == names
assert abs(stages[-1]["log_probability"] - found["log_probability"]) > 1e-6
PY
"$MULCIBER" heads -m "$model" --source source --reference reference --rank-only | grep -q "falls by" || fail "heads for people"
says 2 "has 1 lines" "$MULCIBER" heads -m "$model" --source source --reference <(echo one)
translate --profile trace.json "The red hammer." >/dev/null 2>table
python3 -c 'import json; assert json.load(open("trace.json"))["traceEvents"]' || fail "the trace"
grep -q "^total" table || fail "the table of kernels"

says 2 "interactive page" translate --attention map.gif "The red hammer."
says 2 "not there" translate --mask-heads cross.9.0 -- x
says 2 "KIND.LAYER.HEAD" translate --mask-heads cross -- x
says 2 "no-such" translate -f no-such
says 2 "cannot be written" translate -o no/such/folder/out x
says 2 "tokens" translate "$(printf 'hammer %.0s' {1..200})"
says 2 "no-such-model" "$MULCIBER" translate -m no-such-model x
says 4 "no-such-device" translate --device no-such-device x
says 2 "not a limit" translate --limits nonsense x
says 2 "" translate --nbest 3 x
says 4 "memory" translate --limits memory=64K x

# A full disk, and a folder that became read-only, cost only what comes after.
if [[ -c /dev/full ]]; then
  says 2 "could not be written" translate -o /dev/full "The red hammer."
fi
says 2 "no/such" translate --attention no/such/map.html "The red hammer."
[[ -s out ]] || fail "the translation was lost with its map"

# SIGINT: what is done stands, in order, and the exit code says so.
printf 'Why did the smith melt 42 crucibles?\n%.0s' {1..3000} >many
status=0
"$MULCIBER" translate -m "$model" --chunk 4 -f many >part 2>err &
pid=$!
awaits "no translation before SIGINT" test -s part
kill -INT $pid
wait $pid || status=$?
[[ $status == 130 ]] || fail "SIGINT ended with $status: $(cat err)"
[[ $(sort -u part | wc -l) == 1 ]] || fail "an interrupted run printed something else"
(($(wc -l <part) < 3000)) || fail "an interrupted run went on to its end"
echo passed
