#!/usr/bin/env python3
"""Trains the bundled reader of digit strings, a vision transformer with a decoder whose cross-attention looks at the
patches, and writes it as a Hugging Face folder (VisionEncoderDecoderModel).

    tools/train/digit_strings.py --export assets/digit-strings --sheet tests/data/digit_strings.png

A string is three to five of scikit-learn's digits side by side. Every fifth digit is held out: strings of these are read
once, after the last step. --sheet writes some of these, one to a row, and their texts beside it.
"""

import argparse
import json
import math
import shutil
import time
from pathlib import Path

import numpy
import torch
from PIL import Image
from sklearn.datasets import load_digits
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional
from transformers import TrOCRConfig, TrOCRForCausalLM, ViTConfig, ViTModel, VisionEncoderDecoderModel

ROOT = Path(__file__).resolve().parents[2]
HEIGHT, WIDTH = 16, 64  # pixels of what the model sees
DIGIT = 8  # pixels of a side of scikit-learn's
FEWEST, MOST = 3, 5  # digits of a string
PIECES = ["<s>", "<pad>", "</s>", *"0123456789"]
START, PAD, END = 2, 1, 2  # of TrOCR: texts begin with what ends them
FIRST_DIGIT = PIECES.index("0")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--export", type=Path, default=ROOT / "assets/digit-strings", help="folder that gets the model")
    add("--sheet", type=Path, help="PNG that gets strings of held-out digits")
    add("--sheet-strings", type=int, default=60)
    add("--start", type=Path, help="folder of such a model that is trained on")
    add("--width", type=int, default=64)
    add("--layers", type=int, default=2, help="of the encoder, and of the decoder")
    add("--heads", type=int, default=4)
    add("--ffn", type=int, default=128)
    add("--patch", type=int, default=4)
    add("--steps", type=int, default=9000)
    add("--growing", type=float, default=0.3, help="share of the steps in which strings grow from one digit on")
    add("--filling", action="store_true", help="half of the strings fill the image")
    add("--batch", type=int, default=32)
    add("--rate", type=float, default=1.5e-3, help="peak of the learning rate")
    add("--warmup", type=int, default=300, help="steps until the peak")
    add("--decay", type=float, default=0.05, help="weight decay")
    add("--dropout", type=float, default=0.05)
    add("--held-out-strings", type=int, default=2000)
    add("--seed", type=int, default=1797)
    return parser.parse_args()


def make_model(options) -> VisionEncoderDecoderModel:
    encoder = ViTConfig(
        hidden_size=options.width, num_hidden_layers=options.layers, num_attention_heads=options.heads,
        intermediate_size=options.ffn, image_size=[HEIGHT, WIDTH], patch_size=options.patch, num_channels=3,
        hidden_dropout_prob=options.dropout, attention_probs_dropout_prob=options.dropout)
    decoder = TrOCRConfig(
        vocab_size=len(PIECES), d_model=options.width, decoder_layers=options.layers,
        decoder_attention_heads=options.heads, decoder_ffn_dim=options.ffn, activation_function="gelu",
        max_position_embeddings=MOST + 3, dropout=options.dropout, scale_embedding=False,
        use_learned_position_embeddings=True, layernorm_embedding=True, cross_attention_hidden_size=options.width,
        is_decoder=True, add_cross_attention=True, use_cache=False, bos_token_id=0, pad_token_id=PAD, eos_token_id=END,
        decoder_start_token_id=START, tie_word_embeddings=False)
    model = VisionEncoderDecoderModel(encoder=ViTModel(encoder, add_pooling_layer=False),
                                      decoder=TrOCRForCausalLM(decoder))
    model.config.decoder_start_token_id, model.config.eos_token_id, model.config.pad_token_id = START, END, PAD
    return model


def draw_strings(count: int, labels, length: torch.Tensor):
    """Which digits stand in each string, (count, MOST), and the ids of its text with the end; -100 behind it."""
    chosen = torch.randint(len(labels), (count, MOST))
    place = torch.arange(MOST + 1)
    ids = torch.full((count, MOST + 1), -100)
    ids[:, :MOST] = labels[chosen] + FIRST_DIGIT
    ids[place >= length[:, None]] = -100
    ids[place == length[:, None]] = END
    return chosen, ids


def moved_pixels(digits, chosen, length) -> torch.Tensor:
    """Each string as the model sees it, from -1 to 1: of a size and at a place of its own, each of its digits turned by
    up to 10 degrees, scaled by up to a tenth and moved by up to a sixteenth."""
    count = len(chosen)

    def between(low, high, *shape):
        return low + torch.rand(*shape) * (high - low)

    # A string fills the width or leaves some of it; digits are at most a third wider than high.
    advance = torch.minimum(between(0.75, 1.0, count) * WIDTH / length, torch.tensor(1.35 * HEIGHT))
    left = between(0, 1, count) * (WIDTH - advance * length)
    height = between(0.75, 1.0, count) * HEIGHT
    middle = HEIGHT / 2 + between(-0.5, 0.5, count) * (HEIGHT - height)
    angle = between(-1, 1, count, MOST) * math.radians(10)
    scale = 1 + between(-0.1, 0.1, count, MOST)
    x = left[:, None] + (torch.arange(MOST) + 0.5 + between(-0.06, 0.06, count, MOST)) * advance[:, None]
    y = middle[:, None] + between(-0.06, 0.06, count, MOST) * height[:, None]
    # From where a pixel of the canvas lies, from -1 to 1, to where it lies in the digit.
    to_x, to_y = WIDTH / advance[:, None] * scale, HEIGHT / height[:, None] * scale
    at_x, at_y = x * 2 / WIDTH - 1, y * 2 / HEIGHT - 1
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([to_x * cos, -to_y * sin, -to_x * cos * at_x + to_y * sin * at_y], -1),
                        torch.stack([to_x * sin, to_y * cos, -to_x * sin * at_x - to_y * cos * at_y], -1)], -2)
    there = torch.arange(MOST) < length[:, None]
    grid = functional.affine_grid(turn[there], (int(there.sum()), 1, HEIGHT, WIDTH), align_corners=False)
    single = functional.grid_sample(digits[chosen[there]], grid, align_corners=False)
    canvas = torch.zeros(count, 1, HEIGHT, WIDTH)
    canvas.index_add_(0, torch.arange(count)[:, None].expand(count, MOST)[there], single)
    return (canvas.clamp(max=1) * 2 - 1).expand(count, 3, HEIGHT, WIDTH)


def filling_pixels(digits, chosen, length) -> torch.Tensor:
    """Each string as string_images() and pixels() make it, moved by up to a pixel as a whole."""
    seen = []
    for row, n in zip(chosen, length):
        string = torch.cat([digits[i] for i in row[:n]], -1)
        seen.append(functional.interpolate(string[None], size=(HEIGHT, WIDTH), mode="bilinear"))
    shift = (torch.rand(len(chosen), 2) * 2 - 1) * torch.tensor([2 / WIDTH, 2 / HEIGHT]) * torch.randint(2, (1,))
    place = torch.cat([torch.eye(2).expand(len(chosen), 2, 2), shift[:, :, None]], -1)
    grid = functional.affine_grid(place, (len(chosen), 1, HEIGHT, WIDTH), align_corners=False)
    moved = functional.grid_sample(torch.cat(seen), grid, padding_mode="border", align_corners=False)
    return (moved * 2 - 1).expand(len(chosen), 3, HEIGHT, WIDTH)


def lengths(step: int, options) -> torch.Tensor:
    """Of the strings of a batch. The first are of one digit, so that digits are known before their order is learned."""
    growing = options.steps * options.growing
    if step >= growing:
        return torch.randint(FEWEST, MOST + 1, (options.batch,))
    return torch.randint(1, 2 + int(step / growing * MOST), (options.batch,))


def train(model, digits, labels, options) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    model.train()
    total, begin = 0.0, time.time()
    for step in range(options.steps):
        fall = 0.5 * (1 + math.cos(math.pi * step / options.steps))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / options.warmup) * fall
        length = lengths(step, options)
        chosen, ids = draw_strings(options.batch, labels, length)
        fed = torch.cat([torch.full((options.batch, 1), START), ids[:, :-1].clamp(min=0)], 1)
        half = options.batch // 2 if options.filling else 0
        seen = torch.cat([filling_pixels(digits, chosen[:half], length[:half]),
                          moved_pixels(digits, chosen[half:], length[half:])]) if half else \
            moved_pixels(digits, chosen, length)
        states = model.encoder(pixel_values=seen).last_hidden_state
        logits = model.decoder(input_ids=fed, encoder_hidden_states=states).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), ids.flatten(), label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        if (step + 1) % 200 == 0:
            print(f"step {step + 1}: loss {total / 200:.4f}, {time.time() - begin:.0f} s", flush=True)
            total = 0.0


def string_images(digits, chosen, length) -> list[Image.Image]:
    """Strings as files show them: digits of 8 by 8 pixels, nothing between them."""
    arrays = numpy.round(digits[:, 0].numpy() * 255).astype(numpy.uint8)
    return [Image.fromarray(numpy.hstack([arrays[i] for i in row[:n]])) for row, n in zip(chosen, length)]


def pixels(images: list[Image.Image]) -> torch.Tensor:
    """As preprocessor_config.json says: bilinear, then from -1 to 1; grey is three channels alike."""
    arrays = [numpy.asarray(image.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR))
              for image in images]
    values = torch.from_numpy(numpy.stack(arrays)).permute(0, 3, 1, 2).float()
    return (values / 255 - 0.5) / 0.5


@torch.no_grad()
def read(model, values) -> torch.Tensor:
    """The likeliest id at each step, (strings, MOST + 1); END behind the end."""
    model.eval()
    states = model.encoder(pixel_values=values).last_hidden_state
    ids = torch.full((len(values), 1), START)
    ended = torch.zeros(len(values), dtype=torch.bool)
    for _ in range(MOST + 1):
        best = model.decoder(input_ids=ids, encoder_hidden_states=states).logits[:, -1].argmax(-1)
        ids = torch.cat([ids, best.masked_fill(ended, END)[:, None]], 1)
        ended |= best == END
    return ids[:, 1:]


def texts(ids) -> list[str]:
    return ["".join(PIECES[i] for i in row if i >= FIRST_DIGIT) for row in ids.tolist()]


def export(model, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    encoder, decoder = model.config.encoder, model.config.decoder
    encoder.hidden_dropout_prob = encoder.attention_probs_dropout_prob = decoder.dropout = 0.0
    decoder.use_cache = True
    work = folder / "whole"
    model.save_pretrained(work)
    for name in ("config.json", "model.safetensors"):
        shutil.move(work / name, folder / name)
    shutil.rmtree(work)
    processor = {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": HEIGHT, "width": WIDTH},
        "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")
    tokenizer = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(PIECES)}, merges=[]))
    tokenizer.add_special_tokens(PIECES[:FIRST_DIGIT])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def write_sheet(path: Path, images: list[Image.Image], said: list[str]) -> None:
    sheet = Image.new("L", (DIGIT * MOST, DIGIT * len(images)))
    for i, image in enumerate(images):
        sheet.paste(image, (0, i * DIGIT))
    sheet.save(path, optimize=True)
    path.with_suffix(".txt").write_text("".join(f"{text}\n" for text in said))


def main() -> None:
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    data = load_digits()
    digits = torch.from_numpy(data.images).float()[:, None] / 16
    labels = torch.from_numpy(data.target)
    held_out = torch.arange(len(labels)) % 5 == 4
    model = make_model(options)
    if options.start:
        start = VisionEncoderDecoderModel.from_pretrained(options.start).state_dict()
        model.load_state_dict({name: value for name, value in start.items() if "pooler" not in name})
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    train(model, digits[~held_out], labels[~held_out], options)
    torch.manual_seed(options.seed)
    count = options.held_out_strings
    length = torch.arange(count) % (MOST - FEWEST + 1) + FEWEST
    chosen, ids = draw_strings(count, labels[held_out], length)
    images, said = string_images(digits[held_out], chosen, length), texts(ids)
    found = texts(read(model, pixels(images)))
    for n in range(FEWEST, MOST + 1):
        right = [a == b for a, b in zip(said, found) if len(a) == n]
        print(f"held out, {n} digits: {sum(right) / len(right):.4f} of {len(right)}")
    print(f"held out: {sum(a == b for a, b in zip(said, found)) / count:.4f} of {count}")
    export(model, options.export)
    if options.sheet:
        shown = options.sheet_strings
        write_sheet(options.sheet, images[:shown], said[:shown])
        right = sum(a == b for a, b in zip(said[:shown], found[:shown]))
        print(f"of the sheet: {right} of {shown}")


if __name__ == "__main__":
    main()
