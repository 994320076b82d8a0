#!/usr/bin/env python3
"""Sentences per second of a sentence encoder: this program and others, in turns.

    bench/compare_encoders.py --model build/all-MiniLM-L6-v2 [--command build/mulciber] [--peers torch onnxruntime ...]
        [--python "tools/drivers/in_debian_testing.sh /opt/peers/bin/python"] [--drivers NAME=FILE.json ...]

Every sentence has --tokens tokens, every batch --sentences of them; vectors are means, normalized. In each turn every
contestant encodes the same batches once, and the medians over the turns are printed, with the least and the most. After
--seconds no turn begins, once there are three. Standard error says how far it is. Of
this program the time is that of `mulciber embed --stats` on the device and on the way there and back, of the others
that of their call with ids that are tokenized already. All use --threads threads, which must be what the driver uses.

Peers are torch (sentence-transformers in f32, whatever its backend makes of it) and ctranslate2 (its f32, of the model
converted to a temporary folder). They run in the interpreter that --python names, which may live in another file
system, so --model is best a path within this checkout.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORD = "the"  # one token of every vocabulary of English


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", required=True, help="folder that sentence-transformers reads")
    add("--command", default="build/mulciber")
    add("--python", default=sys.executable, help="command of the interpreter that has the peers")
    add("--peers", nargs="*", default=["torch", "ctranslate2"], choices=["torch", "ctranslate2"])
    add("--drivers", nargs="*", default=[], metavar="NAME=FILE", help="for VK_DRIVER_FILES (default: the machine's)")
    add("--tokens", type=int, default=64)
    add("--sentences", type=int, default=32, help="of a batch")
    add("--batches", type=int, default=2, help="of a turn")
    add("--turns", type=int, default=7, help="at most, after one that warms up")
    add("--seconds", type=float, default=120)
    add("--threads", type=int, default=2)
    add("--serve", choices=["torch", "ctranslate2"], help=argparse.SUPPRESS)
    return parser.parse_args()


def torch_encoder(options):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    model = SentenceTransformer(options.model, device="cpu").eval()
    features = model.tokenize([text_of(options)] * options.sentences)
    assert features["input_ids"].shape == (options.sentences, options.tokens), features["input_ids"].shape

    def encode():
        with torch.inference_mode():
            return model(dict(features))["sentence_embedding"].numpy()

    return encode, f"torch {torch.__version__}"


def ctranslate2_encoder(options):
    import ctranslate2
    import numpy
    from ctranslate2.converters import TransformersConverter
    from transformers import AutoTokenizer

    folder = Path(tempfile.mkdtemp()) / "model"
    TransformersConverter(options.model).convert(str(folder))
    model = ctranslate2.Encoder(str(folder), device="cpu", compute_type="float32", inter_threads=1,
                                intra_threads=options.threads)
    ids = AutoTokenizer.from_pretrained(options.model)([text_of(options)] * options.sentences)["input_ids"]
    assert {len(row) for row in ids} == {options.tokens}

    def encode():
        states = numpy.array(model.forward_batch(ids).last_hidden_state)
        mean = states.mean(axis=1)
        return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)

    return encode, f"ctranslate2 {ctranslate2.__version__}"


def text_of(options) -> str:
    return " ".join([WORD] * (options.tokens - 2))  # the tokenizer adds two


def serve(options) -> None:
    """For each line of standard input the seconds of a turn."""
    encode, name = {"torch": torch_encoder, "ctranslate2": ctranslate2_encoder}[options.serve](options)
    vector = [float(value) for value in encode()[0]]
    print(json.dumps({"name": name, "vector": vector}), flush=True)
    for _ in sys.stdin:
        begin = time.monotonic()
        for _ in range(options.batches):
            encode()
        print(time.monotonic() - begin, flush=True)


class Peer:
    def __init__(self, options, peer: str):
        script = os.path.relpath(__file__)
        command = shlex.split(options.python) + [script, "--serve", peer, "--model", options.model]
        for key in ("tokens", "sentences", "batches", "threads"):
            command += [f"--{key}", str(getattr(options, key))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = json.loads(self.process.stdout.readline() or sys.exit(f"{peer}: did not start"))
        self.name, self.vector = hello["name"], hello["vector"]

    def turn(self) -> float:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Mulciber:
    def __init__(self, options, name: str, driver: str | None):
        self.options, self.name = options, name
        self.environment = dict(os.environ, **({"VK_DRIVER_FILES": driver} if driver else {}))
        self.vector = self.embed(1)[0]

    def embed(self, batches: int):
        """The first vector, and the seconds of all batches."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write((text_of(self.options) + "\n") * (self.options.sentences * batches))
            file.flush()
            done = subprocess.run([self.options.command, "embed", "-m", self.options.model, file.name, "--normalize",
                                   "--stats"], capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {done.stderr.strip()}")
        counts = re.search(r"texts +(\d+) in (\d+) batches, (\d+) tokens", done.stderr)
        if [int(count) for count in counts.groups()] != [self.options.sentences * batches, batches,
                                                         self.options.sentences * batches * self.options.tokens]:
            sys.exit(f"{self.name}: other batches than were asked for: {counts.group(0)}")
        seconds = float(re.search(r"([0-9.]+) device", done.stderr).group(1))
        return json.loads(done.stdout.splitlines()[0])["vector"], seconds

    def turn(self) -> float:
        return self.embed(self.options.batches)[1]


def cosine(a, b) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


def main() -> None:
    options = arguments()
    if options.serve:
        serve(options)
        return
    begin = time.monotonic()
    drivers = [entry.split("=", 1) for entry in options.drivers] or [["mulciber", None]]
    contestants = [Mulciber(options, name, driver) for name, driver in drivers]
    contestants += [Peer(options, peer) for peer in options.peers]
    seconds = {contestant.name: [] for contestant in contestants}
    for turn in range(options.turns + 1):
        if turn > 3 and time.monotonic() - begin > options.seconds:
            break
        for contestant in contestants:
            measured = contestant.turn()
            print(f"turn {turn}: {contestant.name} {measured:.2f} s", file=sys.stderr, flush=True)
            if turn > 0:  # the first one warms up
                seconds[contestant.name].append(measured)
    count = options.sentences * options.batches
    first = contestants[0]
    print(f"| | sentences/s | least | most | cosine with {first.name} |\n| --- | ---: | ---: | ---: | ---: |")
    for contestant in contestants:
        rates = sorted(count / value for value in seconds[contestant.name])
        print(f"| {contestant.name} | {statistics.median(rates):.0f} | {rates[0]:.0f} | {rates[-1]:.0f} | "
              f"{cosine(first.vector, contestant.vector):.6f} |")


if __name__ == "__main__":
    main()
