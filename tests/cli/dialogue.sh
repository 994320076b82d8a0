#!/usr/bin/env bash
# What the example's character says is what the command says; an interruption ends an answer early, and the next one
# goes on from what was heard. MULCIBER and EXAMPLES come from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
[[ -x $EXAMPLES/dialogue ]] || { echo "skipped: dialogue: the example was not built"; exit 77; }
export MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/tests/data/gemma3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
opening="The red hammer" remark="and the blue nails" last="of the old house"
tokens=12

talk() {
  "$EXAMPLES/dialogue" "$model" "$opening" "$remark" "$last" --temperature 0 --tokens "$tokens" "$@" \
    >"$work/out.txt" 2>"$work/err.txt" || fail "$(<"$work/out.txt") $(<"$work/err.txt")"
}
answer() { awk -v wanted="$1" '/^> / { ++turn; next } turn == wanted' "$work/out.txt"; }
# generate PROMPT [OPTION...]
generate() { "$MULCIBER" generate -m "$model" --raw -p "$1" -n "$tokens" --temperature 0 "${@:2}"; }
line() { generate "$1" --stop $'\n'; }

talk --interrupt 0
first=$(answer 1) second=$(answer 2)
[[ -n $first && $first == "$(line "$opening")" ]] || fail "'$first' is not what the command says"
[[ $second == "$(line "$opening$first"$'\n'"$remark")" ]] || fail "'$second' is not what the command says"
! grep -q cancelled "$work/err.txt" || fail "an answer was cancelled: $(<"$work/err.txt")"

talk --interrupt 2 --after 3
[[ $(answer 1) == "$first" ]] || fail "the first answer changed"
cut=$(answer 2)
heard=${cut% --}
[[ $cut == *" --" && -n $heard && $heard != "$second" && $second == "$heard"* ]] ||
  fail "'$cut' does not interrupt '$second'"
grep -qE '^answer 2: .* cancelled$' "$work/err.txt" || fail "nothing was cancelled: $(<"$work/err.txt")"
# Frames recorded ahead have ended; no more than a few come behind the interruption.
behind=$(sed -nE 's/^answer 2: .*, ([0-9]+) after the interruption.*/\1/p' "$work/err.txt")
((behind <= 2)) || fail "$behind frames behind the interruption"
third=$(line "$opening$first"$'\n'"$remark$heard"$'\n'"$last")
[[ $(answer 3) == "$third" ]] || fail "'$(answer 3)' is not '$third', which follows what was heard"

# With a chat template, turns are what it makes of them: those of `chat`, and after an interruption the words heard.
cp -r "$model" "$work/model"
model=$work/model
mark="{% if m.role == 'user' %}:{% else %};{% endif %}"
printf '%s' "{{ bos_token }}{% for m in messages %}{{ m.content }}$mark{% endfor %}" >"$model/chat_template.jinja"
talk --interrupt 0
printf '%s\n' "$opening" "$remark" "$last" |
  "$MULCIBER" chat -m "$model" -n "$tokens" --temperature 0 --repeat-penalty 1 >"$work/chat.txt" 2>"$work/err.txt" ||
  fail "$(<"$work/err.txt")"
grep -av '^> ' "$work/out.txt" | cmp -s - "$work/chat.txt" || fail "'$(<"$work/out.txt")' is not '$(<"$work/chat.txt")'"
talk --interrupt 1 --after 1
cut=$(answer 1)
heard=${cut% --}
[[ $cut == *" --" && -n $heard ]] || fail "'$cut' was not interrupted"
second=$(generate "$opening:$heard;$remark:")
[[ $(answer 2) == "$second" ]] || fail "'$(answer 2)' is not '$second', which follows what was heard"
echo "1 passed, 0 failed, 0 skipped"
