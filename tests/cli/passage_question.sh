#!/usr/bin/env bash
# Bidirectional attention between a passage and a question, with its map. EXAMPLES comes from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
example=$EXAMPLES/passage_question
[[ -x $example ]] || { echo "skipped: passage_question: the example was not built"; exit 77; }
export MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/tests/data/roberta_cls
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

exits 0 "$example" "$model" "the hammer <strikes> the anvil" "which hammer" map.svg
# Five words of the passage, the heaviest first. A word that stands in both looks at itself.
[[ $(wc -l <out) == 5 && $(cut -d ' ' -f 1 out | sort -rg) == "$(cut -d ' ' -f 1 out)" ]] || fail "$(<out)"
grep -q 'hammer (looks at hammer' out || fail "$(<out)"
# A cell for each pair of words, and one more for each word of the passage.
[[ $(grep -c '<rect' map.svg) == 15 ]] || fail "the map has $(grep -c '<rect' map.svg) cells"
grep -q '&lt;strikes&gt;' map.svg || fail "words are not escaped"
says 1 "a word or more" "$example" "$model" "the hammer" " "
says 2 "usage" "$example" "$model"
echo "1 passed, 0 failed, 0 skipped"
