#!/usr/bin/env bash
# `mulciber tokenize`: ids of a line, text of ids, bytes in hexadecimal, and what it refuses.
set -euo pipefail

model=$MULCIBER_SOURCE/assets/en-de
run() { "$MULCIBER" tokenize -m "$model" "$@"; }
fail() { echo "$1"; exit 1; }

ids=$(echo 'a dog runs across the grass .' | run)
[[ $ids =~ ^[0-9]+(\ [0-9]+)+$ ]] || fail "not a line of ids: $ids"
[[ $(echo "$ids" | run --decode) == 'a dog runs across the grass .' ]] || fail "the ids do not decode to the text"

plain=$(printf 'a dog\n\na cat\n' | run)
[[ $(wc -l <<<"$plain") == 3 && -z $(sed -n 2p <<<"$plain") ]] || fail "not a line for each line"
special=$(echo 'a dog' | run --add-special)
[[ $special == "$(sed -n 1p <<<"$plain") "* ]] || fail "--add-special added nothing: $special"

[[ $(echo 6120646f67 | run --hex) == "$(sed -n 1p <<<"$plain")" ]] || fail "--hex reads other text"
[[ $(sed -n 1p <<<"$plain" | run --decode --hex) == 6120646f67 ]] || fail "--decode --hex writes other bytes"
echo 'a dog' | run --json | python3 -c '
import json, sys
line = json.loads(sys.stdin.read())
assert len(line["ids"]) == len(line["tokens"]) > 1, line' || fail "--json is not what it says"

for bad in 'zz --hex' '616 --hex' 'word --decode' '99999999 --decode'; do
  read -r text option <<<"$bad"
  status=0
  message=$(echo "$text" | run "$option" 2>&1) || status=$?
  [[ $status == 2 && $(wc -l <<<"$message") == 1 ]] || fail "$bad: status $status, $message"
done

families=$MULCIBER_SOURCE/tests/data/gguf_families
for text in ' x' 'The red hammer, 12 times'; do
  ids=$(echo "$text" | "$MULCIBER" tokenize -m "$families/gpt2.gguf")
  [[ $ids =~ ^[0-9]+(\ [0-9]+)*$ ]] || fail "GGUF: no ids: $ids"
  [[ $(echo "$text" | "$MULCIBER" tokenize -m "$families/gpt2") == "$ids" ]] || fail "GGUF: other ids than the folder's"
done
