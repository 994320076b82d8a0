#!/usr/bin/env bash
# --lora of generate, score and perplexity, and adapters of `mulciber serve`. MULCIBER and MULCIBER_SOURCE come from
# ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
data=$MULCIBER_SOURCE/tests/data
model=$data/gguf_families/qwen2
all=$data/lora/qwen2_all
some=$data/lora/qwen2_some

answer() { exits 0 "$MULCIBER" generate -m "$1" --temperature 0 --ignore-end --json -n 12 -p "the and in the thing" "${@:2}"; }
text() { python3 -c 'import json; print(json.load(open("out"))["ids"])'; }

answer "$model" && none=$(text)
answer "$model" --lora "$all" && whole=$(text)
answer "$model" --lora "$all=0.5" --lora "$some=1.25" && mixed=$(text)
[[ $none != "$whole" && $whole != "$mixed" ]] || fail "adapters change nothing: $none $whole $mixed"
{ answer "$model" --lora "$all=0" && [[ $(text) == "$none" ]]; } || fail "a scale of 0: $(cat out)"
{ answer "$model" --lora "$all" --merge-lora && [[ $(text) == "$whole" ]]; } || fail "--merge-lora: $(cat out)"
# Model and adapters in either format.
for base in "$model" "$model.gguf"; do
  for adapter in "$all" "$all.gguf"; do
    for how in "" --merge-lora; do
      { answer "$base" --lora "$adapter" $how && [[ $(text) == "$whole" ]]; } || fail "$base with $adapter $how: $(cat out)"
    done
    { answer "$base" --lora "$adapter=0.5" --lora "$some=1.25" && [[ $(text) == "$mixed" ]]; } || fail "$base with $adapter and $some: $(cat out)"
  done
done

printf 'the and in the thing\n' >lines
exits 0 "$MULCIBER" score -m "$model" lines && cp out bare
exits 0 "$MULCIBER" score -m "$model" --lora "$all=0.5" lines
! cmp -s out bare || fail "score --lora"
for ((i = 0; i < 30; ++i)); do cat lines; done >long
exits 0 "$MULCIBER" perplexity -m "$model" --context 32 long && cp out bare
exits 0 "$MULCIBER" perplexity -m "$model" --context 32 --lora "$all" long && cp out beside
! cmp -s beside bare || fail "perplexity --lora"

refused() { says 2 "$1" "$MULCIBER" "${@:2}"; }
refused "has no adapter_config.json" generate -m "$model" -p a --lora "$work"
refused "cannot be opened" generate -m "$model" -p a --lora ""
refused "no such matrix" generate -m "$model" -p a --lora "$data/lora/gpt2_all"
refused "no such matrix" generate -m "$model.gguf" -p a --lora "$data/lora/gpt2_all"
refused "made for the architecture gpt2" generate -m "$model" -p a --lora "$data/lora/gpt2_all.gguf"
refused "scale nan" generate -m "$model" -p a --lora "$all=nan"
refused "two adapters" generate -m "$model" -p a --lora "$all" --lora "$all=2"
exits 2 "$MULCIBER" generate -m "$model" -p a --merge-lora

serve -m m="$model" --lora all="$all" --lora m:some="$some" --sequences 3
curl -sS "$url/v1/models" >answer
python3 - <<'PYTHON' || fail "/v1/models: $(cat answer)"
import json
models = json.load(open("answer"))["data"]
assert [m["id"] for m in models] == ["m", "m:all", "m:some"] and models[1]["parent"] == "m", models
PYTHON
curl -sS "$url/v1/models/m:all" | grep -q '"id":"m:all"' || fail "/v1/models/m:all"
asked='"prompt":"the and in the thing","temperature":0,"ignore_eos":true,"max_tokens":12'
python3 - "$url" "$none" "$whole" "$mixed" <<'PYTHON' || fail "adapters of requests"
import json, subprocess, sys, threading, urllib.request
url = sys.argv[1]
texts = [json.loads(text) for text in sys.argv[2:]]
def ask(**fields):
    body = {"prompt": "the and in the thing", "temperature": 0, "ignore_eos": True, "max_tokens": 12, **fields}
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", json.dumps(body).encode())) as answer:
        return json.load(answer)
def words(ids):
    body = json.dumps({"model": "m:all", "tokens": ids}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/detokenize", body)) as answer:
        return json.load(answer)["text"]
none, whole, mixed = map(words, texts)
both = [{"name": "all", "scale": 0.5}, {"name": "some", "scale": 1.25}]
requests = [({"model": "m"}, none), ({"model": "m:all"}, whole), ({"lora": both}, mixed), ({"lora": [{"name": "all"}]}, whole),
            ({"model": "m:some", "lora": [{"name": "all", "scale": 0}]}, None), ({}, none)]
found = [None] * len(requests)
def one(i):
    found[i] = ask(**requests[i][0])
threads = [threading.Thread(target=one, args=(i,)) for i in range(len(requests))]
[t.start() for t in threads], [t.join() for t in threads]
for (fields, expected), answer in zip(requests, found):
    text = answer["choices"][0]["text"]
    assert expected is None or text == expected, (fields, text, expected)
    assert answer["model"] == fields.get("model", "m"), answer
assert found[4]["choices"][0]["text"] not in (none, whole)
PYTHON
# What tokens read of one another is that of the adapter, too.
maps() {
  ask /attention "{$1,\"prompt\":\"the and\",\"${3:-completion}\":\" in the thing\"}"
  [[ $status == 200 ]] || fail "/attention: $(cat answer)"
  cp answer "$2"
}
maps '"model":"m"' of_none
maps '"model":"m:all"' of_all
maps '"lora":[{"name":"all"}]' listed answer  # deprecated name
python3 - <<'PYTHON' || fail "the attention of an adapter"
import json
none, named, listed = (json.load(open(name))["sentences"][0] for name in ("of_none", "of_all", "listed"))
assert (none["model"], named["model"], listed["model"]) == ("m", "m:all", "m"), named["model"]
assert named["attention"] == listed["attention"] != none["attention"]
PYTHON
bad() { # STATUS CODE PARAM WORD FIELDS
  refuses "$1" "$2" "$3" /v1/completions "{$asked,$5}"
  grep -q "$4" answer || fail "$5: $(cat answer)"
}
bad 404 model_not_found model "m:other" '"model":"m:other"'
bad 400 adapter_not_found lora "no adapter 'other'" '"lora":[{"name":"other"}]'
bad 400 "" lora "asked for twice" '"model":"m:all","lora":[{"name":"all"}]'
bad 400 "" "lora[0].scale" "lora\[0\].scale" '"lora":[{"name":"all","scale":"x"}]'
bad 400 "" lora "must be a list" '"lora":"all"'
bad 400 "" "lora[0].name" "no name" '"lora":[{}]'
stop_server
# A GGUF model with adapters of both formats.
serve -m m="$model.gguf" --lora all="$all" --lora some="$some" --lora file="$all.gguf"
python3 - "$url" "$none" "$whole" "$mixed" <<'PYTHON' || fail "adapters of a GGUF model"
import json, sys, urllib.request
url, (none, whole, mixed) = sys.argv[1], map(json.loads, sys.argv[2:])
def post(path, **body):
    with urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode())) as answer:
        return json.load(answer)
def answer(**fields):
    return post("/v1/completions", prompt="the and in the thing", temperature=0, ignore_eos=True, max_tokens=12, **fields)["choices"][0]["text"]
words = lambda ids: post("/detokenize", model="m", tokens=ids)["text"]
assert answer(model="m") == words(none)
assert answer(model="m:all") == answer(model="m:file") == words(whole)
assert answer(lora=[{"name": "file", "scale": 0.5}, {"name": "some", "scale": 1.25}]) == words(mixed)
PYTHON
stop_server
refused "has no path" serve -m m="$model" --lora all
refused "no language model 'x'" serve -m m="$model" --lora x:all="$all"
refused "two adapters" serve -m m="$model" --lora all="$all" --lora all="$some"
