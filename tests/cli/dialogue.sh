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
answer() { sed -n "$((2 * $1))p" "$work/out.txt"; }
generate() { "$MULCIBER" generate -m "$model" --raw -p "$1" -n "$tokens" --temperature 0 --stop $'\n'; }

talk --interrupt 0
first=$(answer 1) second=$(answer 2)
[[ -n $first && $first == "$(generate "$opening")" ]] || fail "'$first' is not what the command says"
[[ $second == "$(generate "$opening$first"$'\n'"$remark")" ]] || fail "'$second' is not what the command says"
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
third=$(generate "$opening$first"$'\n'"$remark$heard"$'\n'"$last")
[[ $(answer 3) == "$third" ]] || fail "'$(answer 3)' is not '$third', which follows what was heard"
echo "1 passed, 0 failed, 0 skipped"
