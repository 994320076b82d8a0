#!/usr/bin/env bash
# The example that embeds the library says what the command says. MULCIBER and EXAMPLES come from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
[[ -x $EXAMPLES/embed_minimal ]] || { echo "skipped: embedding: the examples were not built"; exit 77; }
export MULCIBER_SELF_TEST=0
text="The old house stands near the river."
model=$MULCIBER_SOURCE/assets/en-de
said=$("$EXAMPLES/embed_minimal" "$model" "$text" 2>frames.txt)
expected=$("$MULCIBER" translate -m "$model" "$text")
[[ $said == "$expected" ]] || fail "'$said' is not '$expected'"
grep -qE '^[0-9]+ frames$' frames.txt || fail "no number of frames"
rm frames.txt
said=$("$EXAMPLES/embed_minimal_static" "$model" "$text" 2>/dev/null)
[[ $said == "$expected" ]] || fail "with the static library '$said' is not '$expected'"
! ldd "$EXAMPLES/embed_minimal_static" | grep -q libmulciber || fail "the static example needs the shared library"
! "$EXAMPLES/embed_minimal" /no/such/folder "$text" 2>error.txt || fail "a folder that is not there passes"
grep -q '/no/such/folder' error.txt || fail "the error names no folder: $(<error.txt)"
rm error.txt
echo "1 passed, 0 failed, 0 skipped"
