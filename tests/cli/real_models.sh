#!/usr/bin/env bash
# What real models answer: SmolLM2 135M Instruct, Gemma 3 270M, a base model, and the sentence encoder all-MiniLM-L6-v2.
# Asked for with MULCIBER_MODELS=1, which fetches what is not there (440 MB). MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
if [[ ${MULCIBER_MODELS:-} != 1 ]]; then
  echo "real models, 440 MB to fetch: asked for with MULCIBER_MODELS=1"
  exit 77
fi
smollm=$("$MULCIBER_SOURCE/tools/fetch_smollm2.sh")
gemma=$("$MULCIBER_SOURCE/tools/fetch_gemma.sh")
minilm=$("$MULCIBER_SOURCE/tools/fetch_minilm.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"
# answers WORDS: the last command's answer holds them.
answers() { grep -qF -- "$1" out || fail "no '$1' in: $(cat out err)"; }

exits 0 "$MULCIBER" generate -m "$smollm" -p "What is the capital of France?" -n 24
answers "The capital of France is Paris."
# The second question is none without the first.
printf 'What is the capital of France?\nAnd of Italy?\n' >lines
exits 0 "$MULCIBER" chat -m "$smollm" -n 24 <lines
answers "The capital of Italy is Rome."

exits 0 "$MULCIBER" generate -m "$gemma" -p "Water is made of" -n 16
answers "two elements: hydrogen and oxygen"
printf 'Hello, my name is Anna.\nWhat is my name?\n' >lines
exits 0 "$MULCIBER" chat -m "$gemma" -n 24 <lines
answers "My name is Anna."
exits 0 "$MULCIBER" generate -m "$gemma" --template dialogue -p "Which planet is called the red planet?" -n 24
answers "Mars"

# Vectors as float64 has them (tools/fixtures/minilm_vectors.py), by the same ids.
vectors=$MULCIBER_SOURCE/tests/data/minilm_vectors.json
python3 -c 'import json, sys; print("\n".join(case["text"] for case in json.load(open(sys.argv[1]))))' "$vectors" >texts
exits 0 "$MULCIBER" embed -m "$minilm" texts
python3 - "$vectors" <<'PY' || fail "vectors of all-MiniLM-L6-v2"
import json, sys
cases = json.load(open(sys.argv[1]))
rows = [json.loads(line) for line in open("out")]
assert len(rows) == len(cases)
for case, row in zip(cases, rows):
    worst = max(abs(a - b) for a, b in zip(case["vector"], row["vector"]))
    assert len(row["vector"]) == 384 and row["tokens"] == len(case["ids"]) and worst < 1e-5, (case["text"], worst)
PY
