#!/usr/bin/env python3
"""`mulciber serve` and llama-server under load, interleaved: clients that each ask again as soon as they are answered,
with prompts and answers of mixed length, equal for both. Reports tokens per second, the times to the first token and
between two tokens, and failures.

    bench/compare_server.py --clients 1,4,16,64 --rounds 3 smollm2.gguf
    bench/compare_server.py --clients 16 --requests 1 --shortest 32 --longest 64 --seconds 60 smollm2.gguf    # short
    bench/compare_server.py --llama-server '' --clients 16 smollm2.gguf                                      # ours alone

llama-server runs with its Vulkan backend (GGML_VK_VISIBLE_DEVICES=0 makes it take a software driver), with a slot for
each client. Debian testing has it in the packages llama.cpp-tools and libggml0-backend-vulkan;
tools/drivers/in_debian_testing.sh runs this script where they are. A server is started anew for each number of clients
and answers a short question of each before the measurement. Exit code: 0, or 1 where an answer failed.
"""
import argparse
import http.client
import json
import math
import os
import queue
import random
import re
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

SEED = 20261123
MOST_SECONDS = 3600
# Words that are one token, including the blank before them, in most English vocabularies.
WORDS = """time people water world house music power system history story light money road river paper letter school
state market group night morning summer winter garden window kitchen village mountain forest island ocean bridge train
street station church castle tower metal stone wood glass silver gold iron fire wind rain snow sun moon star earth
animal horse bird fish tree flower fruit bread milk sugar salt coffee table chair door wall floor roof book page
picture color green blue white black yellow small large long short old young new early late high low hot cold dry
simple hard soft clear dark bright quick slow strong weak rich poor full empty open close begin end make take give
find keep hold carry move turn walk run stand sit read write speak hear see think know learn teach build break""".split()


@dataclass
class Request:
    prompt: str
    prompt_tokens: int
    answer_tokens: int


@dataclass
class Answer:
    client: int
    begin: float
    times: list = field(default_factory=list)  # arrival times of text
    request: Request = None
    tokens: int = 0  # tokens of the answer, counted by the server
    whole: bool = False
    error: str = ""


class Server:
    """One of the two, with room for so many answers at once."""

    def __init__(self, engine, options, clients):
        self.ours, self.port = engine == "Mulciber", 0
        environment = dict(os.environ)
        if self.ours:
            command = shlex.split(options.mulciber) + [
                "serve", "-m", f"load={options.model}", "--port", "0", "--sequences", str(clients),
                "--clients", str(clients + 8), "--context", str(options.context), *shlex.split(options.serve_options)]
        else:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            # Without this variable llama.cpp refuses a software driver and computes on the CPU.
            environment.setdefault("GGML_VK_VISIBLE_DEVICES", "0")
            command = shlex.split(options.llama_server) + [
                "-m", options.model, "--host", "127.0.0.1", "--port", str(self.port), "--parallel", str(clients),
                "--ctx-size", str(clients * options.context), "--device", "Vulkan0", "--gpu-layers", "99", "--alias", "load",
                *shlex.split(options.llama_options)]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.wait(command)
        except BaseException:
            self.close()
            raise

    def wait(self, command, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.ours and (told := re.search(r"listening on http://[^:\s]*:(\d+)", self.text())):
                    self.port = int(told[1])
                if self.port and self.ask("GET", "/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"{shlex.join(command)} does not answer: {self.text()[-2000:]}")

    def text(self):
        self.log.flush()
        return os.pread(self.log.fileno(), 1 << 22, 0).decode(errors="replace")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def count(self, text):
        return len(json.load(self.ask("POST", "/tokenize", {"text": text}))["tokens"])

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def make_requests(server, options, count, seed, longest, answer=None):
    """Lengths are spread evenly over their logarithms. The tokens of a prompt are counted by the server."""
    chance = random.Random(seed)

    def length():
        return round(math.exp(chance.uniform(math.log(options.shortest), math.log(longest))))

    found = []
    for _ in range(count):
        wanted = length()
        words = chance.choices(WORDS, k=wanted)
        while (tokens := server.count(" ".join(words))) > wanted and len(words) > 1:
            words = words[:max(1, min(len(words) - 1, len(words) * wanted // tokens))]
        found.append(Request(" ".join(words), tokens, answer or length()))
    return found


def read_events(response, connection, deadline):
    """The objects of a stream. Throws TimeoutError behind the deadline."""
    while True:
        connection.sock.settimeout(max(0.01, deadline - time.monotonic()))
        line = response.readline()
        if not line:
            raise OSError("the stream ends early")
        if not line.startswith(b"data: "):
            continue
        data = line[6:].strip()
        if data == b"[DONE]":
            return
        yield json.loads(data)


def ask_one(server, request, client, deadline):
    answer = Answer(client, time.monotonic(), request=request)
    body = {"model": "load", "prompt": request.prompt, "max_tokens": request.answer_tokens, "temperature": 0,
            "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}
    if not server.ours:
        body["cache_prompt"] = False  # all prompts differ
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=max(0.01, deadline - time.monotonic()))
    try:
        # The socket outlives http.client's idea of the connection, because its answer has no length.
        connection.connect()
        response_of = connection.sock
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        connection.sock = response_of
        if response.status != 200:
            raise OSError(f"{response.status}: {response.read(300).decode(errors='replace')}")
        usage = None
        for event in read_events(response, connection, deadline):
            if "error" in event:
                raise OSError(event["error"]["message"])
            if any(choice["text"] for choice in event["choices"]):
                answer.times.append(time.monotonic())
            usage = event.get("usage") or usage
        counts = (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None
        if counts != (request.prompt_tokens, request.answer_tokens):
            raise OSError(f"tokens of prompt and answer {counts}, not {(request.prompt_tokens, request.answer_tokens)}")
        answer.tokens = counts[1]
        answer.whole = True
    except TimeoutError:
        answer.tokens = len(answer.times)  # cut off by --seconds, which is not an error
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        answer.error = f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return answer


def load(server, requests, clients, seconds):
    """All answers, and the seconds that they took together."""
    waiting = queue.SimpleQueue()
    for request in requests:
        waiting.put(request)
    answers = []
    begin = time.monotonic()
    deadline = begin + seconds

    def client(number):
        while time.monotonic() < deadline:
            try:
                request = waiting.get_nowait()
            except queue.Empty:
                return
            answers.append(ask_one(server, request, number, deadline))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, time.monotonic() - begin


def quantile(values, share):
    """The nearest rank; nothing of nothing."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def measures(answers, seconds):
    gaps = {}  # by client
    for answer in answers:
        gaps.setdefault(answer.client, []).extend(b - a for a, b in zip(answer.times, answer.times[1:]))
    every = [gap for found in gaps.values() for gap in found]
    first = [answer.times[0] - answer.begin for answer in answers if answer.times]
    median = quantile(every, 0.5)
    prompt = sum(answer.request.prompt_tokens for answer in answers if answer.times)
    new = sum(answer.tokens for answer in answers)
    return {
        "seconds": seconds, "answers": len(answers), "whole": sum(answer.whole for answer in answers),
        "errors": [answer.error for answer in answers if answer.error],
        "prompt_tokens": prompt, "new_tokens": new,
        "prompt_rate": prompt / seconds, "new_rate": new / seconds, "rate": (prompt + new) / seconds,
        "first_p50": quantile(first, 0.5), "first_p99": quantile(first, 0.99),
        "gap_p50": median, "gap_p99": quantile(every, 0.99),
        # The client with the longest gaps.
        "worst_p99_over_median": max((quantile(found, 0.99) / median for found in gaps.values() if found), default=None),
    }


def measure(engine, options, clients, requests, warming):
    """requests, and those before the time is taken: made by the first server, which counts their tokens."""
    server = Server(engine, options, clients)
    try:
        if not requests:
            requests.extend(make_requests(server, options, clients * options.requests, SEED + clients, options.longest))
            # Where a driver compiles slowly, the first requests wait for the compiler. They are never cut off: a server
            # would still be working.
            warming.extend(make_requests(server, options, clients, SEED - clients, options.shortest, answer=4))
        load(server, warming, clients, MOST_SECONDS)
        return measures(*load(server, requests, clients, options.seconds))
    finally:
        server.close()


def median_of(samples):
    found = {}
    for name in samples[0]:
        if name == "errors":
            found[name] = [error for sample in samples for error in sample[name]]
        else:
            values = [sample[name] for sample in samples if sample[name] is not None]
            found[name] = statistics.median(values) if values else None
    return found


def print_table(options, cells):
    def shown(value, form="{:.2f}"):
        return "-" if value is None else form.format(value)

    print("| clients | server | prompt tokens/s | new tokens/s | first token, s: p50 | p99 | between tokens, s: p50 | p99 "
          "| worst client's p99 / p50 | answers | errors | Mulciber's ratio, all tokens | new |")
    print("| ---: | --- |" + " ---: |" * 11)
    for clients in options.clients:
        ours = median_of(cells[clients, "Mulciber"])
        for engine in options.engines:
            found = median_of(cells[clients, engine])
            ratios = [shown(ours[rate] / found[rate] if found[rate] else None, "{:.1f}") for rate in ("rate", "new_rate")]
            print(f"| {clients} | {engine} | {found['prompt_rate']:.1f} | {found['new_rate']:.1f} | {shown(found['first_p50'])} | "
                  f"{shown(found['first_p99'])} | {shown(found['gap_p50'], '{:.3f}')} | {shown(found['gap_p99'], '{:.3f}')} | "
                  f"{shown(found['worst_p99_over_median'], '{:.1f}')} | {found['whole']:.0f} of {found['answers']:.0f} | "
                  f"{len(found['errors'])} | {' | '.join(ratios if engine != 'Mulciber' else ['', ''])} |")
            for error in sorted(set(found["errors"])):
                print(f"  {engine}: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--mulciber", default="build/mulciber")
    parser.add_argument("--llama-server", default="llama-server", help="empty: Mulciber alone")
    parser.add_argument("--serve-options", default="", help="more of `mulciber serve`")
    parser.add_argument("--llama-options", default="", help="more of llama-server")
    parser.add_argument("--clients", default="1,4,16,64", help="at once; several numbers: one after another")
    parser.add_argument("--requests", type=int, default=2, help="of each client, on average")
    parser.add_argument("--shortest", type=int, default=32, help="tokens of a prompt and of an answer, at least")
    parser.add_argument("--longest", type=int, default=512, help="at most")
    parser.add_argument("--context", type=int, default=1024, help="tokens of one prompt and its answer")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="then what is under way is cut off, and counted so far")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print every sample, not the table of medians")
    options = parser.parse_args()
    options.clients = [int(number) for number in options.clients.split(",")]
    options.engines = ["Mulciber"] + (["llama-server"] if options.llama_server else [])
    if not 1 <= options.shortest <= options.longest or 2 * options.longest > options.context:
        parser.error("--shortest up to --longest, and twice the longest fit the context")

    cells = {(clients, engine): [] for clients in options.clients for engine in options.engines}
    requests = {clients: ([], []) for clients in options.clients}
    for _ in range(options.rounds):
        for clients, engine in cells:
            cells[clients, engine].append(measure(engine, options, clients, *requests[clients]))
    if options.json:
        print(json.dumps([{"clients": clients, "server": engine, "samples": samples}
                          for (clients, engine), samples in cells.items()]))
    else:
        print_table(options, cells)
    sys.exit(any(sample["errors"] for samples in cells.values() for sample in samples))


if __name__ == "__main__":
    main()
