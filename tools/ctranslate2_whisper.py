#!/usr/bin/env python3
"""Converts a Whisper model from CTranslate2's format to a Hugging Face folder, whose names and shapes it restores.

    tools/ctranslate2_whisper.py model.bin tokenizer.json config.json FOLDER

The file: version, name and revision of its kind, then each variable with name, shape, type and bytes (CTranslate2's
python/ctranslate2/specs/model_spec.py, version 6). Queries, keys and values stand in one matrix there; keys have a bias
of zeros, which Hugging Face's files leave out.
"""
import json
import os
import struct
import sys

DTYPES = {0: ("F32", 4), 4: ("F16", 2)}


class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0

    def number(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize(kind)
        return value

    def take(self, size):
        if self.at + size > len(self.data):
            sys.exit("the file is cut short")
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.take(self.number("H")).rstrip(b"\0").decode()


def read_variables(path):
    reader = Reader(path)
    version, kind, _ = reader.number("I"), reader.text(), reader.number("I")
    if version != 6 or kind != "WhisperSpec":
        sys.exit(f"{path}: version {version} of {kind}, not version 6 of WhisperSpec")
    variables = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        shape = [reader.number("I") for _ in range(reader.number("B"))]
        kind, size = reader.number("B"), reader.number("I")
        variables[name] = (kind, shape, reader.take(size))
    return variables


class Writer:
    def __init__(self, variables):
        self.variables, self.tensors = variables, {}

    def add(self, name, source, part=0, parts=1):
        kind, shape, data = self.variables[source]
        dtype, size = DTYPES[kind]
        rows = shape[0] // parts
        step = len(data) // parts
        assert step == rows * size * (shape[1] if len(shape) > 1 else 1) * (shape[2] if len(shape) > 2 else 1)
        self.tensors["model." + name] = (dtype, [rows, *shape[1:]], data[part * step:(part + 1) * step])

    def linear(self, name, source, part=0, parts=1, bias=True):
        self.add(name + ".weight", source + "/weight", part, parts)
        if bias:
            self.add(name + ".bias", source + "/bias", part, parts)

    def norm(self, name, source):
        self.add(name + ".weight", source + "/gamma")
        self.add(name + ".bias", source + "/beta")

    def attention(self, name, source, crosses):
        if crosses:
            self.linear(name + ".q_proj", source + "/linear_0")
            self.linear(name + ".k_proj", source + "/linear_1", 0, 2, bias=False)
            self.linear(name + ".v_proj", source + "/linear_1", 1, 2)
            self.linear(name + ".out_proj", source + "/linear_2")
        else:
            for part, letter in enumerate("qkv"):
                self.linear(f"{name}.{letter}_proj", source + "/linear_0", part, 3, bias=letter != "k")
            self.linear(name + ".out_proj", source + "/linear_1")
        self.norm(name + "_layer_norm", source + "/layer_norm")

    def stack(self, stack):
        layers = 0
        while f"{stack}/layer_{layers}/ffn/linear_0/weight" in self.variables:
            name, source = f"{stack}.layers.{layers}", f"{stack}/layer_{layers}"
            self.attention(name + ".self_attn", source + "/self_attention", False)
            if stack == "decoder":
                self.attention(name + ".encoder_attn", source + "/attention", True)
            self.linear(name + ".fc1", source + "/ffn/linear_0")
            self.linear(name + ".fc2", source + "/ffn/linear_1")
            self.norm(name + ".final_layer_norm", source + "/ffn/layer_norm")
            layers += 1
        self.add(stack + ".embed_positions.weight", stack + "/position_encodings/encodings")
        self.norm(stack + ".layer_norm", stack + "/layer_norm")
        return layers

    def save(self, path):
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for name, (dtype, shape, data) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, _, data in self.tensors.values():
                file.write(data)


def main():
    model, tokenizer, config, folder = sys.argv[1:]
    variables = read_variables(model)
    writer = Writer(variables)
    for conv in ("conv1", "conv2"):
        writer.linear("encoder." + conv, "encoder/" + conv)
    writer.add("decoder.embed_tokens.weight", "decoder/embeddings/weight")
    encoder_layers, decoder_layers = writer.stack("encoder"), writer.stack("decoder")
    with open(config, encoding="utf-8") as file:
        told = json.load(file)
    with open(tokenizer, encoding="utf-8") as file:
        ids = {token["content"]: token["id"] for token in json.load(file)["added_tokens"]}
    shape = {name: variable[1] for name, variable in variables.items()}
    heads = {stack: struct.unpack("<h", variables[stack + "/num_heads"][2])[0] for stack in ("encoder", "decoder")}
    vocabulary, width = shape["decoder/embeddings/weight"]
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    os.makedirs(folder)
    files = {
        "config.json": {
            "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": width,
            "num_mel_bins": shape["encoder/conv1/weight"][1], "vocab_size": vocabulary,
            "encoder_layers": encoder_layers, "encoder_attention_heads": heads["encoder"],
            "encoder_ffn_dim": shape["encoder/layer_0/ffn/linear_0/weight"][0],
            "decoder_layers": decoder_layers, "decoder_attention_heads": heads["decoder"],
            "decoder_ffn_dim": shape["decoder/layer_0/ffn/linear_0/weight"][0],
            "max_source_positions": shape["encoder/position_encodings/encodings"][0],
            "max_target_positions": shape["decoder/position_encodings/encodings"][0],
            "activation_function": "gelu", "is_encoder_decoder": True, "scale_embedding": False,
            "tie_word_embeddings": True, **special},
        "generation_config.json": {
            "alignment_heads": told["alignment_heads"], "suppress_tokens": told["suppress_ids"],
            "begin_suppress_tokens": told["suppress_ids_begin"], "is_multilingual": vocabulary != 51864,
            "no_timestamps_token_id": ids["<|notimestamps|>"], "max_length": 448, "return_timestamps": False, **special},
        "preprocessor_config.json": {
            "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": shape["encoder/conv1/weight"][1],
            "sampling_rate": 16000, "hop_length": 160, "n_fft": 400, "chunk_length": 30, "n_samples": 480000,
            "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False},
    }
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
    with open(tokenizer, "rb") as source, open(os.path.join(folder, "tokenizer.json"), "wb") as file:
        file.write(source.read())
    writer.save(os.path.join(folder, "model.safetensors"))


main()
