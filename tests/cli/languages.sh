#!/usr/bin/env bash
# Languages of a model of many, and T5 as a model that continues: on the reference models.
# MULCIBER, MULCIBER_SOURCE and MULCIBER_FIXTURES come from outside.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
[[ -n ${MULCIBER_FIXTURES:-} ]] || { echo "skipped: languages: the reference models are not here"; exit 77; }
export MULCIBER_SELF_TEST=0
many=$MULCIBER_FIXTURES/models2/m2m_100
text="hello iron"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

translated() {
  exits 0 "$MULCIBER" translate -m "$many" "$@" "$text"
  cat out
}
# The tokenizer's own language is English, which may as well be named.
plain=$(translated --target fra_Latn)
[[ -n $plain && $(translated --source eng_Latn --target fra_Latn) == "$plain" ]] || fail "naming English changes the text"
[[ $(translated --source deu_Latn --target fra_Latn) != "$plain" ]] || fail "the source's language does not matter"
[[ $(translated --target eng_Latn) != "$plain" ]] || fail "the result's language does not matter"
says 2 "it has: eng_Latn, deu_Latn, fra_Latn" "$MULCIBER" translate -m "$many" --target xx "$text"
says 2 "it has: eng_Latn, deu_Latn, fra_Latn" "$MULCIBER" translate -m "$many" --source xx "$text"
says 2 "no token for a language" "$MULCIBER" translate -m "$MULCIBER_SOURCE/assets/en-de" --target de "$text"
says 2 "language" "$MULCIBER" translate -m "$MULCIBER_SOURCE/assets/en-de" --source de "$text"

# T5 answers a prompt, as `generate` has it, and does so again.
for model in t5 t5_gated; do
  exits 0 "$MULCIBER" generate -m "$MULCIBER_FIXTURES/models/$model" -p "$text"
  [[ -s out ]] || fail "$model says nothing"
  cp out first
  exits 0 "$MULCIBER" generate -m "$MULCIBER_FIXTURES/models/$model" -p "$text"
  cmp -s first out || fail "$model says another thing the second time"
done
echo "1 passed, 0 failed, 0 skipped"
