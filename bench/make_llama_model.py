#!/usr/bin/env python3
"""Writes a GGUF file of a Llama with random weights, to measure engines: their speed does not depend on the
values of the weights. The default is 134 M parameters. Needs gguf and numpy (Debian: python3-gguf, or pip install gguf).

    bench/make_llama_model.py --type q4_0 llama-134m-q4_0.gguf
    bench/make_llama_model.py --type q4_K --layers 32 --width 4096 --heads 32 --kv-heads 8 --hidden 14336 \\
        --vocabulary 128256 llama-8b-q4_k.gguf
"""
import argparse
import sys

try:
    import gguf
    import numpy as np
except ImportError as error:
    sys.exit(f"make_llama_model.py: {error}: install it with `pip install gguf` or `apt install python3-gguf`")

TYPES = {
    "f32": gguf.GGMLQuantizationType.F32,
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
    "q4_K": gguf.GGMLQuantizationType.Q4_K,
    "q6_K": gguf.GGMLQuantizationType.Q6_K,
}
# Blocks are random bytes, not quantized, so that billions of weights take seconds. For each type: numbers and bytes of
# a block, positions of its 16-bit scales, and the factor of each, which gives weights a deviation of about one.
BLOCKS = {
    "q8_0": (32, 34, {0: 1 / 74}),
    "q4_0": (32, 18, {0: 1 / 4.6}),
    "q4_K": (256, 144, {0: 1 / 200, 2: 1 / 27}),
    "q6_K": (256, 210, {208: 1 / 1360}),
}
SEED = 20240601


def words(count):
    """Different pieces that spell what those of models do, in the order of their lengths: letters of two scripts with and
    without a blank, digits, and what stands between values of JSON."""
    chance = np.random.default_rng(SEED + 1)
    alphabets = ["abcdefghijklmnopqrstuvwxyz"] * 3 + ["абвгдежзийклмнопрстуфхцчшщыьэюя"]
    marks = ['"', '",', '":', '{"', '"}', "},", "],", "[", "]", "{", "}", ",", ":", ".", "-", " ", "\n"]
    made = dict.fromkeys(marks + [str(i) for i in range(1000)] + [mark.replace(" ", "\u2581") for mark in marks])
    while len(made) < count:
        letters = alphabets[chance.integers(len(alphabets))]
        word = "".join(letters[i] for i in chance.integers(len(letters), size=chance.integers(1, 11)))
        word = word.capitalize() if chance.random() < 0.2 else word
        mark = marks[chance.integers(len(marks))] if chance.random() < 0.05 else ""
        made[("\u2581" if chance.random() < 0.6 else "") + word + mark] = None
    return sorted(list(made)[:count], key=len)


def vocabulary(size, spelled):
    """Control pieces, the bytes, then numbered words, or words that are spelled: enough for a tokenizer to load."""
    pieces = [("<unk>", gguf.TokenType.UNKNOWN), ("<s>", gguf.TokenType.CONTROL), ("</s>", gguf.TokenType.CONTROL)]
    pieces += [(f"<0x{byte:02X}>", gguf.TokenType.BYTE) for byte in range(256)]
    count = size - len(pieces)
    pieces += [(text, gguf.TokenType.NORMAL) for text in (words(count) if spelled else (f"\u2581w{i}" for i in range(count)))]
    return pieces


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--type", choices=TYPES, default="f16", help="of the matrices; norms are f32")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--kv-heads", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=2048, help="of the feed-forward network")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--words", action="store_true", help="a vocabulary of spelled words: grammars read what tokens spell")
    parser.add_argument("--context", type=int, default=2048)
    options = parser.parse_args()

    random = np.random.default_rng(SEED)
    writer = gguf.GGUFWriter(options.output, "llama")
    writer.add_name("random llama")
    writer.add_context_length(options.context)
    writer.add_embedding_length(options.width)
    writer.add_block_count(options.layers)
    writer.add_feed_forward_length(options.hidden)
    writer.add_head_count(options.heads)
    writer.add_head_count_kv(options.kv_heads)
    writer.add_rope_dimension_count(options.width // options.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(options.vocabulary)
    pieces = vocabulary(options.vocabulary, options.words)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in pieces])
    writer.add_token_scores([0.0 if kind != gguf.TokenType.NORMAL else -float(i) for i, (_, kind) in enumerate(pieces)])
    writer.add_token_types([int(kind) for _, kind in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def matrix(name, rows, columns):
        kind = TYPES[options.type]
        if options.type not in BLOCKS:
            values = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(columns))
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
            return
        numbers, size, scales = BLOCKS[options.type]
        blocks = np.frombuffer(random.bytes(rows * columns // numbers * size), np.uint8).reshape(-1, size).copy()
        for offset, factor in scales.items():
            blocks[:, offset:offset + 2] = np.array([factor / np.sqrt(columns)], np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=kind)

    def norm(name):
        writer.add_tensor(name, np.ones(options.width, dtype=np.float32))

    width, kv_width = options.width, options.width // options.heads * options.kv_heads
    matrix("token_embd.weight", options.vocabulary, width)
    for layer in range(options.layers):
        block = f"blk.{layer}."
        norm(block + "attn_norm.weight")
        matrix(block + "attn_q.weight", width, width)
        matrix(block + "attn_k.weight", kv_width, width)
        matrix(block + "attn_v.weight", kv_width, width)
        matrix(block + "attn_output.weight", width, width)
        norm(block + "ffn_norm.weight")
        matrix(block + "ffn_gate.weight", options.hidden, width)
        matrix(block + "ffn_up.weight", options.hidden, width)
        matrix(block + "ffn_down.weight", width, options.hidden)
    norm("output_norm.weight")
    matrix("output.weight", options.vocabulary, width)

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
