#!/usr/bin/env python3
"""Gives `mulciber serve` many kinds of faulty requests at once, and checks that no other request is affected.

A third of the requests is cancelled, a tenth is malformed, some are read slowly, and in the middle the device is lost
if a file for that is named (tests/device_loss). Every answer must equal the one that its request gets alone, no request
may be lost, and memory must end where it began.

    MULCIBER=build/mulciber tests/cli/serve_soak.sh            60 requests, as the tests do
    python3 bench/soak_server.py http://localhost:8080 --requests 1000 --model NAME [--lose device.lose]

Prints the results as JSON; exit code 1 after a fault."""
import argparse
import collections
import concurrent.futures
import http.client
import json
import pathlib
import random
import sys
import threading
import time
import urllib.parse

PROMPTS = ["The red hammer", "A nail", "Once there was", "1 2 3", "To the sea, to the sea"]
# Invalid bodies, and the status that refuses each.
DEEP = "[" * 5000 + "]" * 5000
NESTED = {}
for _ in range(40):
    NESTED = {"type": "array", "items": NESTED}
MALFORMED = [
    ("/v1/completions", b"{", 400),
    ("/v1/completions", DEEP.encode(), 400),
    ("/v1/completions", b'{"prompt":"\xff\xfe"}', 400),
    ("/v1/completions", b'{"prompt":"x","temperature":"hot"}', 400),
    ("/v1/completions", b'{"prompt":"x","wizardry":1}', 400),
    ("/v1/completions", json.dumps({"prompt": "word " * 50_000}).encode(), 400),
    ("/v1/completions", b'{"prompt":"x","model":"nobody"}', 404),
    ("/v1/completions", json.dumps({"prompt": "x", "guided_json": NESTED}).encode(), 400),
    ("/v1/completions", b'{"prompt":"x","guided_json":{"$ref":"#"}}', 400),
    ("/v1/completions", b'{"prompt":"x","guided_json":{"not":{}}}', 400),
    ("/v1/completions", b'{"prompt":"x","guided_regex":"(?=a)b"}', 400),
    ("/v1/completions", b'{"prompt":"x","grammar":"root ::= root"}', 400),
    ("/v1/chat/completions", b'{"messages":"none"}', 400),
    ("/v1/responses", b'{"input":"x","previous_response_id":"resp_0"}', 400),
    ("/v1/../../etc/passwd", b"{}", 404),
    ("/v1/completions", b"x" * (9 << 20), 413),
]


class Wrong(Exception):
    pass


class Server:
    def __init__(self, url, model):
        self.url, self.model = urllib.parse.urlsplit(url), model

    def open(self):
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=300)

    def metric(self, name):
        connection = self.open()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " "))

    def body(self, kind, prompt, tokens, stream):
        common = {"model": self.model, "temperature": 0, "ignore_eos": True, "stream": stream}
        if kind == "completion":
            return "/v1/completions", {**common, "prompt": prompt, "max_tokens": tokens}
        if kind == "chat":
            return "/v1/chat/completions", {**common, "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens}
        return "/v1/responses", {**common, "input": prompt, "max_output_tokens": tokens, "store": False}

    def post(self, path, body):
        connection = self.open()
        try:
            connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer arrives although the server did not read the whole body
        return connection, connection.getresponse()


def text_of(kind, answer):
    if kind == "response":
        return "".join(part["text"] for item in answer["output"] for part in item["content"])
    choice = answer["choices"][0]
    return choice["text"] if kind == "completion" else choice["message"]["content"]


def piece_of(kind, event):
    """The text of an event, or an error."""
    if event.get("error") or event.get("type") == "response.failed":
        raise Wrong((event.get("error") or event["response"]["error"])["message"])
    if kind == "response":
        return event["delta"] if event["type"] == "response.output_text.delta" else ""
    if not event["choices"]:
        return ""
    choice = event["choices"][0]
    return choice["text"] if kind == "completion" else choice["delta"].get("content", "")


def events(response, pause=0.0):
    for line in response:
        if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
            time.sleep(pause)
            yield json.loads(line[6:])


class Soak:
    def __init__(self, server, seed):
        self.server, self.random, self.lock = server, random.Random(seed), threading.Lock()
        self.alone, self.count, self.mistakes = {}, collections.Counter(), []

    def wanted(self, kind, prompt, tokens):
        return self.alone[kind, prompt, tokens]

    def learn(self, kinds, lengths):
        """What each request gets while nobody else is there."""
        for kind in kinds:
            for prompt in PROMPTS:
                for tokens in lengths:
                    connection, response = self.server.post(*self.server.body(kind, prompt, tokens, False))
                    self.alone[kind, prompt, tokens] = text_of(kind, json.loads(response.read()))
                    connection.close()

    def ask(self, number, way, kind, prompt, tokens):
        """Again where the queue was full, or where the device was lost under a stream that had begun."""
        for attempt in range(200):
            what = self.once(way, kind, prompt, tokens)
            with self.lock:
                self.count[what] += 1
            if what not in ("queue full", "lost under a stream"):
                return
            time.sleep(0.1)
        self.mistakes.append(f"request {number} ({way}, {kind}) came to nothing")

    def once(self, way, kind, prompt, tokens):
        stream = way in ("streamed", "slow", "cancelled")
        connection, response = self.server.post(*self.server.body(kind, prompt, tokens, stream))
        try:
            if response.status == 429:
                return "queue full"
            if response.status != 200:
                raise Wrong(f"status {response.status}: {response.read()[:200]}")
            if way == "whole":
                text = text_of(kind, json.loads(response.read()))
            else:
                text, pieces = "", 0
                try:
                    for event in events(response, 0.03 if way == "slow" else 0):
                        text += piece_of(kind, event)
                        pieces += 1
                        if way == "cancelled" and pieces > 3:
                            return "cancelled"
                except Wrong as error:
                    if "the device was lost while the answer was sent" in str(error):
                        return "lost under a stream"
                    raise
            if text != self.wanted(kind, prompt, tokens):
                raise Wrong(f"another answer than alone: {text!r}")
            return way
        finally:
            connection.close()

    def malformed(self, number):
        path, body, status = MALFORMED[number % len(MALFORMED)]
        connection, response = self.server.post(path, body)
        answer = response.read()
        connection.close()
        if response.status != status or not json.loads(answer)["error"]["message"]:
            raise Wrong(f"status {response.status} instead of {status}: {path} {body[:60]!r} {answer[:200]!r}")

    def request(self, number, way, kind, prompt, tokens):
        try:
            if way == "malformed":
                self.malformed(number)
                with self.lock:
                    self.count["malformed"] += 1
            else:
                self.ask(number, way, kind, prompt, tokens)
        except Exception as error:  # noqa: BLE001: any exception is reported
            self.mistakes.append(f"request {number} ({way}, {kind}): {type(error).__name__}: {error}")

    def run(self, requests, clients, kinds, lengths, lose):
        ways = ["cancelled"] * 10 + ["malformed"] * 3 + ["slow"] * 3 + ["streamed"] * 7 + ["whole"] * 7
        plan = (ways * (requests // len(ways) + 1))[:requests]
        self.random.shuffle(plan)
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            for number, way in enumerate(plan):
                if lose and number == requests // 2:
                    pool.submit(pathlib.Path(lose).touch)
                pool.submit(self.request, number, way, self.random.choice(kinds), self.random.choice(PROMPTS), self.random.choice(lengths))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--model", required=True)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--lose", help="file that has the device lost")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth", type=float, default=64, help="MiB that the process may grow by")
    options = parser.parse_args()
    kinds, lengths = ["completion", "chat", "response"], [12, 40]
    soak = Soak(Server(options.url, options.model), options.seed)
    soak.learn(kinds, lengths)
    # Warms up until all programs exist and allocator and driver have reached their steady memory, also after a device
    # loss.
    soak.run(max(30, options.requests // 4), options.clients, kinds, lengths, options.lose)
    before = {name: soak.server.metric("mulciber_" + name) for name in ("resident_bytes", "device_bytes")}
    losses = soak.server.metric("mulciber_device_losses_total")
    soak.count.clear()
    begin = time.monotonic()
    soak.run(options.requests, options.clients, kinds, lengths, options.lose)
    seconds = time.monotonic() - begin
    for _ in range(600):
        if soak.server.metric("mulciber_completions") == 0:
            break
        time.sleep(0.1)
    else:
        soak.mistakes.append("answers are under way that nobody waits for")
    after = {name: soak.server.metric("mulciber_" + name) for name in before}
    if after["device_bytes"] > 1.1 * before["device_bytes"]:
        soak.mistakes.append("device memory has grown")
    if after["resident_bytes"] > before["resident_bytes"] + options.growth * 2**20:
        soak.mistakes.append("the process has grown")
    losses = soak.server.metric("mulciber_device_losses_total") - losses
    if losses != (1 if options.lose else 0):
        soak.mistakes.append(f"{losses:g} devices were lost")
    print(json.dumps({"requests": options.requests, "seconds": round(seconds, 1), "what": soak.count, "losses": losses,
                      "before": before, "after": after, "mistakes": soak.mistakes[:20]}))
    sys.exit(1 if soak.mistakes else 0)


if __name__ == "__main__":
    main()
