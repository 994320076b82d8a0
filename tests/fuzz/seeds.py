#!/usr/bin/env python3
"""Writes a small seed corpus and dictionaries for the fuzz targets.

    python3 tests/fuzz/seeds.py FOLDER      makes a folder in FOLDER for each target, and *.dict
"""
import json
import os
import re
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FIXTURES = os.environ.get("MULCIBER_FIXTURES", "")
OUT = sys.argv[1]


def put(target, name, data):
    folder = os.path.join(OUT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    """(type, bytes) of a metadata value."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, gguf_string(value)
    items = [gguf_value(v) for v in value]
    return 9, struct.pack("<IQ", items[0][0], len(items)) + b"".join(data for _, data in items)


def gguf(metadata, tensors=(), version=3):
    """tensors: (name, shape, type, bytes)"""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, data = gguf_value(value)
        head += gguf_string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, shape, kind, data in tensors:
        body += b"\0" * (-len(body) % 32)
        head += gguf_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(body))
        body += data
    return head + b"\0" * (-len(head) % 32) + body


PIECES = ["<unk>", "<s>", "</s>", *[f"<0x{i:02X}>" for i in range(8)], "\u2581", "H", "e", "l", "o", "\u2581H", "He", "ll", "Hell", "Hello"]
SPM = {"general.architecture": "llama", "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": PIECES,
       "tokenizer.ggml.scores": [float(-i) for i in range(len(PIECES))],
       "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 8 + [1] * (len(PIECES) - 11), "tokenizer.ggml.bos_token_id": 1,
       "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_bos_token": True,
       "tokenizer.chat_template": "{% for m in messages %}{{ m.role }}{% endfor %}"}
BPE_PIECES = ["H", "e", "l", "o", "\u0120", "w", "He", "ll", "Hell", "Hello", "<|end|>"]
BPE = {"general.architecture": "gpt2", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
       "tokenizer.ggml.tokens": BPE_PIECES, "tokenizer.ggml.token_type": [1] * 10 + [3],
       "tokenizer.ggml.merges": ["H e", "l l", "He ll", "Hell o"], "tokenizer.ggml.eos_token_id": 10}
TENSORS = [("a.weight", (4, 2), 0, bytes(32)), ("b.weight", (32, 2), 8, bytes(68)), ("c.weight", (256, 1), 12, bytes(144))]
put("gguf", "spm", gguf(SPM, TENSORS))
put("gguf", "bpe", gguf(BPE))
put("gguf", "bpe_v2", gguf({**BPE, "tokenizer.ggml.pre": "llama-bpe", "general.alignment": 64}, version=2))
put("gguf", "tensors", gguf({"general.name": "x", "split.no": 0, "split.count": 2}, TENSORS))
put("gguf", "empty", gguf({}))


def safetensors(header, size):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


put("safetensors", "two", safetensors({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                                       "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}}, 26))
put("safetensors", "empty", safetensors({}, 0))
put("safetensors", "none", safetensors({"a": {"dtype": "I64", "shape": [0, 5], "data_offsets": [0, 0]}}, 0))

for name in ("config.json", "generation_config.json"):
    put("config", "marian_" + name, open(f"{ROOT}/tests/data/marian/{name}", "rb").read())


def tokenizer(model, **parts):
    added = [{"id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": True, "normalized": False, "special": True}]
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                       "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts})


LETTERS = {"<s>": 0, **{piece: i + 1 for i, piece in enumerate(["H", "e", "l", "o", "\u0120", "w", "He", "ll", "Hell", "Hello"])}}
TEMPLATE = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}
put("tokenizer", "bpe", tokenizer({"type": "BPE", "vocab": LETTERS, "merges": ["H e", "l l", "He ll", "Hell o"], "byte_fallback": False},
                                  pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                                  decoder={"type": "ByteLevel"}, post_processor=TEMPLATE))
put("tokenizer", "unigram", tokenizer({"type": "Unigram", "unk_id": 0, "vocab": [["<s>", 0.0], ["\u2581", -2.0], ["\u2581Hello", -3.5], ["H", -4.0]]},
                                      normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
                                      pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
                                      decoder={"type": "Metaspace", "replacement": "\u2581"}))
put("tokenizer", "word_piece", tokenizer({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                                          "vocab": {"<s>": 0, "[UNK]": 1, "hello": 2, "##lo": 3, "hel": 4, ",": 5}},
                                         normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
                                         pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}))
put("tokenizer", "split", tokenizer({"type": "BPE", "vocab": LETTERS, "merges": [["H", "e"]], "ignore_merges": True},
                                    pre_tokenizer={"type": "Sequence", "pretokenizers": [
                                        {"type": "Split", "pattern": {"Regex": r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"}, "behavior": "Isolated", "invert": False},
                                        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}))
# Small ones of the reference models.
for family in ("llama", "gemma3", "qwen2", "bert", "t5", "gpt2"):
    for target, name in (("config", "config.json"), ("tokenizer", "tokenizer.json")):
        path = os.path.join(FIXTURES, "models", family, name)
        if FIXTURES and os.path.exists(path) and os.path.getsize(path) < 40_000:
            put(target, family, open(path, "rb").read())

templates = json.load(open(f"{ROOT}/tests/data/chat_templates.json"))["templates"]
for i, template in enumerate(templates):
    put("chat_template", f"{i:03}", template)

# The images of tests/images/image_test.cpp, each a tensor of bytes.
with open(f"{ROOT}/tests/data/images.safetensors", "rb") as file:
    length = struct.unpack("<Q", file.read(8))[0]
    header, data = json.loads(file.read(length)), file.read()
for name, tensor in header.items():
    if name.endswith("/file"):
        begin, end = tensor["data_offsets"]
        put("image", name.removesuffix("/file"), data[begin:end])


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def wav(form, channels, rate, bits, data):
    kind = struct.pack("<HHIIHH", form, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    return chunk(b"RIFF", b"WAVE" + chunk(b"fmt ", kind) + chunk(b"data", data))


put("sound", "pcm", wav(1, 1, 16000, 16, bytes(range(250)) * 4))
put("sound", "float", wav(3, 2, 44100, 32, struct.pack("<8f", *[i / 8 for i in range(8)]) * 20))
put("sound", "mu_law", wav(7, 1, 8000, 8, bytes(range(256))))
put("sound", "au", b".snd" + struct.pack(">5I", 24, 200, 3, 8000, 1) + bytes(range(200)))
put("sound", "flac", b"fLaC" + bytes([0x80, 0, 0, 34, 16, 0, 16, 0, 0, 0, 0, 0, 0, 0, 10, 0xc4, 0x42, 0xf0]) + bytes(40))
put("sound", "mp3", (b"\xff\xfb\x90\x64" + bytes(413)) * 3)
put("sound", "ogg", b"OggS\0\2" + bytes(20) + b"\1\x1e\1vorbis" + bytes(23))

for name in ("qwen2_some", "qwen3_head", "gpt_oss_down"):
    config, tensors = (open(f"{ROOT}/tests/data/lora/{name}/adapter_{part}", "rb").read() for part in ("config.json", "model.safetensors"))
    put("adapter", name, config + b"\0" + tensors)
put("adapter", "pattern", json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "use_rslora": True, "rank_pattern": {"q(a|b)": 2},
    "alpha_pattern": {"v": 1.5}, "target_modules": ["qa", "v"], "bias": "none", "use_dora": False}).encode() + b"\0" + safetensors({
    f"base_model.model.{module}.lora_{part}.weight": {"dtype": "F16", "shape": shape, "data_offsets": [at, at + 8]}
    for module, part, shape, at in (("0.qa", "A", [2, 2], 0), ("0.qa", "B", [2, 2], 8), ("v", "A", [1, 4], 16), ("v", "B", [4, 1], 24))}, 32))
put("adapter", "gguf", gguf({"general.type": "adapter", "adapter.type": "lora", "general.architecture": "qwen2", "adapter.lora.alpha": 4.0},
                            [("blk.0.attn_q.weight.lora_a", (2, 2), 0, bytes(16)), ("blk.0.attn_q.weight.lora_b", (2, 3), 1, bytes(12)),
                             ("blk.0.ffn_up_exps.weight.lora_a", (2, 1, 2), 0, bytes(16)), ("blk.0.ffn_up_exps.weight.lora_b", (1, 2, 2), 0, bytes(16))]))

put("request", "lora", json.dumps({"prompt": "a", "lora": [{"name": "a", "scale": -0.5}, {"name": "b"}]}))
put("request", "chat", json.dumps({
    "model": "m", "messages": [{"role": "system", "content": [{"type": "text", "text": "a"}]}, {"role": "user", "content": "?"},
                               {"role": "assistant", "content": None, "tool_calls": [
                                   {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
                               {"role": "tool", "tool_call_id": "1", "content": "2"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "tool_choice": "auto", "n": 2, "stop": ["a"],
    "temperature": 0.5, "seed": -1, "logit_bias": {"1": -100}, "logprobs": True, "top_logprobs": 2, "stream": True,
    "stream_options": {"include_usage": True}, "chat_template_kwargs": {"a": [1]}, "response_format": {"type": "text"}}))
put("request", "completion", json.dumps({"prompt": ["a", "b"], "max_tokens": 5, "logprobs": 3, "echo": False, "best_of": 1}))
put("request", "hermes", 'Well. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>')
put("request", "mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]')
put("request", "named", '[TOOL_CALLS]f[CALL_ID]a1[ARGS]{"x": 1}[TOOL_CALLS]f[ARGS]{}')
put("request", "coder", "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>")
put("request", "llama", '<|python_tag|>{"name": "f", "parameters": {"x": 1}}')
put("request", "schema", json.dumps({"prompt": "a", "messages": [{"role": "user", "content": "?"}], "tool_choice": "required",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}, "guided_regex": "a"}))

# The first byte chooses the notation, the second is where chance begins.
put("grammar", "schema", "\0a" + json.dumps({
    "$defs": {"n": {"type": ["integer", "null"], "minimum": -3, "exclusiveMaximum": 100}}, "type": "object",
    "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"const": 1}]}, "minItems": 1,
                   "maxItems": 3}, "c": {"type": "string", "minLength": 1, "maxLength": 9}, "d": {"pattern": "^[a-z]+$"},
                   "e": {"format": "date-time"}, "f": {"enum": ["x", 2]}, "g": {"prefixItems": [{"type": "boolean"}]},
                   "h": {"type": "number", "minimum": 0, "maximum": 1}, "i": {"oneOf": [{}, True]}},
    "required": ["a"], "additionalProperties": {"allOf": [{"type": "string"}, {"minLength": 2}]}}))
put("grammar", "regex", "\1b" + r"^(a|[b-y]{2,5}|\d+\.\w*?|(?:\u00e9[^x\]])+)$")
put("grammar", "gbnf", '\2croot ::= expr ("," expr)* # all\nexpr ::= term "+" expr | term\nterm ::= "(" expr ")" | [0-9a-f\\x41]{1,3} | "\\n"?\n')

# Calls by their numbers, and the bytes that they read, in the order of clang: zeros stand for what is valid.
CALLS = re.findall(r'^    \{"(\w+)", ', open(f"{ROOT}/tests/fuzz/c_interface_fuzz.cpp").read(), re.M)


def call(name, *read):
    return bytes([CALLS.index(name)]) + b"".join(bytes([len(part)]) + part.encode() if isinstance(part, str) else bytes(part) for part in read)


def copy(task, kind, which):
    return call("copy", [task], [0] * 6, [0, 0, 0, 8, 8, 0, 0, 0], [0, kind, 0, 0], [0] * 5, [which, 0, 0])


def read(task, which):
    return call("read", [task, 0, 0, which, 0, 0])


TRANSLATION = call("begin_translation", "iron", [0, 0, 0, 0, 6, 0, 0, 0])
COMPLETION = call("begin_generation", [0, 0], "The red", "", [6, 1, 0, 0, 0, 0, 0, 0, 0])
EMBEDDING = call("begin_embedding", "A red house.", [0] * 8)
IMAGE = call("begin_image", [0] * 8, [1, 0, 0, 1], [0] * 4)
FINISH = call("finish", [0])
OPTIONS = ["", [0, 0, 4] + [0] * 28]  # of a completion of four tokens
put("c_interface", "translation", TRANSLATION + call("record", [0] * 5) + call("completed", [0] * 3) + call("step", [0] * 6) + FINISH +
    read(0, 0) + read(0, 1) + read(0, 2) + call("trim", [0, 0]))
put("c_interface", "maps", TRANSLATION + FINISH + call("begin_maps", [0] * 7) + call("finish", [1]) + copy(1, 2, 0) + copy(1, 0, 1) +
    copy(1, 4, 0) + call("restart_maps", [1, 0, 0]) + call("destroy", [9]))
put("c_interface", "completion", call("make_grammar", "[a-z]{1,9}", [0, 2, 0, 0]) + COMPLETION + FINISH + read(0, 0) + call("destroy", [9]) +
    call("snapshot", [0] * 9) + call("converse", [0, 6, 0]) + call("use_adapters", [0], "a", [0, 0, 0, 0, 0]))
put("c_interface", "completions", call("generate", *OPTIONS, "The red", [0] * 5) +
    call("generate_all", *OPTIONS, "A", "The red hammer", [0, 2, 0, 0, 0, 0]) + call("batch", [0, 0], *OPTIONS, "The red", [0] * 11) +
    b"".join(call("tokens", *OPTIONS, "A house.", [0, which, 0, 0, 0, 0, 0]) for which in range(4)) +
    call("score", "The", " red", [0] * 14, [1], [0] * 6) + b"".join(call("report", [0] * 12, [which], [0] * 4) for which in range(4)))
put("c_interface", "embedding", EMBEDDING + FINISH + copy(0, 0, 2) + copy(0, 0, 3) + read(0, 3) + read(0, 0) + call("count", [0] * 5))
put("c_interface", "image", IMAGE + FINISH + copy(0, 0, 4) + copy(0, 0, 5) + read(0, 4) + read(0, 3) + read(0, 0))
put("c_interface", "arrays", call("embed_images", [0, 0, 32, 32, 0, 0, 16, 24, 0, 0, 0, 0, 1, 1, 1, 2, 0, 2], [0] * 5) +
    call("attend", [0] * 90) + call("describe", [0] * 4) + call("describe", [0, 0, 0, 1, 0, 0]) + call("describe", [0, 0, 0, 3, 0, 0, 0]))
put("c_interface", "loading", call("load", [0, 1] + [0] * 9, [4]) + call("step_load", [0, 25, 0, 0]) + call("finish_load", [0, 0, 1]) +
    call("load", [0] * 12) + call("open_files", [0], "{}", [0, 0, 0], "x", [1, 1, 0, 0, 0, 2, 0]) + call("destroy", [2]))
put("c_interface", "texts", call("translate", [0], "iron", "", [0] * 15, [1, 0, 0]) + call("score_translations", [0, 0], "iron", "The", [0] * 3, [2, 0, 0]) +
    call("text_tokens", [0], "iron", [0] * 20) + call("embed_texts", [0], "iron", "A", [0] * 14, [2, 0, 0, 0]) + call("describe_texts", [0] * 9) +
    TRANSLATION + call("run", [0] * 4) + call("wait_for", [0] * 4))
put("c_interface", "devices", call("adopt", "", [0, 0, 0]) + call("adopt", "cache", [15, 0, 0]) + call("adopt", "", [10, 0, 0]) +
    b"".join(call("ask", [0] * 13, [which], [0] * count) for which, count in enumerate((6, 2, 3, 2, 8))) + call("warm", [0] * 11) + call("prewarm", [0, 0, 3, 0]))


def quoted(word):
    """In libFuzzer's form: letters and digits of ASCII, every other byte by its number."""
    return '"' + re.sub(rb"[^A-Za-z0-9_.-]", lambda byte: b"\\x%02x" % ord(byte[0]), word.encode()).decode() + '"'


def dictionary(target, words):
    with open(os.path.join(OUT, target + ".dict"), "w") as file:
        file.write("\n".join(quoted(word) for word in sorted(words) if word) + "\n")


dictionary("gguf", {*SPM, *BPE, "general.alignment", "llama-bpe", "qwen2", "deepseek-llm", "bert", "\u2581"})
dictionary("safetensors", {"dtype", "shape", "data_offsets", "__metadata__", "F16", "BF16", "F64", "U8", "BOOL", "F8_E4M3"})
dictionary("adapter", {"general.type", "adapter", "adapter.type", "lora", "general.architecture", "adapter.lora.alpha", ".lora_a", ".lora_b",
                       ".lora_A.weight", ".lora_B.weight", "base_model.model.", "peft_type", "LORA", "lora_alpha", "use_rslora", "rank_pattern",
                       "alpha_pattern", "target_modules", "target_parameters", ".base_layer", "gate_up_proj", "down_proj", "all-linear", "modules_to_save", "bias", "none", "use_dora"})
dictionary("grammar", {"::=", "root", "{1,3}", "{0,9}", "[^", "\\d", "\\w", "\\x41", "(?:", "additionalProperties", "required", "properties", "items",
                       "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "enum", "const", "anyOf",
                       "allOf", "$ref", "#/$defs/n", "minimum", "exclusiveMaximum", "integer", "string", "object", "array", "number"})
for target in ("config", "tokenizer", "request"):
    words = set()
    for name in os.listdir(os.path.join(OUT, target)):
        words |= set(re.findall(r'"([A-Za-z_]{2,40})"', open(os.path.join(OUT, target, name), encoding="utf-8").read()))
    dictionary(target, words)
dictionary("image", {"IHDR", "PLTE", "tRNS", "IDAT", "eXIf", "IEND", "VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "EXIF",
                     "JFIF", "Exif", "Adobe"})
dictionary("chat_template", {w for t in templates for w in re.findall(r"[a-z_]{3,20}|\{%-?|-?%\}|\{\{-?|-?\}\}|\{#|#\}", t)})
dictionary("c_interface", {"iron", "The red hammer", "config.json", "root ::= ", "[a-z]+"})
dictionary("sound", {"RIFF", "WAVE", "fmt ", "data", "fact", "LIST", "fLaC", "OggS", "vorbis", "OpusHead", "ID3", "FORM", "AIFF", ".snd"})
