#!/usr/bin/env python3
"""Makes a tiny model of each recurrent architecture with the values it must give, computed by PyTorch in float64.

    tools/train/reference.py tests/data

Writes bahdanau/ and luong/ there: config.json, generation_config.json, model.safetensors with random weights, and
expected.safetensors with expected.json, which `mulciber verify` reads. Ids come from searches written here.
"""

import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from recurrent import Bahdanau, Luong, recurrent_config, recurrent_tensors

PIECES, EOS = 61, 0
PAD = PIECES - 1
RULES = dict(decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=EOS, forced_eos_token_id=EOS,
             bad_words_ids=[[PAD]])


def random_model(make, seed: int, ending: float):
    """Sizes that divide by no tile. Larger weights than training starts from, so that no map is flat."""
    torch.manual_seed(seed)
    model = make().eval()
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, std=0.3 if "bias" in name else 0.6)
    with torch.no_grad():
        model.output_bias[EOS] += ending  # texts end now and then
    return model.double()


def forward(model, source, target):
    memory, state = model.encode(source)
    x, _, maps = model.decode(target, memory, state)
    return {"encoder_last_hidden_state": memory[0], "logits": model.logits(x), "cross_attentions": maps[None, :, None]}


def log_probabilities(model, source, ids, last: bool):
    """Of the piece after `ids`: the prefix is decoded anew each time, which a search need not do."""
    memory, state = model.encode(source)
    x, _, _ = model.decode(torch.tensor([ids]), memory, state)
    logp = model.logits(x[:, -1])[0].log_softmax(-1)
    if last:  # the forced end
        return torch.full_like(logp, -math.inf).index_fill_(0, torch.tensor([EOS]), 0.0)
    logp[PAD] = -math.inf
    return logp


def beam_search(model, source, beams: int, penalty: float, longest: int):
    """Best first: (score, ids after the start). Rules of Hugging Face's generate with early_stopping=False."""
    running, finished, margin = [(0.0, [])], [], math.inf
    for step in range(1, longest + 1):
        candidates = []
        for total, ids in running:
            logp = log_probabilities(model, source, [PAD] + ids, step == longest)
            candidates += [(total + p.item(), ids + [i]) for i, p in enumerate(logp) if p > -math.inf]
        candidates = sorted(candidates, key=lambda c: -c[0])[: 2 * beams + 1]
        margin = min([margin] + [a[0] - b[0] for a, b in zip(candidates, candidates[1:])])
        running = []
        for rank, (total, ids) in enumerate(candidates[: 2 * beams]):
            if ids[-1] == EOS:
                if rank < beams:
                    finished = sorted(finished + [(total / step**penalty, ids)], key=lambda f: -f[0])[:beams]
            elif len(running) < beams:
                running.append((total, ids))
        if not running or len(finished) == beams and running[0][0] / step**penalty <= finished[-1][0]:
            break
    return finished, margin


def search_case(model, name, source, beams, penalty, longest):
    found, margin = beam_search(model, source, beams, penalty, longest)
    assert margin > 1e-4, f"{name}: candidates {margin} apart: take another seed"
    width = max(len(ids) for _, ids in found)
    outputs = {"output_ids": torch.tensor([[PAD] + ids + [PAD] * (width - len(ids)) for _, ids in found])}
    if beams > 1:
        outputs["sequences_scores"] = torch.tensor([score for score, _ in found], dtype=torch.float64)
    params = dict(num_beams=beams, num_return_sequences=beams, length_penalty=penalty, early_stopping=False,
                  max_new_tokens=longest, rules=RULES)
    return name, "beam" if beams > 1 else "greedy", {"input_ids": source}, outputs, params


@torch.no_grad()
def write_reference(model, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw = torch.Generator().manual_seed(7)

    def ids(*shape):
        return torch.randint(1, PAD, shape, generator=draw)

    def sentences(*lengths):
        rows = ids(len(lengths), max(lengths))
        for row, length in zip(rows, lengths):
            row[length - 1] = EOS
            row[length:] = PAD
        return rows

    cases, texts = [], []
    for name, source, target in (("len1_3", sentences(1), ids(1, 3)), ("len7_1", sentences(7), ids(1, 1)),
                                 ("len33_12", sentences(33), ids(1, 12)), ("padded", sentences(9, 4, 1), ids(3, 5))):
        inputs = {"input_ids": source, "decoder_input_ids": target}
        if len(source) > 1:
            inputs["attention_mask"] = (source != PAD).long()
        cases.append((name, "forward", inputs, forward(model, source, target), {}))
    for i, length in enumerate((6, 11)):
        texts.append(sentences(length))
        cases.append(search_case(model, f"greedy{i}", texts[i], 1, 1.0, 20))
        cases.append(search_case(model, f"beam{i}", texts[i], 4, (1.0, 0.6)[i], 20))

    # How far 32-bit arithmetic is off, for the tolerances.
    narrow = {name: forward(model.float(), inputs["input_ids"], inputs["decoder_input_ids"])
              for name, kind, inputs, _, _ in cases if kind == "forward"}
    tensors, listed = {}, []
    for name, kind, inputs, outputs, params in cases:
        tensors |= {f"{name}/{key}": value.contiguous() for key, value in (inputs | outputs).items()}
        difference = {key: (value - narrow[name][key]).abs().max().item() for key, value in outputs.items()
                      if kind == "forward"}
        listed.append(dict(name=name, kind=kind, inputs=sorted(inputs), outputs=sorted(outputs), params=params,
                           f32_max_abs_diff=difference))
    save_file({key: value.float() if value.is_floating_point() else value.int() for key, value in tensors.items()},
              folder / "expected.safetensors")
    save_file(recurrent_tensors(model, torch.float32), folder / "model.safetensors", metadata={"format": "pt"})
    config = recurrent_config(model) | dict(vocab_size=PIECES, is_encoder_decoder=True, dtype="float32")
    config |= {key: value for key, value in RULES.items() if key != "bad_words_ids"}
    for name, content in (("config.json", config), ("expected.json", dict(family=config["model_type"], cases=listed)),
                          ("generation_config.json", RULES | dict(max_length=20, num_beams=4))):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="ascii")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)


def main():
    folder = Path(sys.argv[1])
    write_reference(random_model(lambda: Bahdanau(PIECES, 20, 24, 12), 1, 0.5), folder / "bahdanau")
    write_reference(random_model(lambda: Luong(PIECES, 20, 24, 2), 118, 2.0), folder / "luong")


if __name__ == "__main__":
    main()
