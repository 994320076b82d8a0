#!/usr/bin/env bash
# `mulciber serve` translates for many clients at once: each gets what it gets alone, bit for bit, and who leaves gives
# up its slot. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat
serve -m chat -m en-de="$MULCIBER_SOURCE/tests/data/marian" --sequences 4 --queue 60

python3 - "$url" <<'PYTHON' || fail "translations of many clients"
import json, random, sys, threading, time, urllib.request
url = sys.argv[1]
def post(path, request):
    with urllib.request.urlopen(url + path, json.dumps(request).encode()) as answer:
        return json.load(answer)
def metric(name):
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    return int(next(line.split()[1] for line in text.splitlines()
                    if line.startswith(f'mulciber_{name}{{model="en-de"}}')))
draw = random.Random(3)
words = "the red hammer strikes an anvil and molten iron cools while apprentices count crucibles".split()
def request():
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(draw.randint(1, 5))]
    return {"model": "en-de", "text": texts, "beams": draw.choice([1, 2, 5]), "max_tokens": draw.choice([5, 20, 60])}
requests = [request() for _ in range(24)]
alone = [post("/translate", asked) for asked in requests]
# A request's own texts share steps, whoever else asks.
steps, rows = metric("steps_total"), metric("row_steps_total")
assert rows > 1.5 * steps, (steps, rows)
found = [None] * len(requests)
def ask(i):
    found[i] = post("/translate", requests[i])
chat = threading.Thread(target=post, args=("/v1/completions", {"model": "chat", "prompt": "The", "max_tokens": 40,
                                                               "ignore_eos": True}))
clients = [threading.Thread(target=ask, args=(i,)) for i in draw.sample(range(len(requests)), len(requests))]
for client in [chat, *clients]:
    client.start()
for client in [chat, *clients]:
    client.join()
for i, (one, other) in enumerate(zip(alone, found)):
    assert one == other, (requests[i], one, other)

# A client that leaves gives up the slots of its texts.
import socket
host, port = url.removeprefix("http://").split(":")
body = json.dumps({"model": "en-de", "text": ["the red hammer strikes"] * 1000, "beams": 5}).encode()
with socket.create_connection((host, int(port))) as gone:
    gone.sendall(b"POST /translate HTTP/1.1\r\nHost: %s:%s\r\nContent-Length: %d\r\n\r\n"
                 % (host.encode(), port.encode(), len(body)) + body)
    while metric("batch_waiting") == 0:
        time.sleep(0.01)
# The metrics follow the last answer of a turn.
while metric("cancelled_total") == 0 or metric("batch_running") + metric("batch_waiting") > 0:
    time.sleep(0.02)
state = {name: metric(name) for name in ("cancelled_total", "batch_running", "batch_waiting")}
assert state["cancelled_total"] > 0 and state["batch_running"] == state["batch_waiting"] == 0, state
assert post("/translate", requests[0]) == alone[0]
PYTHON
stop_server
