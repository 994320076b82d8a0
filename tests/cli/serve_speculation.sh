#!/usr/bin/env bash
# Speculative decoding of `mulciber serve`: as the server is set and as requests ask for it, answers are the same, and
# what came of draft tokens is told. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat

# With one slot there would be none for draft tokens.
status=0
"$MULCIBER" serve -m chat --port 0 --sequences 1 --prompt-lookup 3 2>log || status=$?
[[ $status == 2 ]] || fail "one place: $status, $(cat log)"
grep -q -- --sequences log || fail "one place: $(cat log)"

serve -m chat --sequences 6 --prompt-lookup 3
prompt="the red hammer and the blue nails and the red hammer and the"
common='"model":"chat","ignore_eos":true,"max_tokens":40,"prompt":"'$prompt'"'
# same FIELDS: the answer with the server's setting, and what requests say of draft tokens, is the one without any. What
# was drafted goes to the file usage.
plain_fields=',"lookup":0'
same() {
  ask /v1/completions "{$common$plain_fields$1}"
  [[ $status == 200 ]] || fail "$1: $(cat answer)"
  mv answer plain
  for asked in "" ',"lookup":2' ',"prompt_lookup":2' ',"proposals":2' ',"draft_tokens":2'; do
    ask /v1/completions "{$common$asked$1}"
    python3 - "$1$asked" <<'PYTHON' || fail "$1$asked: $(cat answer)"
import json, sys
def read(name):
    answer = json.load(open(name))
    return answer["choices"], answer["usage"]["completion_tokens"], answer["usage"]["completion_tokens_details"]
plain, found = read("plain"), read("answer")
assert found[:2] == plain[:2], (found, plain)
assert plain[2] == {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}, plain
with open("usage", "a") as file:
    print(found[2]["accepted_prediction_tokens"], found[2]["rejected_prediction_tokens"], file=file)
PYTHON
  done
}
same ',"temperature":0'
same ',"temperature":0,"logprobs":2,"n":3'
same ',"temperature":0.4,"seed":4,"n":2'
same ',"temperature":0,"frequency_penalty":0.3,"logit_bias":{"40":2}'
same ',"temperature":0,"stop":["he "]'
same ',"temperature":0,"guided_regex":"( the| red| hammer){30}"'
read -r accepted rejected < <(awk '{ a += $1; r += $2 } END { print a, r }' usage)
((accepted > 20 && rejected > 0)) || fail "$accepted of $rejected + $accepted draft tokens were accepted"
[[ $(metric 'mulciber_accepted_tokens_total{model="chat"}') == "$accepted" ]] || fail "accepted: $(metric)"
[[ $(metric 'mulciber_draft_tokens_total{model="chat"}') == $((accepted + rejected)) ]] || fail "proposed"

# Streams, and chats.
ask /v1/completions "{$common,\"temperature\":0,\"lookup\":0}"
text=$(python3 -c 'import json; print(json.load(open("answer"))["choices"][0]["text"])')
ask /v1/completions "{$common,\"temperature\":0,\"stream\":true}"
[[ $(sed -n 's/^data: {/{/p' answer | python3 -c '
import json, sys
print("".join(json.loads(line)["choices"][0]["text"] for line in sys.stdin))') == "$text" ]] || fail "stream: $(cat answer)"
ask /v1/chat/completions '{"model":"chat","messages":[{"role":"user","content":"'"$prompt"'"}],"lookup":1,
  "max_tokens":8}'
[[ $status == 200 ]] || fail "chat: $(cat answer)"
ask /v1/responses '{"model":"chat","input":"'"$prompt"'","prompt_lookup":1,"draft_tokens":7,"max_output_tokens":8}'
[[ $status == 200 ]] || fail "response: $(cat answer)"

refuses 400 "" draft /v1/completions "{$common,\"draft\":true}"
refuses 400 "" draft /v1/completions "{$common,\"draft\":1}"
refuses 400 "" prompt_lookup /v1/completions "{$common,\"prompt_lookup\":65}"
refuses 400 "" lookup /v1/completions "{$common,\"lookup\":\"yes\"}"
refuses 400 "" draft_tokens /v1/completions "{$common,\"draft_tokens\":8}"
stop_server

# A draft model: the model itself is always right, but for what stands behind an end.
cp -r chat small
# Two options and a metric have their names of 0.1 here.
serve -m chat -m other=chat --draft chat=small --sequences 12 --context 256 --proposal-rows 9 --reuse-answers
rm usage
plain_fields=',"draft":false'
same ',"temperature":0'
same ',"temperature":0.7,"seed":3,"n":2'
read -r accepted rejected < <(awk '{ a += $1; r += $2 } END { print a, r }' usage)
((accepted > 100 && rejected < accepted / 4)) || fail "of the draft: $accepted taken, $rejected not"
ask /v1/completions "{${common/chat/other},\"temperature\":0}"
grep -q '"accepted_prediction_tokens":0' answer || fail "of a model without a draft: $(cat answer)"
[[ $(metric 'mulciber_gave_way_total{model="chat"}') == "$(metric 'mulciber_preemptions_total{model="chat"}')" ]] ||
  fail "preemptions: $(metric)"
stop_server
for wrong in "$MULCIBER_SOURCE/tests/data/gguf_families/gpt2.gguf" no=small missing; do
  status=0
  "$MULCIBER" serve -m chat --port 0 --draft "$wrong" 2>log || status=$?
  [[ $status == 2 ]] || fail "--draft $wrong: $status, $(cat log)"
done
