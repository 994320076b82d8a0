#!/usr/bin/env python3
"""Translates a file with Mulciber and CTranslate2 in interleaved runs, and compares time and text.

    bench/compare_ctranslate2.py [--command build/mulciber] [--model assets/en-de] [--beams 5] [--rounds 3] captions.txt

The model is a Marian folder of Hugging Face, such as assets/en-de. CTranslate2 computes in f32 on all processors of the
machine, with equal beams, length penalty and batches; it takes the tokens that `mulciber tokenize` makes. Its
own converter needs torch, so the weights are put into its specification here. Needs the packages ctranslate2, numpy and
safetensors: pip install ctranslate2 safetensors. Processor times are the ones to compare beside other work, with
--threads 1: CTranslate2's threads spin while they wait. Mulciber's times include the start of the command. Mulciber's
driver is the machine's own, or what VK_DRIVER_FILES names.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/mulciber")
    parser.add_argument("--model", type=Path, default=Path("assets/en-de"))
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=64, help="sentences of a batch of CTranslate2")
    parser.add_argument("file", type=Path)
    return parser.parse_args()


def sinusoids(positions: int, width: int):
    """As Marian: all sines, then all cosines."""
    import numpy

    angles = numpy.arange(positions)[:, None] / numpy.power(10000, 2 * numpy.arange(width // 2) / width)[None]
    return numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], 1).astype(numpy.float32)


def convert(model: Path, folder: Path):
    import ctranslate2
    import numpy
    from safetensors.numpy import load_file

    config = json.loads((model / "config.json").read_text())
    tensors = {name: values.astype(numpy.float32) for name, values in load_file(model / "model.safetensors").items()}
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]), config["encoder_attention_heads"], pre_norm=False,
        activation=ctranslate2.specs.Activation.RELU)

    def linear(layer, *names):
        layer.weight = numpy.concatenate([tensors[f"{name}.weight"] for name in names])
        layer.bias = numpy.concatenate([tensors[f"{name}.bias"] for name in names])

    def norm(layer, name):
        layer.gamma, layer.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]

    for stack, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        embeddings = stack.embeddings[0] if name == "encoder" else stack.embeddings
        embeddings.weight = tensors["model.shared.weight"]
        stack.scale_embeddings = config["scale_embedding"]
        stack.position_encodings.encodings = sinusoids(config["max_position_embeddings"], config["d_model"])
        for i, layer in enumerate(stack.layer):
            at = f"model.{name}.layers.{i}"
            linear(layer.self_attention.linear[0], *(f"{at}.self_attn.{part}_proj" for part in "qkv"))
            linear(layer.self_attention.linear[1], f"{at}.self_attn.out_proj")
            norm(layer.self_attention.layer_norm, f"{at}.self_attn_layer_norm")
            if name == "decoder":
                linear(layer.attention.linear[0], f"{at}.encoder_attn.q_proj")
                linear(layer.attention.linear[1], *(f"{at}.encoder_attn.{part}_proj" for part in "kv"))
                linear(layer.attention.linear[2], f"{at}.encoder_attn.out_proj")
                norm(layer.attention.layer_norm, f"{at}.encoder_attn_layer_norm")
            linear(layer.ffn.linear_0, f"{at}.fc1")
            linear(layer.ffn.linear_1, f"{at}.fc2")
            norm(layer.ffn.layer_norm, f"{at}.final_layer_norm")
    spec.decoder.projection.weight = tensors["model.shared.weight"]
    spec.decoder.projection.bias = tensors["final_logits_bias"].reshape(-1)
    ids = json.loads((model / "vocab.json").read_text())
    pieces = sorted(ids, key=ids.get)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
    spec.config.bos_token = spec.config.decoder_start_token = pieces[config["decoder_start_token_id"]]
    spec.validate()
    spec.optimize(quantization="float32")
    spec.save(str(folder))
    return pieces


def peer(options, folder: str):
    """What translates the file with CTranslate2: to ids."""
    import ctranslate2

    pieces = convert(options.model, Path(folder))
    generation = json.loads((options.model / "generation_config.json").read_text())
    ids = subprocess.run([options.command, "tokenize", "-m", str(options.model)], stdin=options.file.open(),
                         capture_output=True, text=True, check=True).stdout.splitlines()
    tokens = [[pieces[int(i)] for i in line.split()] for line in ids]
    tokens = [line if line[-1] == "</s>" else [*line, "</s>"] for line in tokens]
    model = ctranslate2.Translator(folder, device="cpu", compute_type="float32", inter_threads=1,
                                   intra_threads=options.threads)

    def translate():
        results = model.translate_batch(tokens, beam_size=options.beams, length_penalty=generation["length_penalty"],
                                        max_batch_size=options.batch, max_decoding_length=generation["max_length"],
                                        suppress_sequences=[[pieces[i] for i in word] for word in generation["bad_words_ids"]])
        return [result.hypotheses[0] for result in results]

    return translate, ctranslate2.__version__


def ours(options):
    done = subprocess.run([options.command, "translate", "-m", str(options.model), "-f", str(options.file), "--beam",
                           str(options.beams), "--json", "--stats"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row for row in rows if "text" in row], rows[-1]["statistics"]


def processor_seconds(who: int) -> float:
    return sum(resource.getrusage(who)[:2])


def main():
    options = arguments()
    lines = len(options.file.read_text().splitlines())
    mine, theirs = ([], []), ([], [])  # seconds of the clock, of processors
    with tempfile.TemporaryDirectory() as folder:
        translate, version = peer(options, folder)
        translate()
        ours(options)
        for _ in range(options.rounds):
            used = processor_seconds(resource.RUSAGE_CHILDREN)
            found, run = ours(options)
            mine[0].append(run["total_seconds"])
            mine[1].append(processor_seconds(resource.RUSAGE_CHILDREN) - used)
            begin, used = time.perf_counter(), processor_seconds(resource.RUSAGE_SELF)
            expected = translate()
            theirs[0].append(time.perf_counter() - begin)
            theirs[1].append(processor_seconds(resource.RUSAGE_SELF) - used)
    same = sum(row["tokens"][: len(line)] == line for row, line in zip(found, expected))
    print("| engine | seconds | sentences/s | processor, s |\n| --- | ---: | ---: | ---: |")
    for name, times in (("Mulciber", mine), (f"ctranslate2 {version}", theirs)):
        clock, processor = (statistics.median(values) for values in times)
        print(f"| {name} | {clock:.2f} | {lines / clock:.1f} | {processor:.2f} |")
    clock, processor = (statistics.median(a / b for a, b in zip(*pair)) for pair in zip(mine, theirs))
    print(f"| Mulciber's ratio | {clock:.2f} | | {processor:.2f} |")
    print(f"{same} of {lines} translations are the same")


if __name__ == "__main__":
    main()
