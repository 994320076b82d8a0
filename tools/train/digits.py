#!/usr/bin/env python3
"""Trains the bundled vision transformer of handwritten digits, and writes it as a Hugging Face folder.

    tools/train/digits.py --export assets/vit-digits --sheet tests/data/digits.png

The data are the 1,797 digits of scikit-learn, 8 by 8 pixels each. Every fifth is held out: nothing was chosen by them,
they are looked at once, after the last epoch. --sheet writes them, 20 to a row, and their labels beside it.
"""

import argparse
import json
import math
import shutil
from pathlib import Path

import numpy
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn import functional
from transformers import ViTConfig, ViTForImageClassification

ROOT = Path(__file__).resolve().parents[2]
SIDE = 32  # pixels of what the model sees
SHEET_COLUMNS = 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--export", type=Path, default=ROOT / "assets/vit-digits", help="folder that gets the model")
    add("--sheet", type=Path, help="PNG that gets the digits held out")
    add("--width", type=int, default=64)
    add("--layers", type=int, default=4)
    add("--heads", type=int, default=4)
    add("--ffn", type=int, default=128)
    add("--patch", type=int, default=4)
    add("--epochs", type=int, default=80)
    add("--batch", type=int, default=64)
    add("--rate", type=float, default=2e-3, help="peak of the learning rate")
    add("--warmup", type=int, default=3, help="epochs until the peak")
    add("--decay", type=float, default=0.05, help="weight decay")
    add("--dropout", type=float, default=0.1)
    add("--seed", type=int, default=1797)
    return parser.parse_args()


def digit_images(digits) -> list[Image.Image]:
    return [Image.fromarray(numpy.round(digit * (255 / 16)).astype(numpy.uint8)) for digit in digits]


def pixels(images: list[Image.Image]) -> torch.Tensor:
    """As preprocessor_config.json says: bilinear to SIDE, then from -1 to 1; grey is three channels alike."""
    arrays = [numpy.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for image in images]
    values = torch.from_numpy(numpy.stack(arrays)).permute(0, 3, 1, 2).float()
    return (values / 255 - 0.5) / 0.5


def moved(batch: torch.Tensor) -> torch.Tensor:
    """Each image turned by up to 12 degrees, scaled by up to a tenth, and moved by up to an eighth."""
    count = len(batch)
    angle = (torch.rand(count) * 2 - 1) * math.radians(12)
    scale = 1 + (torch.rand(count) * 2 - 1) * 0.1
    shift = (torch.rand(count, 2) * 2 - 1) * 0.25
    turn = torch.stack([torch.stack([scale * angle.cos(), -scale * angle.sin(), shift[:, 0]], 1),
                        torch.stack([scale * angle.sin(), scale * angle.cos(), shift[:, 1]], 1)], 1)
    grid = functional.affine_grid(turn, batch.shape, align_corners=False)
    # Black, where the image ends, is -1.
    return functional.grid_sample(batch + 1, grid, align_corners=False) - 1


def make_model(options) -> ViTForImageClassification:
    config = ViTConfig(
        hidden_size=options.width, num_hidden_layers=options.layers, num_attention_heads=options.heads,
        intermediate_size=options.ffn, image_size=SIDE, patch_size=options.patch, num_channels=3,
        hidden_dropout_prob=options.dropout, attention_probs_dropout_prob=options.dropout,
        id2label={i: str(i) for i in range(10)}, label2id={str(i): i for i in range(10)})
    return ViTForImageClassification(config)


def train(model, inputs, labels, options) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    steps = math.ceil(len(inputs) / options.batch)
    for epoch in range(options.epochs):
        model.train()
        total = 0.0
        order = torch.randperm(len(inputs))
        for step in range(steps):
            at = epoch + step / steps
            fall = 0.5 * (1 + math.cos(math.pi * at / options.epochs))
            for group in optimizer.param_groups:
                group["lr"] = options.rate * min(1.0, (at + 0.1) / options.warmup) * fall
            chosen = order[step * options.batch : (step + 1) * options.batch]
            logits = model(moved(inputs[chosen])).logits
            loss = functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() / steps
        print(f"epoch {epoch + 1}: loss {total:.4f}", flush=True)


@torch.no_grad()
def accuracy(model, inputs, labels) -> float:
    model.eval()
    return (model(inputs).logits.argmax(1) == labels).float().mean().item()


def export(model, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.0
    work = folder / "whole"
    model.save_pretrained(work)
    for name in ("config.json", "model.safetensors"):
        shutil.move(work / name, folder / name)
    shutil.rmtree(work)
    processor = {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": SIDE, "width": SIDE},
        "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")


def write_sheet(path: Path, images: list[Image.Image], labels) -> None:
    rows = math.ceil(len(images) / SHEET_COLUMNS)
    sheet = Image.new("L", (8 * SHEET_COLUMNS, 8 * rows))
    for i, image in enumerate(images):
        sheet.paste(image, (i % SHEET_COLUMNS * 8, i // SHEET_COLUMNS * 8))
    sheet.save(path, optimize=True)
    path.with_suffix(".txt").write_text("".join(f"{label}\n" for label in labels))


def main() -> None:
    options = arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    data = load_digits()
    images, labels = digit_images(data.images), torch.from_numpy(data.target)
    held_out = torch.arange(len(images)) % 5 == 4
    inputs = pixels(images)
    model = make_model(options)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    train(model, inputs[~held_out], labels[~held_out], options)
    print(f"held out: {accuracy(model, inputs[held_out], labels[held_out]):.4f} of {int(held_out.sum())}")
    export(model, options.export)
    if options.sheet:
        chosen = held_out.nonzero()[:, 0].tolist()
        write_sheet(options.sheet, [images[i] for i in chosen], [int(labels[i]) for i in chosen])


if __name__ == "__main__":
    main()
