#!/usr/bin/env python3
"""Puts translation models side by side: size, BLEU, speed, and how time grows with the length of a sentence.

    bench/compare_translation.py --test ../shared/data/multi30k/test_2016_flickr [--command build/mulciber]
        [Bahdanau=assets/en-de-bahdanau Luong=assets/en-de-luong Transformer=assets/en-de]

Prints the tables of docs/guide/recurrence.md. --test: files of that name with .en.gz and .de.gz. BLEU needs sacrebleu;
without it the column stays empty. The driver is the machine's own, or what VK_DRIVER_FILES names.
"""

import argparse
import gzip
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ["Bahdanau=assets/en-de-bahdanau", "Luong=assets/en-de-luong", "Transformer=assets/en-de"]
LENGTHS = (8, 16, 32, 64, 128)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/mulciber")
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="of every length")
    parser.add_argument("--sentences", type=int, help="of the test set for BLEU and speed (default: all)")
    parser.add_argument("models", nargs="*", default=MODELS, metavar="NAME=FOLDER")
    return parser.parse_args()


def parameters(folder: Path) -> int:
    """Elements of all tensors, by the header of the safetensors file."""
    with (folder / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    total = 0
    for name, tensor in header.items():
        elements = 1
        for extent in tensor.get("shape", [0]):
            elements *= extent
        total += elements
    return total


def translate(options, folder: Path, lines: list[str], *more: str):
    """Translations and statistics of one run."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        done = subprocess.run([options.command, "translate", "-m", str(folder), "-f", file.name, "--json", "--stats",
                               *more], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row["text"] for row in rows if "text" in row], rows[-1]["statistics"]


def bench(options, folder: Path, text: str):
    """Medians over the repeats of one sentence, after a run that builds everything."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        done = subprocess.run([options.command, "bench", "-m", str(folder), "-f", file.name, "--beam", str(options.beams),
                               "--repeats", str(options.repeats), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def bleu(options, texts: list[str]) -> str:
    try:
        import sacrebleu
    except ImportError:
        return ""
    references = gzip.open(f"{options.test}.de.gz", "rt", encoding="utf-8").read().splitlines()[: len(texts)]
    return f"{sacrebleu.corpus_bleu(texts, [references], lowercase=True).score:.1f}"


def of_lengths(options, folder: Path, words: list[str]) -> list[str]:
    """For each of LENGTHS the longest beginning of a text that makes no more tokens, the end of the text included."""
    prefixes = [" ".join(words[:i]) for i in range(1, len(words) + 1)]
    done = subprocess.run([options.command, "tokenize", "-m", str(folder)], input="\n".join(prefixes) + "\n",
                          capture_output=True, text=True, check=True)
    counts = [len(line.split()) + 1 for line in done.stdout.splitlines()]
    return [max((p for p, count in zip(prefixes, counts) if count <= length), key=len) for length in LENGTHS]


def main():
    options = arguments()
    models = [(name, Path(folder)) for name, _, folder in (model.partition("=") for model in options.models)]
    lines = gzip.open(f"{options.test}.en.gz", "rt", encoding="utf-8").read().splitlines()
    beam = ("--beam", str(options.beams))

    print("| model | parameters | BLEU | encode, tokens/s | decode, tokens/s | all sentences |\n|" + " --- |" * 6)
    for name, folder in models:
        texts, run = translate(options, folder, lines[: options.sentences], *beam)
        print(f"| {name} | {parameters(folder):,} | {bleu(options, texts)} "
              f"| {run['source_tokens'] / run['encode_seconds']:,.0f} "
              f"| {run['target_tokens'] / run['decode_seconds']:,.0f} | {run['total_seconds']:.1f} s |", flush=True)
    print()

    # One sentence at a time. The models share their vocabulary, so one count serves all.
    words = " ".join(lines[:20]).replace(".", "").split()
    texts = of_lengths(options, models[0][1], words)
    print("| source tokens | " + " | ".join(f"{name}: encode, ms | per step, ms" for name, _ in models) + " |")
    print("| --- |" + " --- | --- |" * len(models))
    for text in texts:
        cells = []
        for _, folder in models:
            run = bench(options, folder, text)
            cells += [run["source_tokens"] / run["encode_tps"], run["target_tokens"] / run["decode_tps"] / run["steps"]]
        print(f"| {run['source_tokens']} | " + " | ".join(f"{1000 * cell:.2f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
