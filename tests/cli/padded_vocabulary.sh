#!/usr/bin/env bash
# A model whose embedding has more rows than its tokenizer has tokens, as models are filled up to round numbers: ids of
# those rows are no text wherever they come from. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
# 420 rows for 400 tokens, and a draft model of 400 rows.
chat_model wide
python3 - <<'PYTHON'
import json, shutil, struct
tokenizer = json.load(open("wide/tokenizer.json"))
tokenizer["model"]["vocab"] = {piece: id for piece, id in tokenizer["model"]["vocab"].items() if id < 400}
json.dump(tokenizer, open("wide/tokenizer.json", "w"))
shutil.copytree("wide", "narrow")
config = json.load(open("narrow/config.json"))
config["vocab_size"] = 400
json.dump(config, open("narrow/config.json", "w"))
raw = open("wide/model.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
header.pop("__metadata__", None)
made = b""
for name, tensor in header.items():
    begin, end = tensor["data_offsets"]
    if tensor["shape"][0] == 420:
        end = begin + (end - begin) // 420 * 400
        tensor["shape"][0] = 400
    tensor["data_offsets"] = [len(made), len(made) + end - begin]
    made += data[begin:end]
text = json.dumps(header).encode()
open("narrow/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + made)
PYTHON

draw=(generate -m wide --raw -p "The red hammer" -n 80 --ignore-end --temperature 3 --seed 2 --context 128 --json)
exits 0 "$MULCIBER" "${draw[@]}"
cp out plain
exits 0 "$MULCIBER" "${draw[@]}" --draft narrow
python3 - <<'PYTHON' || fail "drafted: $(head -c 600 out)"
import json
plain, drafted = json.load(open("plain")), json.load(open("out"))
assert max(plain["ids"]) >= 400 and len(plain["ids"]) == 80, plain["ids"]
assert drafted["ids"] == plain["ids"] and drafted["text"] == plain["text"]
PYTHON
echo "The red hammer" >text
exits 0 "$MULCIBER" score -m wide --json --top 420 text

serve -m chat=wide --draft narrow --sequences 4
ask /v1/completions '{"prompt":[5,410,6,400],"max_tokens":40,"ignore_eos":true,"temperature":2,"seed":2,"logprobs":5,"echo":true}'
[[ $status == 200 ]] || fail "ids that are no text: $(cat answer)"
ask /detokenize '{"tokens":[5,410,6]}'
cp answer with
ask /detokenize '{"tokens":[5,6]}'
cmp -s answer with || fail "/detokenize: $(cat with answer)"
refuses 400 "" prompt /v1/completions '{"prompt":[5,420]}'
refuses 400 "" tokens /detokenize '{"tokens":[420]}'
stop_server
