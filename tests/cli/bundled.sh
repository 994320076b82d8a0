#!/usr/bin/env bash
# The bundled model translates, and the same everywhere: on a phone's worth of capabilities, with
# matrices split into small pieces, alone and in a batch. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
model=$MULCIBER_SOURCE/assets/en-de
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

sentences=("A dog runs through the snow." "A man in a blue shirt is standing on a ladder."
  "Two children are playing football in the park.")
"$MULCIBER" translate -m "$model" --beam 5 "${sentences[@]}" >wanted
[[ $(wc -l <wanted) == 3 ]] || fail "three sentences, but: $(cat wanted)"
sed -n 1p wanted | grep -q 'Hund.*Schnee' || fail "$(sed -n 1p wanted)"
sed -n 2p wanted | grep -q 'Leiter' || fail "$(sed -n 2p wanted)"
sed -n 3p wanted | grep -q 'Kinder' || fail "$(sed -n 3p wanted)"
for limits in android-2021 storage=1M no-fp16 shared=16384,invocations=128; do
  "$MULCIBER" translate -m "$model" --beam 5 --limits "$limits" "${sentences[@]}" >out
  cmp -s out wanted || fail "another translation with --limits $limits: $(diff wanted out)"
done
"$MULCIBER" translate -m "$model" --beam 5 "${sentences[1]}" >alone
cmp -s alone <(sed -n 2p wanted) || fail "another translation alone: $(cat alone)"
