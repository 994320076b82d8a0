#!/usr/bin/env bash
# A device that is lost under `mulciber serve`: it is opened again, what waits is kept, and what nobody was told of is
# begun again. A Vulkan layer (tests/device_loss) loses the device where a file asks for it. MULCIBER, MULCIBER_SOURCE
# and DEVICE_LOSS_LAYER come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat
marian=$MULCIBER_SOURCE/tests/data/marian
"$MULCIBER" generate -m chat --raw --ignore-end -p "The red hammer" -n 40 --json >raw

export VK_LAYER_PATH=$DEVICE_LOSS_LAYER VK_INSTANCE_LAYERS=VK_LAYER_MULCIBER_device_loss DEVICE_LOSS=$work/device
lose() { touch device.lose; }
# until_lost: the loss was noticed.
until_lost() { awaits "the device is not lost" test ! -e device.lose; }
greedy='"model":"chat","temperature":0,"ignore_eos":true,"max_tokens":40,"prompt":"The red hammer"'
right() { python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["choices"][0]["text"] == json.load(open("raw"))["text"]' "$1" || fail "another answer than alone: $(cat "$1")"; }

serve -m chat -m en-de="$marian" --sequences 2 --queue 20
ask /v1/completions "{$greedy}"
right answer
before=$(metric mulciber_device_bytes)

# A stream under way, answers that nobody was told of, and some that wait. The device stays away for a while.
curl -sSN -d '{"model":"chat","ignore_eos":true,"temperature":0,"prompt":"x","max_tokens":4000,"stream":true}' "$url/v1/completions" >stream &
streaming=$!
arrives stream
touch device.closed
for i in 1 2 3 4; do
  curl -sS -o "kept$i" -d "{$greedy}" "$url/v1/completions" &
  kept[i]=$!
done
becomes mulciber_completions 5
lose
until_lost
reopens() { curl -sS -o health "$url/health" && grep -q '"reopening"' health; }
awaits "/health does not say that the device is opened again" reopens
grep -q '"reason":".*lost' health || fail "/health says nothing of the loss: $(cat health)"
[[ $(metric mulciber_device_lost) == 1 ]] || fail "no mulciber_device_lost"
# Who comes now waits as well, and so do other kinds of work.
curl -sS -o kept5 -d "{$greedy}" "$url/v1/completions" &
kept[5]=$!
curl -sS -o translated -d '{"model":"en-de","text":"a dog","beams":2}' "$url/translate" &
translating=$!
becomes mulciber_completions 7
# It comes back once an attempt has failed.
awaits "no attempt fails" grep -q 'cannot be opened again' log
rm device.closed
wait "${kept[@]}" $translating $streaming || fail "a request was cut: $(tail -n 3 log)"
for i in 1 2 3 4 5; do right "kept$i"; done
grep -q '"translations":\[{' translated || fail "no translation: $(cat translated)"
# The stream has one error, and its end.
(($(grep -c '"error"' stream) == 1)) || fail "not one error in the stream: $(tail -c 400 stream)"
grep -q '"code":"device_lost"' stream || fail "the stream's error: $(tail -c 400 stream)"
tail -n 2 stream | grep -q 'DONE' || fail "the stream has no end: $(tail -c 200 stream)"
curl -sS "$url/health" | grep -q '"ok"' || fail "/health is not well again"
[[ $(metric mulciber_device_lost) == 0 && $(metric mulciber_device_losses_total) == 1 &&
   $(metric mulciber_device_reopenings_total) == 1 ]] || fail "the loss is not counted: $(curl -sS "$url/metrics" | grep device)"
(($(metric mulciber_restarts_total) >= 1)) || fail "restarts are not counted"
after=$(metric mulciber_device_bytes)
((after < 2 * before)) || fail "device memory: $before bytes before, $after after"

# Once more, at rest: the next request notices, and is answered.
lose
ask /v1/completions "{$greedy}"
right answer
ask /translate '{"model":"en-de","text":"a dog","beams":2}'
[[ $status == 200 ]] || fail "no translation after the loss: $(cat answer)"
# In the middle of a translation, too.
lose
ask /translate '{"model":"en-de","text":"a dog","beams":2}'
[[ $status == 200 ]] || fail "no translation over a loss: $(cat answer)"
cmp -s <(python3 -c 'import json; print(json.load(open("answer"))["text"])') <(python3 -c 'import json; print(json.load(open("translated"))["text"])') ||
  fail "another translation: $(cat answer translated)"
stop_server

# A device that does not come back: everybody is told, and the server goes on saying so.
serve -m chat --reopen 2
touch device.closed
lose
ask /v1/completions "{$greedy}"
[[ $status == 503 ]] || fail "status $status of a device that is gone: $(cat answer)"
ask /v1/completions "{$greedy}"
[[ $status == 503 ]] || fail "status $status later: $(cat answer)"
curl -sS "$url/health" | grep -q '"failed"' || fail "/health of a device that is gone"
server_stops_with 4
rm device.closed

# Where nothing is to be opened again, a loss is final.
serve -m chat --reopen 0
lose
ask /v1/completions "{$greedy}"
[[ $status == 503 ]] || fail "status $status with --reopen 0: $(cat answer)"
(($(metric mulciber_device_reopenings_total) == 0)) || fail "reopened all the same"
server_stops_with 4

# A server that is stopped while its device is away ends, and says so to whoever waits.
serve -m chat --reopen 1000 --stop-seconds 1
touch device.closed
lose
curl -sS -o waiting -d "{$greedy}" "$url/v1/completions" &
waiting=$!
becomes mulciber_device_lost 1
kill -TERM $server
wait $waiting || fail "who waited was not answered"
grep -q '"message":' waiting || fail "who waited got something else: $(cat waiting)"
server_ends 4
