#!/usr/bin/env bash
# `mulciber serve`, asked with curl: answers and streams, what is refused and how, keys, limits, clients that leave,
# and how it stops. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat
marian=$MULCIBER_SOURCE/tests/data/marian

"$MULCIBER" generate -m chat --raw --ignore-end -p "The red hammer" -n 12 --json >raw
"$MULCIBER" generate -m chat --ignore-end -p "The red hammer" -n 12 --json >asked
serve -m chat -m en-de="$marian" --sequences 4 --queue 4 --body 1 --header-seconds 3600 --body-seconds 3600 \
  --stop-seconds 3600 --clients 64

curl -sS "$url/health" | grep -q '"ok"' || fail "/health"
curl -sS "$url/v1/models" >answer
python3 -c 'import json; m = json.load(open("answer"))["data"]; assert [x["id"] for x in m] == ["chat", "en-de"] and m[0]["chat"], m' || fail "/v1/models"
curl -sS "$url/v1/models/en-de" | grep -q '"object":"model"' || fail "/v1/models/en-de"

# The answers are those of `mulciber generate`.
greedy='"model":"chat","temperature":0,"ignore_eos":true,"max_tokens":12'
ask /v1/completions "{$greedy,\"prompt\":\"The red hammer\"}"
python3 - <<'PYTHON' || fail "/v1/completions: $(cat answer)"
import json
answer, wanted = json.load(open("answer")), json.load(open("raw"))
assert answer["object"] == "text_completion" and answer["choices"][0]["text"] == wanted["text"], (answer, wanted)
assert answer["choices"][0]["finish_reason"] == "length" and answer["choices"][0]["logprobs"] is None
assert answer["usage"] == {"prompt_tokens": len(wanted["prompt_ids"]), "completion_tokens": 12,
                           "total_tokens": len(wanted["prompt_ids"]) + 12,
                           "prompt_tokens_details": {"cached_tokens": 0},
                           "completion_tokens_details": {"accepted_prediction_tokens": 0,
                                                         "rejected_prediction_tokens": 0}}, answer["usage"]
PYTHON
ask /v1/chat/completions "{$greedy,\"messages\":[{\"role\":\"user\",\"content\":\"The red hammer\"}]}"
python3 - <<'PYTHON' || fail "/v1/chat/completions: $(cat answer)"
import json
answer, wanted = json.load(open("answer")), json.load(open("asked"))
message = answer["choices"][0]["message"]
assert answer["object"] == "chat.completion" and message["role"] == "assistant" and message["content"] == wanted["text"]
assert answer["usage"]["prompt_tokens"] == len(wanted["prompt_ids"])
PYTHON
# A stream holds the same text in pieces.
ask /v1/chat/completions "{$greedy,\"messages\":[{\"role\":\"user\",\"content\":\"The red hammer\"}],\"stream\":true,\"stream_options\":{\"include_usage\":true}}"
python3 - <<'PYTHON' || fail "a stream: $(cat answer)"
import json
wanted = json.load(open("asked"))
events = open("answer").read().split("\n\n")
assert events[-1] == "" and events[-2] == "data: [DONE]", events[-2:]
chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks) and len({chunk["id"] for chunk in chunks}) == 1
*pieces, usage = chunks
assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 12
assert all(chunk["usage"] is None for chunk in pieces)
assert pieces[0]["choices"][0]["delta"]["role"] == "assistant" and len(pieces) > 3
assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in pieces) == wanted["text"]
assert [chunk["choices"][0]["finish_reason"] for chunk in pieces] == [None] * (len(pieces) - 1) + ["length"]
PYTHON

# Several answers by chance: the seed says which, whoever else asks.
drawn='"model":"chat","temperature":1.2,"seed":7,"n":3,"max_tokens":8,"ignore_eos":true,"prompt":"The red hammer"'
ask /v1/completions "{$drawn}"
cp answer first
for ((i = 0; i < 3; ++i)); do
  curl -sS -d "{\"model\":\"chat\",\"ignore_eos\":true,\"max_tokens\":4000,\"prompt\":\"Other words $i\"}" "$url/v1/completions" >/dev/null 2>&1 &
  others[i]=$!
done
becomes mulciber_completions 3
ask /v1/completions "{$drawn}"
kill "${others[@]}"
wait "${others[@]}" || true
becomes mulciber_completions 0
python3 - <<'PYTHON' || fail "answers drawn with a seed: $(cat first answer)"
import json
first, second = ([c["text"] for c in json.load(open(name))["choices"]] for name in ("first", "answer"))
assert len(first) == 3 and len(set(first)) == 3 and first == second, (first, second)
PYTHON
# A stop text ends the answer and is no part of it; log probabilities add up to the text.
ask /v1/completions "{$greedy,\"prompt\":\"The red hammer\",\"logprobs\":3}"
python3 - <<'PYTHON' || fail "logprobs: $(cat answer)"
import json
choice = json.load(open("answer"))["choices"][0]
given = choice["logprobs"]
assert len(given["tokens"]) == len(given["token_logprobs"]) == len(given["top_logprobs"]) == 12, given
assert all(p <= 0 and p == max(top.values()) for p, top in zip(given["token_logprobs"], given["top_logprobs"])), given
assert all(1 <= len(top) <= 3 for top in given["top_logprobs"])
text = choice["text"]
open("word", "w").write(json.dumps(text[len(text) // 2:len(text) // 2 + 3]))
open("before", "w").write(text[:text.index(text[len(text) // 2:len(text) // 2 + 3])])
PYTHON
ask /v1/completions "{$greedy,\"prompt\":\"The red hammer\",\"stop\":$(cat word)}"
python3 -c 'import json; c = json.load(open("answer"))["choices"][0]; assert c["finish_reason"] == "stop" and c["text"] == open("before").read(), c' || fail "stop: $(cat answer word)"
ask /v1/chat/completions "{$greedy,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":true,\"top_logprobs\":2}"
python3 - <<'PYTHON' || fail "logprobs of a chat: $(cat answer)"
import json
for token in json.load(open("answer"))["choices"][0]["logprobs"]["content"]:
    assert len(token["top_logprobs"]) == 2 and bytes(token["bytes"]).decode(errors="replace") == token["token"]
PYTHON
# Tokens that are parts of characters: their bytes are those of the text.
ask /v1/chat/completions '{"model":"chat","messages":[{"role":"user","content":"x"}],"grammar":"root ::= \"\u00e9\u6f22\ud83d\ude00 a\"","logprobs":true,"max_tokens":50}'
python3 - <<'PYTHON' || fail "bytes of a chat: $(cat answer)"
import json
choice = json.load(open("answer"))["choices"][0]
tokens = choice["logprobs"]["content"]
assert choice["message"]["content"] == "\u00e9\u6f22\U0001f600 a", choice
assert any(len(token["bytes"]) == 1 and token["bytes"][0] > 127 for token in tokens), tokens
assert b"".join(bytes(token["bytes"]) for token in tokens).decode() == choice["message"]["content"], tokens
PYTHON
# A prompt that is echoed has the probabilities that `mulciber score` gives.
echo "The red hammer" >text
"$MULCIBER" score -m chat --json text >scores
ask /v1/completions '{"model":"chat","prompt":"The red hammer","echo":true,"logprobs":1,"max_tokens":0}'
python3 - <<'PYTHON' || fail "echo with logprobs: $(cat answer scores)"
import json
given, wanted = json.load(open("answer"))["choices"][0]["logprobs"], json.load(open("scores"))["tokens"]
assert given["tokens"] == [token["token"].replace("▁", " ") for token in wanted] and "".join(given["tokens"]) == "The red hammer", given
assert all(abs(p - token["log_probability"]) < 1e-4 for p, token in zip(given["token_logprobs"], wanted)), given
PYTHON
# Prompts of ids are their texts, also where they are echoed; what they begin with was read before.
ask /tokenize '{"model":"chat","text":"The red hammer"}'
python3 -c 'import json; print(json.load(open("answer"))["tokens"])' >ids
ask /v1/completions "{$greedy,\"prompt\":$(cat ids),\"echo\":true,\"logprobs\":0}"
cp answer by_ids
ask /v1/completions "{$greedy,\"prompt\":\"The red hammer\",\"echo\":true,\"logprobs\":0}"
python3 - <<'PYTHON' || fail "a prompt of ids: $(cat by_ids answer)"
import json
by_ids, by_text = (json.load(open(name)) for name in ("by_ids", "answer"))
assert by_ids["choices"] == by_text["choices"] and by_ids["usage"] == by_text["usage"], (by_ids, by_text)
PYTHON
ask /v1/completions "{$greedy,\"prompt\":[$(cat ids),$(cat ids)]}"
python3 -c 'import json; w = json.load(open("raw"))["text"]; assert [c["text"] for c in json.load(open("answer"))["choices"]] == [w, w]' || fail "prompts of ids: $(cat answer)"
refuses 400 "" prompt /v1/completions '{"model":"chat","prompt":[1,16000000]}'
refuses 400 "" prompt /v1/completions '{"model":"chat","prompt":[[1],[]]}'
long_prompt=$(printf 'word %.0s' {1..300})
for cached in "== 0" ">= 100"; do
  ask /v1/completions "{$greedy,\"prompt\":\"$long_prompt\"}"
  python3 -c "import json; u = json.load(open('answer'))['usage']; assert u['prompt_tokens_details']['cached_tokens'] $cached, u" || fail "cached_tokens"
done
# A token that is forbidden does not come.
ask /tokenize '{"model":"chat","text":"The red hammer","add_special":false}'
python3 -c 'import json; a = json.load(open("answer")); assert a["count"] == len(a["tokens"]) == len(a["pieces"]) > 1' || fail "/tokenize"
python3 -c 'import json; print(json.dumps({"model": "chat", "tokens": json.load(open("answer"))["tokens"]}))' >ids
ask /detokenize "$(cat ids)"
grep -q '"text":"The red hammer"' answer || fail "/detokenize: $(cat answer)"
first=$(python3 -c 'import json; print(json.load(open("raw"))["ids"][0])')
ask /v1/completions "{$greedy,\"prompt\":\"The red hammer\",\"logit_bias\":{\"$first\":-100}}"
python3 -c 'import json; assert json.load(open("answer"))["choices"][0]["text"] != json.load(open("raw"))["text"]' || fail "logit_bias"

# Answers by a schema, an expression and a grammar.
ask /v1/chat/completions '{"model":"chat","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"properties":{"b":{"type":"integer","maximum":9},"a":{"enum":["x","y"]}},"required":["b","a"]}}}}'
python3 - <<'PYTHON' || fail "response_format: $(cat answer)"
import json
choice = json.load(open("answer"))["choices"][0]
made = json.loads(choice["message"]["content"])
assert choice["finish_reason"] == "stop" and list(made) == ["b", "a"] and made["b"] <= 9 and made["a"] in ("x", "y"), choice
PYTHON
ask /v1/completions '{"model":"chat","prompt":"x","guided_regex":"[0-9]{4}"}'
python3 -c 'import json, re; assert re.fullmatch("[0-9]{4}", json.load(open("answer"))["choices"][0]["text"])' || fail "guided_regex: $(cat answer)"
ask /v1/completions '{"model":"chat","prompt":"x","grammar":"root ::= \"yes\" | \"no\"","n":2,"temperature":1,"seed":1}'
python3 -c 'import json; assert {c["text"] for c in json.load(open("answer"))["choices"]} <= {"yes", "no"}' || fail "grammar: $(cat answer)"

ask /translate '{"model":"en-de","text":["a dog","the cat"],"beams":2}'
"$MULCIBER" translate -m "$marian" --beam 2 "a dog" "the cat" >translated
python3 -c 'import json; assert [t["text"] for t in json.load(open("answer"))["translations"]] == open("translated").read().splitlines()' || fail "/translate: $(cat answer translated)"

# The attention of a finished answer is what `mulciber generate --attention` writes, while other answers grow.
# No token reads a later one, so maps of a prompt are a part of those of prompt and answer.
"$MULCIBER" generate -m chat --raw --ignore-end -p "The red hammer" -n 2 --attention map.json >/dev/null
curl -sS -d "{$greedy,\"prompt\":\"Other words\",\"max_tokens\":200}" "$url/v1/completions" >/dev/null &
other=$!
for heads in each mean; do
  ask /attention "{\"model\":\"chat\",\"prompt\":\"The red\",\"answer\":\" hammer\",\"heads\":\"$heads\"}"
  python3 - $heads <<'PYTHON' || fail "/attention of heads: $heads: $(head -c 300 answer)"
import json, sys
[found], [wanted] = (json.load(open(name))["sentences"] for name in ("answer", "map.json"))
n = wanted["prompt_tokens"]
assert found["prompt_tokens"] < n and found["target"]["tokens"] == wanted["target"]["tokens"][:n], found["target"]
maps, rollout = found["attention"]
expected, rolled = ([[[row[:n] for row in head[:n]] for head in layer] for layer in kind["weights"]] for kind in wanted["attention"])
if sys.argv[1] == "mean":
    assert maps["heads"] == 1
    expected = [[[[sum(w) / len(w) for w in zip(*rows)] for rows in zip(*layer)]] for layer in expected]
def flat(x): return [x] if not isinstance(x, list) else [z for y in x for z in flat(y)]
assert max(abs(a - b) for a, b in zip(flat(maps["weights"]), flat(expected), strict=True)) < 1e-4
assert max(abs(a - b) for a, b in zip(flat(rollout["weights"]), flat(rolled), strict=True)) < 1e-4
PYTHON
done
wait $other
ask /attention '{"model":"chat","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hello to you"}],"layer":1,"heads":"each","format":"packed"}'
python3 - <<'PYTHON' || fail "/attention, packed: $(head -c 300 answer)"
import base64, json
[kind] = json.load(open("answer"))["sentences"][0]["attention"]
assert kind["layers"] == 1 and kind["heads"] > 1 and kind["triangle"]
n = kind["keys"]
values = memoryview(base64.b64decode(kind["packed"])).cast("H")
assert len(values) == kind["heads"] * n * (n + 1) // 2
assert abs(sum(values[-n:]) / 65534 - 1) < 1e-3  # the last token's row
PYTHON
ask /attention '{"model":"chat","prompt":"Hello","answer":" you","format":"html"}' -D headers
{ grep -q '<html' answer && grep -qi '^content-type: text/html' headers; } || fail "/attention, a page: $(cat headers)"
refuses 400 "" messages /attention '{"model":"chat"}'
refuses 400 "" messages /attention '{"model":"chat","messages":[{"role":"user","content":"x"}]}'
refuses 400 "" layer /attention '{"model":"chat","prompt":"x","layer":99}'
refuses 400 "" heads /attention '{"model":"chat","prompt":"x","heads":"all"}'
refuses 400 context_length_exceeded messages /attention "{\"model\":\"chat\",\"prompt\":\"$(printf 'word %.0s' {1..600})\"}"
refuses 400 wrong_model model /attention '{"model":"en-de","prompt":"x"}'

# What is refused, and how.
chat_path=/v1/chat/completions
refuses 400 invalid_json "" $chat_path '{"messages":'
refuses 400 invalid_json "" $chat_path "$(printf '[%.0s' {1..50000})"
refuses 400 invalid_json "" $chat_path "$(printf '{"messages":[{"role":"user","content":"\xff"}]}')"
refuses 400 "" messages $chat_path '{"model":"chat"}'
refuses 400 unknown_parameter wizardry $chat_path '{"wizardry":1,"messages":[{"role":"user","content":"x"}]}'
refuses 400 unsupported_parameter tools $chat_path '{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}'
refuses 400 unsupported_parameter response_format $chat_path '{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"xml"}}'
refuses 400 unsupported_grammar response_format.json_schema.schema $chat_path '{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"uniqueItems":true}}}}'
named() { echo "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":$1}},{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]}"; }
refuses 400 "" 'tools[0].function.name' $chat_path "$(named '"a b"')"
refuses 400 "" 'tools[1].function.name' $chat_path "$(named '"g"')"
refuses 400 "" parallel_tool_calls $chat_path '{"messages":[{"role":"user","content":"x"}],"parallel_tool_calls":"x"}'
refuses 400 "" 'messages[0].content[0].text' $chat_path '{"messages":[{"role":"user","content":[{"type":"text"}]}]}'
refuses 404 model_not_found model /v1/completions '{"model":"other","prompt":"x"}'
refuses 400 wrong_model model /v1/completions '{"model":"en-de","prompt":"x"}'
refuses 404 model_not_found model /v1/embeddings '{"input":"x"}'
refuses 400 wrong_model model /v1/embeddings '{"model":"chat","input":"x"}'
refuses 400 context_length_exceeded prompt /v1/completions "{\"prompt\":\"$(printf 'word %.0s' {1..20000})\"}"
refuses 400 context_length_exceeded prompt /v1/completions '{"prompt":"x","max_tokens":1000000}'
refuses 400 "" n /v1/completions '{"prompt":"x","n":9}'
refuses 400 "" logit_bias /v1/completions '{"prompt":"x","logit_bias":{"16000000":1}}'
refuses 404 unknown_address "" /v1/nothing '{}'
refuses 404 unknown_address "" /../../etc/passwd '{}' --path-as-is
refuses 405 "" "" /v1/models '{}' -D headers
grep -qi '^allow: GET' headers || fail "no Allow: $(cat headers)"
refuses 405 "" "" "/v1/responses/$(printf 'x%.0s' {1..5000})" '{}'
(($(wc -c <answer) < 500)) || fail "a long address comes back: $(wc -c <answer) bytes"
refuses 415 content_encoding "" $chat_path '{}' -H 'Content-Encoding: gzip'
refuses 403 unknown_origin "" $chat_path '{}' -H 'Origin: https://example.org'
refuses 403 unknown_host "" $chat_path '{}' -H 'Host: example.org'
head -c 1500000 /dev/zero | tr '\0' x >large
refuses 413 body_too_large "" $chat_path @large
refuses 413 body_too_large "" $chat_path @large -H 'Transfer-Encoding: chunked'
head -c 100000000 /dev/zero | tr '\0' x >large
refuses 413 body_too_large "" $chat_path @large
rm large
# What curl calls a form unless it is told otherwise may be as long as any other body.
python3 -c 'import json; print(json.dumps({"model": "chat", "text": "word " * 20000}))' >large
curl -fsS -o answer -d @large "$url/tokenize" || fail "a long body of curl's: $(head -c 300 answer)"
rm large
# Schemas that have no end, that nest without end, and that list more than a grammar may have.
schema=response_format.json_schema.schema
by() { echo "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":$1}}}"; }
# shellcheck disable=SC2016 # a key of JSON
refuses 400 unsupported_grammar $schema $chat_path "$(by '{"$ref":"#"}')"
# shellcheck disable=SC2016
refuses 400 unsupported_grammar $schema $chat_path "$(by '{"allOf":[{"$ref":"#"}]}')"
refuses 400 invalid_json "" $chat_path "$(by "$(python3 -c 'print("{\"items\":" * 40 + "{}" + "}" * 40)')")"
by "$(python3 -c 'import json; print(json.dumps({"type": "object", "required": [f"k{i}" for i in range(5000)]}))')" >listed
refuses 400 unsupported_grammar $schema $chat_path @listed
refuses 404 response_not_found response_id /v1/responses/../responses/none '{}' -X DELETE --path-as-is
python3 "$here/serve_sockets.py" "$url" || fail "connections that do not do as they should"
becomes mulciber_completions 0
becomes 'mulciber_batch_running{model="chat"}' 0
curl -sS -D headers -o answer -H 'X-Request-Id: mine-1' "$url/health"
grep -qi '^x-request-id: mine-1' headers || fail "no X-Request-Id: $(cat headers)"
grep -q ' mine-1 .* GET /health 200 ' log || fail "no line of the log for mine-1"

# A client that leaves frees its slot: nothing is computed for it any more.
long='"model":"chat","ignore_eos":true,"temperature":0,"prompt":"x","max_tokens":4000'
cancelled=$(metric 'mulciber_cancelled_total{model="chat"}')
for stream in true false; do
  curl -sS -d "{$long,\"stream\":$stream}" "$url/v1/completions" >/dev/null 2>&1 &
  becomes 'mulciber_batch_running{model="chat"}' 1
  kill $!
  wait $! || true
  cancelled=$((cancelled + 1))
  becomes 'mulciber_cancelled_total{model="chat"}' "$cancelled"
  becomes 'mulciber_batch_running{model="chat"}' 0
done

# A full queue: a request that finds no room is told when to come back, the others are answered.
for ((i = 0; i < 8; ++i)); do
  curl -sS -d "{$long}" "$url/v1/completions" >/dev/null 2>&1 &
  others[i]=$!
done
becomes mulciber_completions 8
refuses 429 queue_full "" /v1/completions '{"model":"chat","prompt":"x"}' -D headers
grep -qi '^retry-after: 1' headers || fail "no Retry-After: $(cat headers)"
kill "${others[@]}"
wait "${others[@]}" || true
becomes mulciber_completions 0

# The examples of docs/guide/serving.md.
# shellcheck disable=SC2016 # a fence of Markdown
sed -n '/^```bash$/,/^```$/p' "$MULCIBER_SOURCE/docs/guide/serving.md" | grep -v '^```' | sed 's/^curl -s/curl -fsS/' >examples
(($(grep -c '^curl' examples) >= 9)) || fail "docs/guide/serving.md has no examples"
url=$url bash -euo pipefail examples >answer || fail "an example of docs/guide/serving.md: $(tail -c 300 answer)"

# SIGTERM: what is under way is finished, who comes then is sent away, and the server ends with success.
growing='"model":"chat","ignore_eos":true,"prompt":"x","max_tokens":1000'
curl -sS -o late -d "{$growing,\"n\":4}" "$url/v1/completions" &
late=$!
curl -sS -N -d "{$growing,\"stream\":true}" "$url/v1/completions" >stream &
streaming=$!
becomes mulciber_completions 5
kill -TERM $server
stops() { [[ $(curl -sS -o answer -w '%{http_code}' "$url/health") == 503 ]]; }
awaits "/health of a server that stops" stops
refuses 503 unavailable "" /v1/completions '{"model":"chat","prompt":"x"}'
wait $late $streaming || fail "an answer under way is not finished"
(($(grep -o '"finish_reason":"length"' late | wc -l) == 4)) || fail "answers are cut: $(tail -c 200 late)"
{ grep -q '"finish_reason":"length"' stream && grep -q 'DONE' stream; } || fail "a stream is cut: $(tail -c 200 stream)"
server_ends 0

# Keys and other origins.
echo "secret-of-file" >keys
MULCIBER_API_KEY=secret serve -m chat --api-key-file keys --cors https://example.org --log-json \
  --body-seconds 3600 --stop-seconds 3600
refuses 401 invalid_api_key "" /v1/completions '{"prompt":"x"}'
refuses 401 invalid_api_key "" /v1/completions '{"prompt":"x"}' -H 'Authorization: Bearer wrong'
for key in secret secret-of-file; do
  ask /v1/completions '{"prompt":"x","max_tokens":1}' -H "Authorization: Bearer $key" -H 'Origin: https://example.org' -D headers
  [[ $status == 200 ]] || fail "the key is not taken: $(cat answer)"
  grep -qi '^access-control-allow-origin: https://example.org' headers || fail "no CORS header: $(cat headers)"
done
[[ $(curl -sS -o answer -w '%{http_code}' "$url/health") == 200 ]] || fail "/health needs a key"
preflight() { curl -sS -X OPTIONS -H 'Origin: https://example.org' "$@" -D headers -o answer -w '%{http_code}' "$url/v1/completions"; }
[[ $(preflight) == 204 ]] || fail "a preflight"
# OpenAI's client in a page has headers of its own.
[[ $(preflight -H 'Access-Control-Request-Headers: authorization,content-type,x-stainless-os') == 204 ]] || fail "a preflight with headers"
grep -qi '^access-control-allow-headers: .*x-stainless-os' headers || fail "headers that may not be sent: $(cat headers)"
refuses 403 unknown_origin "" /v1/completions '{"prompt":"x"}' -H 'Origin: https://example.com'
# Half a request does not keep it from stopping, whose body it waits for already.
exec 9<>"/dev/tcp/$(python3 -c 'import sys, urllib.parse; u = urllib.parse.urlsplit(sys.argv[1]); print(f"{u.hostname}/{u.port}")' "$url")"
printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer secret\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n{' >&9
read -r line <&9
[[ $line == *' 100 '* ]] || fail "no body is asked for: $line"
stop_server
exec 9>&-
grep -v '^{' log && fail "a line of the log is not JSON"
grep -q secret log && fail "a key is in the log"
grep '"path":"/v1/completions","seconds":[0-9.e-]*,"status":401' log >/dev/null || fail "the log has no refusal: $(cat log)"

# Who sends a byte now and then is not waited for.
serve -m en-de="$marian" --header-seconds 1 --body-seconds 1
python3 "$here/serve_sockets.py" "$url" slow || fail "somebody slow is waited for"
stop_server

# The command line.
says 2 "name of two models" "$MULCIBER" serve -m chat -m chat
says 2 "holds no key" "$MULCIBER" serve -m chat --api-key-file none
says 2 "no endpoint" "$MULCIBER" serve -m "$MULCIBER_SOURCE/tests/data/deit"
says 2 "cannot be listened on" "$MULCIBER" serve -m chat --host 203.0.113.1
