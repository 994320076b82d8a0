"""A trained model as a folder that Hugging Face transformers, and Mulciber, read: written, and read back."""

import json
import shutil
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from recurrent import recurrent_config, recurrent_tensors

EOS, UNKNOWN = 0, 1  # Marian's ids of two pieces


def hugging_face_tensors(model) -> dict[str, torch.Tensor]:
    """The weights under Marian's names, query, key and value apart again."""
    tensors = {"model.shared.weight": model.shared.weight, "final_logits_bias": model.final_logits_bias[None]}
    for side, layers in (("encoder", model.encoder), ("decoder", model.decoder)):
        for name, tensor in layers.state_dict().items():
            prefix, dot, kind = name.rpartition(".project.")
            if not dot:
                tensors[f"model.{side}.layers.{name}"] = tensor
                continue
            for letter, part in zip("qkv", tensor.chunk(3)):
                tensors[f"model.{side}.layers.{prefix}.{letter}_proj.{kind}"] = part
    for name in [name for name in tensors if name.endswith(".kept")]:
        # A pruned head adds nothing: its columns of the output layer are zero in the file.
        out, kept = name.replace(".kept", ".out.weight"), tensors.pop(name)
        tensors[out] = tensors[out] * kept.repeat_interleave(tensors[out].shape[1] // len(kept))
    return {name.replace("_attn.out.", "_attn.out_proj."): tensor.detach().half().contiguous().clone()
            for name, tensor in tensors.items()}


def load_hugging_face(model, folder: Path) -> None:
    """Reads back what hugging_face_tensors() wrote."""
    found = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}

    def value(name):
        side, dot, rest = name.partition(".layers.") if ".layers." in name else ("", "", name)
        prefix, dot, kind = rest.rpartition(".project.")
        if dot:
            return torch.cat([found[f"{side}.layers.{prefix}.{letter}_proj.{kind}"] for letter in "qkv"])
        return found[name.replace("_attn.out.", "_attn.out_proj.")]

    state = model.state_dict()
    for name in state:
        if name.endswith(".kept"):
            continue
        path = name if name == "final_logits_bias" else "model." + name
        for side in ("encoder", "decoder"):
            path = path.replace(f"model.{side}.", f"model.{side}.layers.")
        state[name] = found["final_logits_bias"][0] if name == "final_logits_bias" else value(path)
    model.load_state_dict(state)


def marian_config(model, options) -> dict:
    sizes = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
             (("attention_heads", options.heads), ("ffn_dim", options.ffn), ("layers", options.layers))}
    return dict(
        model_type="marian", architectures=["MarianMTModel"], activation_function="relu", d_model=model.d_model,
        decoder_vocab_size=model.pad + 1, max_position_embeddings=len(model.positions), scale_embedding=True,
        share_encoder_decoder_embeddings=True, tie_word_embeddings=True, bos_token_id=None,
        attention_dropout=0.0, activation_dropout=0.0, use_cache=True, **sizes)


def export(model, spm: Path, options) -> None:
    folder = options.export
    folder.mkdir(parents=True, exist_ok=True)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(spm))

    def write(name, content):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="ascii")

    transformer = options.architecture == "transformer"
    tensors = hugging_face_tensors(model) if transformer else recurrent_tensors(model, torch.float16)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # save_file leaves it readable by its owner alone
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(spm, folder / name)
    vocabulary = {pieces.id_to_piece(i): i for i in range(len(pieces))}
    write("vocab.json", vocabulary | {"<pad>": model.pad})
    ids = dict(decoder_start_token_id=model.pad, eos_token_id=EOS, forced_eos_token_id=EOS, pad_token_id=model.pad)
    config = marian_config(model, options) if transformer else recurrent_config(model)
    write("config.json", config | dict(vocab_size=model.pad + 1, is_encoder_decoder=True, dtype="float16",
                                       dropout=options.dropout, **ids))
    write("generation_config.json", dict(bad_words_ids=[[model.pad]], max_length=128, num_beams=5, length_penalty=1.0,
                                         early_stopping=False, **ids))
    write("tokenizer_config.json", dict(
        tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de", eos_token="</s>", unk_token="<unk>",
        pad_token="<pad>", model_max_length=config["max_position_embeddings"], separate_vocabs=False))
