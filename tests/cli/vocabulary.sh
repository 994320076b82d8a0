#!/usr/bin/env bash
# A tokenizer with more pieces than the embedding has rows is refused when the model is opened; an added token without
# a row, when a text holds it. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"
cp -r "$MULCIBER_SOURCE/tests/data/gemma3" decoder
cp -r "$MULCIBER_SOURCE/tests/data/marian" translator
rows=$(python3 -c 'import json; print(json.load(open("decoder/config.json"))["vocab_size"])')
echo 'The red hammer' >text.txt

# An added token behind the last row.
python3 - "$rows" <<'PY'
import json, sys
tokenizer = json.load(open("decoder/tokenizer.json"))
tokenizer["added_tokens"].append({"id": int(sys.argv[1]), "content": "<mine>", "special": True, "single_word": False,
                                  "lstrip": False, "rstrip": False, "normalized": False})
json.dump(tokenizer, open("decoder/tokenizer.json", "w"))
PY
exits 0 "$MULCIBER" generate -m decoder -p 'The red hammer' -n 3
exits 2 "$MULCIBER" generate -m decoder -p 'The <mine> hammer' -n 3
grep -q "holds token id $rows, the model's are below $rows" err || fail "other words: $(cat err)"

# Pieces behind it.
python3 - "$rows" <<'PY'
import json, sys
rows = int(sys.argv[1])
tokenizer = json.load(open("decoder/tokenizer.json"))
vocab = tokenizer["model"]["vocab"]
taken = max(vocab.values()) + 1
for i in range(taken, rows + 6):
    vocab[f"piece{i}"] = i
tokenizer["added_tokens"].pop()
json.dump(tokenizer, open("decoder/tokenizer.json", "w"))
marian = json.load(open("translator/vocab.json"))
for i in range(len(marian), len(marian) + 4):
    marian[f"piece{i}"] = i
json.dump(marian, open("translator/vocab.json", "w"))
PY
words="a tokenizer of $((rows + 6)) tokens and an embedding of $rows rows"
for command in "generate -p hammer -n 3" "chat -n 3" "perplexity text.txt"; do
  read -ra arguments <<<"$command"
  exits 2 "$MULCIBER" "${arguments[@]}" -m decoder <text.txt
  grep -q "$words" err || fail "${arguments[0]}: other words: $(cat err)"
done
exits 2 "$MULCIBER" translate -m translator 'a dog'
grep -qE 'a tokenizer of [0-9]+ tokens and an embedding of [0-9]+ rows' err || fail "translate: other words: $(cat err)"
