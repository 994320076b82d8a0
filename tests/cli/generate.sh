#!/usr/bin/env bash
# `mulciber generate`: the answer of the small model, its pieces, limits and errors. MULCIBER and
# MULCIBER_SOURCE come from ctest.
set -euo pipefail
model=$MULCIBER_SOURCE/tests/data/gemma3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"
exec </dev/null
generate() { exits 0 "$MULCIBER" generate -m "$model" --ignore-end "$@"; }

generate -p "The red hammer" -n 12
[[ -s out ]] || fail "no answer"
cp out wanted
for steps in 1 5; do
  generate -p "The red hammer" -n 12 --steps-per-submission "$steps"
  cmp -s out wanted || fail "another answer with $steps steps per submission"
done
# Devices that allow few workgroups do the same work in them.
for groups in 2 8; do
  generate -p "The red hammer" -n 12 --limits groups=$groups
  cmp -s out wanted || fail "another answer in grids of $groups workgroups"
done
printf 'The red hammer' >prompt.txt
generate --prompt-file prompt.txt -n 12
cmp -s out wanted || fail "another answer from a file"

generate -p "The red hammer" -n 12 --json --stats
python3 - <<'PYTHON' || fail "generate --json"
import json
answer, wanted = json.load(open("out")), open("wanted", "rb").read().decode("utf-8", "replace")
assert answer["text"] + "\n" == wanted and len(answer["ids"]) == 12 and answer["end"] == "token limit"
s = answer["statistics"]
assert s["new_tokens"] == 12 and s["decode_tps"] > 0 and s["prefill_tps"] > 0
assert s["predicted_device_bytes"] * 1.1 >= s["weight_bytes"] > 0
PYTHON

# Sampling: the seed says what is drawn, the number of steps per submission does not.
generate -p "The red hammer" -n 12 --temperature 1.5 --top-k 50 --min-p 0.001 --seed 11
grep -q '^sampling: temperature 1.5, top k 50, min p 0.001, seed 11$' err || fail "no word on sampling: $(cat err)"
cp out drawn
cmp -s drawn wanted && fail "drawn as if greedy"
generate -p "The red hammer" -n 12 --temperature 1.5 --top-k 50 --min-p 0.001 --seed 11 --steps-per-submission 5
cmp -s out drawn || fail "other tokens are drawn with 5 steps per submission"
generate -p "The red hammer" -n 12 --top-k 1 --seed 4
cmp -s out wanted || fail "the likeliest alone is not the likeliest"
generate -p "The red hammer" -n 12 --temperature 0
cmp -s out wanted || fail "temperature 0 is not the likeliest"
[[ ! -s err ]] || fail "greedy decoding needs no words: $(cat err)"
cp -r "$model" sampling
echo '{"do_sample": true, "temperature": 0.7, "top_k": 64, "top_p": 0.95}' >sampling/generation_config.json
exits 0 "$MULCIBER" generate -m sampling --ignore-end -p "The red hammer" -n 3
grep -q "^sampling: temperature 0.7, top k 64, top p 0.95, seed [0-9]* (from the model's files)$" err || fail "$(cat err)"
exits 0 "$MULCIBER" generate -m sampling --ignore-end -p "The red hammer" -n 12 --temperature 0
cmp -s out wanted || fail "the command line does not win over generation_config.json"
"$MULCIBER" generate -m "$model" -p x --top-p 2 >out 2>err && fail "top p of 2 is taken"
# Answers by a grammar.
exits 0 "$MULCIBER" generate -m "$model" -p "A nail:" --seed 3 --temperature 1 --json-schema '{"type": "object", "properties":
  {"size": {"type": "integer", "minimum": 1, "maximum": 99}, "kind": {"enum": ["nail", "hammer"]}}, "required": ["size", "kind"]}'
python3 -c 'import json; a = json.load(open("out")); assert 1 <= a["size"] <= 99 and a["kind"] in ("nail", "hammer"), a' || fail "a schema: $(cat out)"
echo '{"enum": ["a hammer"]}' >schema.json
exits 0 "$MULCIBER" generate -m "$model" -p "A nail:" --json-schema schema.json
[[ $(cat out) == '"a hammer"' ]] || fail "a schema in a file: $(cat out)"
exits 0 "$MULCIBER" generate -m "$model" -p "A nail:" --regex '[a-f]{3}-[0-9]{2}'
grep -qxE '[a-f]{3}-[0-9]{2}' out || fail "an expression: $(cat out)"
printf 'root ::= "(" root ")" | [0-9]' >nested.gbnf
exits 0 "$MULCIBER" generate -m "$model" -p "A nail:" -n 60 --grammar nested.gbnf --temperature 1 --seed 2
grep -qxE '\(*[0-9]?\)*' out || fail "a grammar: $(cat out)"
exits 2 "$MULCIBER" generate -m "$model" -p x --json-schema '{"not": {}}'
grep -q "uses the keyword 'not', which is not supported" err || fail "a keyword: $(cat err)"
exits 2 "$MULCIBER" generate -m "$model" -p x --regex '(a)\1'
grep -q "back-reference" err || fail "a back-reference: $(cat err)"
"$MULCIBER" generate -m "$model" -p x --temperature -1 >out 2>err && fail "a temperature below 0 is taken"

# A model with a chat template gets a question, unless --raw says otherwise.
cp -r "$model" chat
echo "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}[model]" >chat/chat_template.jinja
exits 0 "$MULCIBER" generate -m chat --ignore-end -p "The red hammer" --system "Be brief." -n 12 --json
cp out asked
exits 0 "$MULCIBER" generate -m chat --ignore-end --raw -p "The red hammer" -n 12
cmp -s out wanted || fail "--raw does not continue the text"
exits 0 "$MULCIBER" generate -m chat --ignore-end --raw -p "<bos>[system] Be brief. [user] The red hammer [model]" -n 12 --json
python3 - <<'PYTHON' || fail "the template's text is not what the model gets"
import json
asked, raw = json.load(open("asked")), json.load(open("out"))
assert asked["chat"] and not raw["chat"]
# --raw adds the token that begins a text, and the template has written it.
assert raw["prompt_ids"][1:] == asked["prompt_ids"] and raw["prompt_ids"][0] == raw["prompt_ids"][1]
PYTHON
exits 0 "$MULCIBER" generate -m "$model" --shift --system "Be brief." -p "The red hammer" -n 12 --json
grep -q 'no chat template.*--template dialogue' err || fail "a system prompt without a template: $(cat err)"
cp out asked
exits 0 "$MULCIBER" generate -m "$model" --shift --template dialogue --system "Be brief." -p "The red hammer" -n 12 --json
cmp -s out asked || fail "dialogue is not what is taken by itself"
exits 2 "$MULCIBER" generate -m "$model" --template chatmi -p x
"$MULCIBER" generate -m "$model" --raw --template chatml -p x >out 2>err && fail "--raw with a template is taken"

# Attention maps of prompt and answer, and heads switched off.
generate -p "The red hammer" -n 12 --attention map.json
cmp -s out wanted || fail "--attention changes the answer"
grep -q '^wrote map.json$' err || fail "--attention says nothing: $(cat err)"
python3 - <<'PYTHON' || fail "--attention map.json"
import json
sentence = json.load(open("map.json"))["sentences"][0]
tokens, kinds = sentence["target"]["tokens"], sentence["attention"]
assert [kind["kind"] for kind in kinds] == ["decoder", "decoder_rollout"] and sentence["source"]["tokens"] == []
assert sentence["prompt_tokens"] == len(tokens) - 12 and kinds[0]["windows"] == [5, 5, 0]
for kind in kinds:
    assert kind["queries"] == kind["keys"] == len(tokens)
    for layer in kind["weights"]:
        for head in layer:
            for query, row in enumerate(head):
                assert abs(sum(row) - 1) < 1e-4 and not any(row[query + 1:])
assert all(not any(row[:max(0, query - 4)]) for query, row in enumerate(kinds[0]["weights"][0][0]))
PYTHON
generate -p "The red hammer" -n 12 --attention map.html
grep -q '"triangle":true' map.html || fail "--attention map.html"
generate -p "The red hammer" -n 12 --attention map.svg --attention-view 'decoder.1.*'
grep -q 'layer 2, head 4' map.svg || fail "--attention map.svg"
exits 2 "$MULCIBER" generate -m "$model" -p x --attention map.png
exits 2 "$MULCIBER" generate -m "$model" -p x -n 2400 --attention map.json
grep -q 'at most 2364 tokens' err || fail "a map too large: $(cat err)"
generate -p "The red hammer" -n 12 --mask-heads decoder.0.1 decoder.2.3
cmp -s out wanted && fail "--mask-heads changes nothing"
exits 2 "$MULCIBER" generate -m "$model" -p x --mask-heads cross.0.1
exits 2 "$MULCIBER" generate -m "$model" -p x --mask-heads decoder.9.1
grep -q '3 layers of 4 heads' err || fail "a head that is not there: $(cat err)"

# A prompt cache: the second run computes less, and answers the same.
for turn in first second; do
  generate -p "The red hammer" -n 12 --prompt-cache kept --json --stats
  cp out "$turn"
done
python3 - <<'PYTHON' || fail "--prompt-cache"
import json
first, second = json.load(open("first")), json.load(open("second"))
assert first["ids"] == second["ids"]
assert first["statistics"]["reused_tokens"] == 0 and second["statistics"]["reused_tokens"] == len(first["prompt_ids"]) - 1
PYTHON
echo damaged >kept
exits 2 "$MULCIBER" generate -m "$model" -p x --prompt-cache kept

# A text model beside a vision tower: its configuration stands in text_config, its tensors behind a prefix, which newer
# folders have in the middle of their names.
python3 - "$model" <<'PYTHON'
import json, os, shutil, struct, sys
data = open(f"{sys.argv[1]}/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
for folder, old, new in (("vision", "model.", "language_model.model."), ("newer", "model.", "model.language_model.")):
    shutil.copytree(sys.argv[1], folder)
    config = json.load(open(f"{folder}/config.json"))
    config["model_type"] = "gemma3_text"
    json.dump({"model_type": "gemma3", "text_config": config, "vision_config": {}}, open(f"{folder}/config.json", "w"))
    assert sum(name.startswith(old) for name in header) > 30
    named = {new + name[len(old):] if name.startswith(old) else name: value for name, value in header.items()}
    text = json.dumps(named).encode()
    text += b" " * (-len(text) % 8)
    open(f"{folder}/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
PYTHON
for folder in vision newer; do
  exits 0 "$MULCIBER" generate -m $folder --ignore-end -p "The red hammer" -n 12
  cmp -s out wanted || fail "the text model beside a vision tower answers otherwise in $folder"
done

# A GGUF file's recommendations are those of a generation_config.json; the parts of a split file are one model.
families=$MULCIBER_SOURCE/tests/data/gguf_families
exits 0 "$MULCIBER" generate -m "$families/qwen2.gguf" --ignore-end -p "the hand" -n 12 --seed 3 --json
cp out by_file
exits 0 "$MULCIBER" generate -m "$families/qwen2" --ignore-end -p "the hand" -n 12 --seed 3 --json
python3 - <<'PYTHON' || fail "the GGUF file draws otherwise than the folder"
import json
file, folder = json.load(open("by_file")), json.load(open("out"))
assert file["ids"] == folder["ids"] and file["sampling"] == folder["sampling"] and file["sampling"]["top_k"] == 20, (file, folder)
PYTHON
exits 0 "$MULCIBER" generate -m "$families/qwen3-00001-of-00003.gguf" --ignore-end -p "the hand" -n 12 --json
cp out by_file
exits 0 "$MULCIBER" generate -m "$families/qwen3" --ignore-end -p "the hand" -n 12 --json
python3 -c 'import json; assert json.load(open("by_file"))["ids"] == json.load(open("out"))["ids"]' || fail "a split file answers otherwise than the folder"

generate -p "The red hammer" --context 24
grep -q 'context of 24 tokens is full' err || fail "a full context goes unsaid"
exits 2 "$MULCIBER" generate -m "$model" -p "$(printf 'word %.0s' {1..200})" --context 24
grep -q 'context of 24' err || fail "a prompt too long: $(cat err)"
# With --shift both go on, without the oldest tokens.
generate -p "The red hammer" --context 24 --shift -n 60 --json
python3 -c 'import json; a = json.load(open("out")); assert len(a["ids"]) == 60 and a["left_out"] > 0 and a["end"] == "token limit", a' || fail "--shift"
generate -p "$(printf 'word %.0s' {1..200})" --context 24 --shift --keep 3 -n 5
grep -q 'the context of 24 tokens was full: the [0-9]* oldest were left out' err || fail "what is left out goes unsaid: $(cat err)"
exits 2 "$MULCIBER" generate -m "$model" -p x --context 24 --shift --keep 21
grep -q 'keep: is 21 of a context of 24' err || fail "keeps more than there is: $(cat err)"
exits 2 "$MULCIBER" generate -m "$model"
exits 2 "$MULCIBER" generate -m "$model" -p x --context 1000000
exits 2 "$MULCIBER" generate -m "$model" -p x --kv q8_0
grep -q 'blocks of 32' err || fail "heads of 20 in q8_0: $(cat err)"
exits 2 "$MULCIBER" generate -m "$MULCIBER_SOURCE/tests/data/marian" -p x
grep -q 'marian' err || fail "a model that does not continue texts: $(cat err)"
exits 2 "$MULCIBER" translate -m "$model" x

exits 0 "$MULCIBER" bench -m "$model" -p 9 -n 4 -r 1 --json
python3 -c 'import json; r = json.load(open("out")); assert r["prefill_tps"] > 0 and r["decode_tps"] > 0 and r["kernels"]' ||
  fail "bench -m"
exits 0 "$MULCIBER" bench -m "$model" -p 9 -n 6 -r 2 --json --json-schema '{"type": "array", "items": {"type": "string"}, "minItems": 9}'
python3 -c 'import json; r = json.load(open("out")); assert r["steps"] == 12 and 0 < r["grammar_share"] < 1 and r["with"]["seconds"] > r["grammar_seconds"] > 0 and r["without"]["processor_seconds"] > 0, r' ||
  fail "bench -m with a schema: $(cat out)"
exits 2 "$MULCIBER" bench -m "$model" -p 9 -n 6 -r 1 --regex '('
