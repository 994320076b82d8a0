#!/usr/bin/env bash
# `mulciber embed`, `classify` and `answer` as a person uses them: files, standard input, JSON, NumPy, ranks, pairs,
# passages, a bench, and errors of two lines. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
model=$MULCIBER_SOURCE/tests/data/roberta_cls
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

printf 'The red hammer strikes the anvil.\n\nWhy did the smith melt?\nThe red hammer strikes the anvil.\n' >lines
"$MULCIBER" embed -m "$model" lines >vectors
"$MULCIBER" embed -m "$model" <lines | cmp - vectors || fail "file and standard input differ"
"$MULCIBER" embed -m "$model" - <lines | cmp - vectors || fail "- is not standard input"
"$MULCIBER" embed -m "$model" --npy vectors.npy lines >nothing
[[ ! -s nothing ]] || fail "--npy prints vectors too"
"$MULCIBER" embed -m "$model" --normalize --pooling first lines >starts
python3 - <<'PY' || fail "vectors"
import ast, json, math, struct
rows = [json.loads(line) for line in open("vectors")]
assert [row["text"] for row in rows] == open("lines").read().split("\n")[:-1]
assert rows[0]["vector"] == rows[3]["vector"] != rows[2]["vector"]
assert all(len(row["vector"]) == 48 and not row["truncated"] for row in rows)
assert rows[1]["tokens"] == 2
first = [json.loads(line)["vector"] for line in open("starts")]
assert all(abs(math.hypot(*vector) - 1) < 1e-5 for vector in first)
data = open("vectors.npy", "rb").read()
assert data[:8] == b"\x93NUMPY\x01\x00"
(length,) = struct.unpack("<H", data[8:10])
assert (10 + length) % 64 == 0
header = ast.literal_eval(data[10:10 + length].decode())
assert header == {"descr": "<f4", "fortran_order": False, "shape": (4, 48)}, header
values = struct.unpack("<192f", data[10 + length:])
assert all(abs(a - b) < 1e-6 for a, b in zip(values, sum((row["vector"] for row in rows), [])))
PY
"$MULCIBER" embed -m "$model" --query "Why did the smith melt?" --top 2 lines >ranks
[[ $(wc -l <ranks) == 2 && $(head -n 1 ranks) == $'1.0000\t3\tWhy did the smith melt?' ]] || fail "ranks: $(cat ranks)"
"$MULCIBER" embed -m "$model" --json --query "Why did the smith melt?" --top 1 lines |
  python3 -c 'import json, sys; row = json.load(sys.stdin); assert row["line"] == 3 and row["score"] > 0.9999' ||
  fail "ranks as JSON"
"$MULCIBER" embed -m "$model" --stats lines 2>stats >/dev/null
for words in "padding" "tokens/s" "MiB weights"; do grep -q "$words" stats || fail "no '$words' in --stats"; done
[[ -z $("$MULCIBER" embed -m "$model" </dev/null) ]] || fail "no input"
python3 -c 'print("iron " * 60)' >long
"$MULCIBER" embed -m "$model" long 2>err >/dev/null
grep -q "1 of 1 texts are longer than 48 tokens, and were cut" err || fail "cut texts are not told: $(cat err)"
says 2 "the model takes at most 48" "$MULCIBER" embed -m "$model" --no-truncate long
says 2 "is none of the model's" "$MULCIBER" embed -m "$model" --prompt query lines
says 2 "cannot be read" "$MULCIBER" embed -m "$model" no-such-file
says 2 "requires --query" "$MULCIBER" embed -m "$model" --top 2 lines
says 2 "turns texts into vectors" "$MULCIBER" embed -m "$MULCIBER_SOURCE/tests/data/marian" lines
says 2 "mulciber classify" "$MULCIBER" translate -m "$model" text

"$MULCIBER" embed -m "$MULCIBER_SOURCE/tests/data/gguf_encoders/roberta_cls.gguf" lines >gguf
python3 - <<'PY' || fail "vectors of a GGUF file"
import json
rows = [[value for line in open(name) for value in json.loads(line)["vector"]] for name in ("gguf", "starts")]
assert len(rows[0]) == len(rows[1]) == 192
assert all(abs(a - b) < 1e-6 for a, b in zip(*rows))
PY
says 2 "is no text: it holds bytes of zero" "$MULCIBER" embed -m "$model" "$MULCIBER_SOURCE/tests/data/digits.png"

"$MULCIBER" bench -m "$model" -r 1 --json |
  python3 -c 'import json, sys; b = json.load(sys.stdin); assert b["sorted_tps"] > 0 and b["sorted_padding"] < b["mixed_padding"]' ||
  fail "bench -m"

"$MULCIBER" classify -m "$model" lines >labels
[[ $(wc -l <labels) == 4 ]] || fail "4 lines in, $(wc -l <labels) out"
grep -qE '^LABEL_[01] 0\.[5-9][0-9]{3}\sLABEL_[01] 0\.[0-4][0-9]{3}$' labels || fail "labels: $(cat labels)"
printf 'The red hammer.\tthe anvil\nWhy?\tthe anvil\n' >pairs
"$MULCIBER" classify -m "$model" --json pairs >tabbed
printf 'The red hammer.\nWhy?\n' >firsts
"$MULCIBER" classify -m "$model" --json --pair "the anvil" firsts | cmp - tabbed || fail "--pair and a tab differ"
"$MULCIBER" classify -m "$model" --json firsts >singles
python3 - <<'PY' || fail "labels as JSON"
import json
pair, single = [json.loads(open(name).readline()) for name in ("tabbed", "singles")]
assert pair["pair"] == "the anvil" and "pair" not in single
assert pair["tokens"] > single["tokens"] and pair["logits"] != single["logits"]
assert abs(sum(pair["probabilities"].values()) - 1) < 1e-6
PY
says 2 "ForQuestionAnswering" "$MULCIBER" answer -m "$model" --passage lines "why?"

# The classifier's two rows become those of start and end.
mkdir reader
cp "$model"/tokenizer.json reader
python3 - "$model" <<'PY'
import json, struct, sys
config = json.load(open(sys.argv[1] + "/config.json"))
config["architectures"] = ["RobertaForQuestionAnswering"]
json.dump(config, open("reader/config.json", "w"))
data = open(sys.argv[1] + "/model.safetensors", "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = data[8:8 + length].replace(b"classifier.out_proj", b"qa_outputs").ljust(length)
open("reader/model.safetensors", "wb").write(data[:8] + header + data[8 + length:])
PY
"$MULCIBER" answer -m reader --passage lines --best 2 --json "why did he melt it?" >answers
python3 - <<'PY' || fail "answers: $(cat answers)"
import json
passage = open("lines", "rb").read()
answers = [json.loads(line) for line in open("answers")]
assert len(answers) == 2 and answers[0]["score"] >= answers[1]["score"] > 0
assert all(passage[a["begin"]:a["end"]].decode() == a["text"] for a in answers)
PY
"$MULCIBER" answer -m reader --passage - --best 1000 --may-be-none "why?" <<<"The red hammer." >all
[[ $(grep -c "(the passage does not say)" all) == 1 ]] || fail "no answer that there is none: $(cat all)"
says 2 "leaves no room" "$MULCIBER" answer -m reader --passage lines "$(cat long)"
says 2 "QUESTION: is empty" "$MULCIBER" answer -m reader --passage lines " "
says 2 "holds no words" "$MULCIBER" answer -m reader --passage - "why?" <<<" "
says 2 "no head that classifies" "$MULCIBER" classify -m reader lines
echo "encoders: vectors, labels and answers"
