#!/usr/bin/env bash
# The graph of the karate club: sides, attention and its drawing. EXAMPLES comes from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
example=$EXAMPLES/graph_attention
[[ -x $example ]] || { echo "skipped: graph_attention: the example was not built"; exit 77; }
export MULCIBER_SELF_TEST=0
data=$MULCIBER_SOURCE/examples/karate
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$example" "$data" "$work/karate.svg" >"$work/out.txt" || fail "it ends with $?"
# The training script found all but member 8, who had an examination to pass in the club of the other side.
grep -q '^33 of 34 members' "$work/out.txt" || fail "$(head -n 1 "$work/out.txt")"
grep -q '^member  8, side 1' "$work/out.txt" || fail "member 8 is on side 0"
grep -Eq 'double precision: [0-9.]+e-0[5-9]$' "$work/out.txt" || fail "$(sed -n 2p "$work/out.txt")"
# Each of the 78 pairs has two halves of a line.
[[ $(grep -c '<line' "$work/karate.svg") == 156 && $(grep -c '<circle' "$work/karate.svg") == 34 ]] ||
  fail "the drawing has $(grep -c '<line' "$work/karate.svg") lines"
[[ $(grep -o "stroke-width='[0-9.]*'><title>" "$work/karate.svg" | sort -u | wc -l) -gt 50 ]] ||
  fail "lines are of one width"
if command -v xmllint >/dev/null; then xmllint --noout "$work/karate.svg" || fail "no XML"; fi

mkdir "$work/broken"
cp "$data"/*.txt "$work/broken"
head -n 40 "$data/model.txt" >"$work/broken/model.txt"
! "$example" "$work/broken" 2>"$work/err.txt" || fail "half a model passes"
grep -q 'end too early' "$work/err.txt" || fail "$(<"$work/err.txt")"
echo "7 99" >>"$work/broken/edges.txt"
! "$example" "$work/broken" 2>"$work/err.txt" || fail "an edge to nowhere passes"
grep -q 'edge 78 goes from node 7 to node 99' "$work/err.txt" || fail "$(<"$work/err.txt")"
! "$example" "$work/nowhere" 2>"$work/err.txt" || fail "no folder passes"
echo "1 passed, 0 failed, 0 skipped"
