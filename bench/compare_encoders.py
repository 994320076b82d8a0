#!/usr/bin/env python3
"""Sentences, images or seconds of sound per second: interleaved runs of this program and others.

    bench/compare_encoders.py --model build/all-MiniLM-L6-v2 [--command build/mulciber] [--peers torch ctranslate2]
        [--python "tools/drivers/in_debian_testing.sh /opt/peers/bin/python"] [--drivers NAME=FILE.json ...]
    bench/compare_encoders.py --task images --make-vit /tmp/vit-small
    bench/compare_encoders.py --task images --model /tmp/vit-small --peers torch
    bench/compare_encoders.py --task speech --model build/whisper-tiny.en --sound talk.wav

Every sentence has --tokens tokens, every batch --sentences of them; vectors are means, normalized. Images are noise
of the model's size, --images of them (16 at most) in one batch; --make-vit writes a ViT-S/16 of random weights, which
computes as much as a trained one. A sound is 30 seconds or less, mono and of 16 kHz in a WAV file; all search for its
text by --beams beams without timestamps, and the time is that of encoder and decoder, without features.

In each turn every contestant does the same work once, and the medians over the turns are printed, with the least and
the most. After --seconds no turn begins, once there are three. Standard error shows the progress. This program's time is
the time on the device and for the copies to and from it, which --stats prints (for speech also the choice of tokens);
the others' time is their call with ids, pixels or features that are in memory already. All use --threads threads,
which must be what the driver uses.

Peers are torch (sentence-transformers or transformers in f32, whatever its backend makes of it) and ctranslate2 (its
f32, of the model converted to a temporary folder; it has no ViT). They run in the interpreter that --python names,
which may live in another file system, so --model is best a path within this checkout.
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
    add("--task", choices=["texts", "images", "speech"], default="texts",
        type=lambda task: "images" if task == "pictures" else task)  # deprecated name
    add("--model", help="folder that sentence-transformers or transformers reads")
    add("--make-vit", metavar="FOLDER", help="write a model for --task images, and end")
    add("--images", type=int, default=8, help="of a batch")
    add("--pictures", dest="images", type=int, default=argparse.SUPPRESS, help=argparse.SUPPRESS)  # deprecated name
    add("--sound", help="WAV file of --task speech")
    add("--beams", type=int, default=5)
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
    options = parser.parse_args()
    if options.make_vit is None and (options.model is None or (options.task == "speech" and options.sound is None)):
        parser.error("--model is missing, or --sound")
    return options


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


def make_vit(folder: str) -> None:
    import torch
    from transformers import ViTConfig, ViTImageProcessor, ViTModel

    torch.manual_seed(1)
    config = ViTConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536)
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    ViTImageProcessor().save_pretrained(folder)


def write_images(options, folder: str) -> list[str]:
    """Noise, the same for all contestants, as PPM files."""
    import random

    size = json.loads((Path(options.model) / "config.json").read_text())["image_size"]
    source = random.Random(7)
    paths = []
    for i in range(options.images):
        paths.append(f"{folder}/{i}.ppm")
        Path(paths[-1]).write_bytes(f"P6 {size} {size} 255\n".encode() + source.randbytes(3 * size * size))
    return paths


def torch_images(options):
    import numpy
    import torch
    from transformers import AutoModel

    torch.set_num_threads(options.threads)
    model = AutoModel.from_pretrained(options.model, dtype=torch.float32).eval()
    rules = json.loads((Path(options.model) / "preprocessor_config.json").read_text())
    mean, deviation = (numpy.array(rules[key], numpy.float32).reshape(3, 1, 1) for key in ("image_mean", "image_std"))
    pixels = []
    with tempfile.TemporaryDirectory() as folder:
        for path in write_images(options, folder):
            header, data = Path(path).read_bytes().split(b"\n", 1)
            size = int(header.split()[1])
            image = numpy.frombuffer(data, numpy.uint8).reshape(size, size, 3).transpose(2, 0, 1)
            pixels.append((image.astype(numpy.float32) / 255 - mean) / deviation)
    pixels = torch.tensor(numpy.stack(pixels))

    def encode():
        with torch.inference_mode():
            return model(pixel_values=pixels).last_hidden_state[:, 0].numpy()

    return encode, f"torch {torch.__version__}"


def sound_features(options):
    import wave

    import numpy
    from transformers import AutoTokenizer, WhisperFeatureExtractor

    with wave.open(options.sound) as file:
        assert file.getframerate() == 16000 and file.getnchannels() == 1, "16 kHz, one channel"
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").astype(numpy.float32) / 32768
    features = WhisperFeatureExtractor.from_pretrained(options.model)(samples, sampling_rate=16000,
                                                                      return_tensors="np").input_features
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    prompt = tokenizer.convert_tokens_to_ids(["<|startoftranscript|>", "<|notimestamps|>"])
    return features, tokenizer, prompt


def torch_speech(options):
    import torch
    from transformers import WhisperForConditionalGeneration

    torch.set_num_threads(options.threads)
    model = WhisperForConditionalGeneration.from_pretrained(options.model, dtype=torch.float32).eval()
    features, tokenizer, _ = sound_features(options)
    features = torch.tensor(features)

    def hear():
        with torch.inference_mode():
            ids = model.generate(features, num_beams=options.beams, return_timestamps=False)
        return tokenizer.decode(ids[0], skip_special_tokens=True)

    return hear, f"torch {torch.__version__}"


def ctranslate2_speech(options):
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    folder = Path(tempfile.mkdtemp()) / "model"
    TransformersConverter(options.model).convert(str(folder))
    model = ctranslate2.models.Whisper(str(folder), device="cpu", compute_type="float32", inter_threads=1,
                                       intra_threads=options.threads)
    features, tokenizer, prompt = sound_features(options)
    features = ctranslate2.StorageView.from_array(features)

    def hear():
        found = model.generate(features, [prompt], beam_size=options.beams)
        return tokenizer.decode(found[0].sequences_ids[0], skip_special_tokens=True)

    return hear, f"ctranslate2 {ctranslate2.__version__}"


PEERS = {("texts", "torch"): torch_encoder, ("texts", "ctranslate2"): ctranslate2_encoder,
         ("images", "torch"): torch_images, ("speech", "torch"): torch_speech,
         ("speech", "ctranslate2"): ctranslate2_speech}


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def text_of(options) -> str:
    return " ".join([WORD] * (options.tokens - 2))  # the tokenizer adds two


def serve(options) -> None:
    """For each line of standard input the seconds of a turn."""
    encode, name = PEERS[options.task, options.serve](options)
    made = encode()
    made = words_of(made) if options.task == "speech" else [float(value) for value in made[0]]
    print(json.dumps({"name": name, "made": made}), flush=True)
    for _ in sys.stdin:
        begin = time.monotonic()
        for _ in range(options.batches if options.task == "texts" else 1):
            encode()
        print(time.monotonic() - begin, flush=True)


class Peer:
    def __init__(self, options, peer: str):
        script = os.path.relpath(__file__)
        command = shlex.split(options.python) + [script, "--serve", peer, "--model", options.model]
        for key in ("task", "tokens", "sentences", "batches", "threads", "images", "sound", "beams"):
            command += [f"--{key}", str(getattr(options, key))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = json.loads(self.process.stdout.readline() or sys.exit(f"{peer}: did not start"))
        self.name, self.made = hello["name"], hello["made"]

    def turn(self) -> float:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Mulciber:
    def __init__(self, options, name: str, driver: str | None):
        self.options, self.name = options, name
        self.environment = dict(os.environ, **({"VK_DRIVER_FILES": driver} if driver else {}))
        self.made = self.run(1)[0]

    def output(self, command: list[str]):
        """Standard output, and what --stats printed."""
        done = subprocess.run([self.options.command, *command, "-m", self.options.model, "--stats"],
                              capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {done.stderr.strip()}")
        return done.stdout, done.stderr

    def run(self, batches: int):
        """What was made of the first input, and the seconds of all batches."""
        return {"texts": self.embed, "images": self.see, "speech": self.hear}[self.options.task](batches)

    def embed(self, batches: int):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write((text_of(self.options) + "\n") * (self.options.sentences * batches))
            file.flush()
            found, stats = self.output(["embed", file.name, "--normalize"])
        counts = re.search(r"texts +(\d+) in (\d+) batches, (\d+) tokens", stats)
        if [int(count) for count in counts.groups()] != [self.options.sentences * batches, batches,
                                                         self.options.sentences * batches * self.options.tokens]:
            sys.exit(f"{self.name}: other batches than were asked for: {counts.group(0)}")
        return json.loads(found.splitlines()[0])["vector"], float(re.search(r"([0-9.]+) device", stats).group(1))

    def see(self, _: int):
        with tempfile.TemporaryDirectory() as folder:
            found, stats = self.output(["embed", *write_images(self.options, folder)])
        return json.loads(found.splitlines()[0])["vector"], float(re.search(r"([0-9.]+) device", stats).group(1))

    def hear(self, _: int):
        found, stats = self.output(["transcribe", self.options.sound, "--no-timestamps", "--temperature", "0",
                                    "--beams", str(self.options.beams)])
        seconds = [float(re.search(rf"([0-9.]+) {part}", stats).group(1)) for part in ("encoder", "decoder")]
        return words_of(found), sum(seconds)

    def turn(self) -> float:
        return self.run(self.options.batches)[1]


def sound_seconds(path: str) -> float:
    import wave

    with wave.open(path) as file:
        return file.getnframes() / file.getframerate()


def cosine(a, b) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


def main() -> None:
    options = arguments()
    if options.make_vit:
        make_vit(options.make_vit)
        return
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
            if turn > 0:  # the first turn warms up
                seconds[contestant.name].append(measured)
    first = contestants[0]
    if options.task == "speech":
        count, unit, alike = sound_seconds(options.sound), "seconds of sound/s", "words"
    else:
        count = options.images if options.task == "images" else options.sentences * options.batches
        unit, alike = ("images/s" if options.task == "images" else "sentences/s"), f"cosine with {first.name}"
    print(f"| | {unit} | least | most | {alike} |\n| --- | ---: | ---: | ---: | ---: |")
    for contestant in contestants:
        rates = sorted(count / value for value in seconds[contestant.name])
        if options.task == "speech":
            likeness = "the same" if contestant.made == first.made else " ".join(contestant.made)
        else:
            likeness = f"{cosine(first.made, contestant.made):.6f}"
        print(f"| {contestant.name} | {statistics.median(rates):.2f} | {rates[0]:.2f} | {rates[-1]:.2f} | {likeness} |")


if __name__ == "__main__":
    main()
