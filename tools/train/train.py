#!/usr/bin/env python3
"""Trains the bundled English-German models: captions -> SentencePiece -> transformer or recurrent network -> folder.

    tools/train/train.py --data ../shared/data/multi30k --work /tmp/en-de --export assets/en-de
    tools/train/train.py --architecture luong --pieces-from assets/en-de --work /tmp/luong --export assets/en-de-luong
    tools/train/train.py --start assets/en-de --prune-heads 36 --work /tmp/pruned --export /tmp/en-de-pruned

It can be stopped at any time; the command with --resume continues from the last complete epoch.
"""

import argparse
import math
import os
import random
import shutil
import time
from pathlib import Path

import sentencepiece
import torch
import torch.distributed
import torch.multiprocessing

from bleu import bleu, read_lines
from folder import EOS, UNKNOWN, export, load_hugging_face
from model import Marian
from pruning import names_of_pruned, prune_heads
from recurrent import Bahdanau, Luong

ROOT = Path(__file__).resolve().parents[2]
# Settings of the recurrent networks' runs that differ from the defaults.
RECURRENT = dict(dropout=0.3, dropout_rise=3, rate=2e-3, warmup=400, cooldown=5, average=3, workers=1)
# Settings for continued training of a trained transformer after heads were pruned.
PRUNING = dict(rate=1e-3, warmup=100, cooldown=4, epochs=6, dropout_rise=1, average=1, bleu_every=1)
OF_ONE = dict(bahdanau=dict(layers=1, epochs=10), luong=dict(layers=2, epochs=15))


def arguments():
    class Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
        pass

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    add = parser.add_argument
    add("--architecture", choices=("transformer", "bahdanau", "luong"), default="transformer",
        help="network; the recurrent ones have defaults of their own")
    add("--data", type=Path, default=ROOT / "../shared/data/multi30k", help="folder of train/val .en.gz and .de.gz")
    add("--work", type=Path, required=True, help="folder for checkpoints and the log")
    add("--export", type=Path, default=ROOT / "assets/en-de", help="folder that gets the model")
    add("--resume", action="store_true", help="go on from the last checkpoint in --work")
    add("--pieces", type=int, default=6000, help="size of the joint vocabulary, padding not counted")
    add("--pieces-from", type=Path, help="folder of a trained model whose pieces are used instead")
    add("--start", type=Path, help="folder of a trained transformer to train on from, with its pieces")
    add("--prune-heads", type=int, default=0, help="attention heads taken away before the first epochs (with --start)")
    add("--prune-epochs", type=int, default=3, help="epochs before each of which a part of them goes")
    add("--d-model", type=int, default=192, help="width, of the embedding alone in recurrent networks")
    add("--layers", type=int, default=3, help="of the encoder and of the decoder (transformer, luong)")
    add("--heads", type=int, default=6, help="attention heads (transformer)")
    add("--ffn", type=int, default=384, help="width of the feed-forward layers (transformer)")
    add("--hidden", type=int, default=256, help="width of the recurrent state (bahdanau, luong)")
    add("--attention", type=int, default=192, help="width of the additive score (bahdanau)")
    add("--dropout", type=float, default=0.2, help="of embeddings and of what each block adds")
    add("--dropout-rise", type=int, default=12, help="first epochs, in which dropout rises to --dropout")
    add("--smoothing", type=float, default=0.1, help="label smoothing")
    add("--tokens", type=int, default=2500, help="target pieces per update, all workers together")
    add("--epochs", type=int, default=21, help="passes over the data")
    add("--cooldown", type=int, default=6, help="last epochs, in which the learning rate falls to zero")
    add("--rate", type=float, default=2e-3, help="peak of the learning rate")
    add("--warmup", type=int, default=800, help="updates until the peak")
    add("--average", type=int, default=5, help="last epochs whose weights are averaged, if val loss is lower for it")
    add("--bleu-every", type=int, default=10, help="epochs between decodings of val")
    add("--precision", choices=("bf16", "f32"), default="bf16", help="of products in training")
    add("--workers", type=int, default=2, help="processes of one thread each that share every batch")
    add("--seed", type=int, default=20161, help="start of all random draws")
    architecture = parser.parse_known_args()[0].architecture
    if architecture != "transformer":
        parser.set_defaults(**RECURRENT, **OF_ONE[architecture])
    if parser.parse_known_args()[0].start:
        parser.set_defaults(**PRUNING)
    options = parser.parse_args()
    if options.prune_heads and not options.start:
        parser.error("--prune-heads takes heads from a trained model: name it with --start")
    if options.start:
        if architecture != "transformer":
            parser.error("--start reads transformers")
        options.pieces_from = options.start
    return options


def make_model(options, pieces: int):
    if options.architecture == "bahdanau":
        return Bahdanau(pieces, options.d_model, options.hidden, options.attention)
    if options.architecture == "luong":
        return Luong(pieces, options.d_model, options.hidden, options.layers)
    return Marian(pieces, options.d_model, options.layers, options.heads, options.ffn)


# Text and batches


def train_pieces(options) -> Path:
    """One BPE for both languages: names, numbers and many stems are common to them, and so is the embedding."""
    prefix = options.work / "joint"
    if options.pieces_from:
        return Path(shutil.copyfile(options.pieces_from / "source.spm", prefix.with_suffix(".model")))
    lines = [line for language in ("en", "de") for line in read_lines(options.data / f"train.{language}.gz")]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(prefix), model_type="bpe", vocab_size=options.pieces,
        # Every character of the captions gets a piece: the rarest are umlauts of names, worth more than a slot.
        character_coverage=1.0, normalization_rule_name="nmt_nfkc", byte_fallback=False,
        # Marian's numbering, so that vocab.json repeats SentencePiece's ids and adds <pad>.
        eos_id=EOS, unk_id=UNKNOWN, bos_id=-1, pad_id=-1, num_threads=1, minloglevel=1)
    return prefix.with_suffix(".model")


def encode(pieces, lines: list[str]) -> list[list[int]]:
    return [ids + [EOS] for ids in pieces.encode(lines)]


def padded(rows: list[list[int]], pad: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


def make_batches(source, target, tokens: int, pad: int, draw: random.Random):
    """Batches of nearly equal lengths on both sides, in random order; jitter changes the batch composition each epoch.

    Equal source lengths need no mask in attention, equal target lengths no wasted rows.
    """
    order = sorted(range(len(source)), key=lambda i: (len(source[i]), len(target[i]) + 2 * draw.random()))
    groups, group, longest = [], [], 0
    for i in order:
        longest = max(longest, len(target[i]))
        if group and longest * (len(group) + 1) > tokens:
            groups.append(group)
            group, longest = [], len(target[i])
        group.append(i)
    groups.append(group)
    draw.shuffle(groups)
    return [(padded([source[i] for i in g], pad), padded([target[i] for i in g], pad)) for g in groups]


# Training


def learning_rate(update: int, epoch: float, options) -> float:
    """Warm-up, inverse square root (Vaswani et al. 2017), and a linear fall to zero over the last epochs.

    The fall is counted from the end, so a run that is resumed before it may set another end without a jump.
    """
    rise = min(update / options.warmup, math.sqrt(options.warmup / update))
    return options.rate * rise * min(1.0, (options.epochs - epoch) / options.cooldown)


def compute(options):
    return torch.bfloat16 if options.precision == "bf16" else torch.float32


def autocast(options):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16")


def average_gradients(model, workers: int) -> None:
    """Leaves in every worker the mean of the workers' gradients."""
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.view(-1) for g in gradients])
    torch.distributed.all_reduce(flat)
    flat /= workers
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(part.view(gradient.shape))


def train_epoch(model, optimizer, batches, epoch, update, worker, options):
    """Returns the number of updates made so far and this worker's mean of -log p(piece) under dropout."""
    model.train()
    surprise = 0.0
    for i, (source, target) in enumerate(batches):
        update += 1
        if len(source) >= options.workers:  # Every second row: both sides of a batch are sorted by length.
            source, target = source[worker :: options.workers], target[worker :: options.workers]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update, epoch + i / len(batches), options)
        with autocast(options):
            loss, plain = model.loss(source, target, options.smoothing, compute(options))
        optimizer.zero_grad()
        loss.backward()
        if options.workers > 1:
            average_gradients(model, options.workers)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        surprise += plain.item() / len(batches)
    return update, surprise


@torch.no_grad()
def validation_loss(model, batches) -> float:
    """Mean of -log p(piece), in f32."""
    model.eval()
    total = pieces = 0
    for source, target in batches:
        count = int((target != model.pad).sum())
        total += model.loss(source, target, 0.0, torch.float32)[1].item() * count
        pieces += count
    return total / pieces


def validation_bleu(model, pieces, source: list[list[int]], references: list[str]) -> float:
    """BLEU of greedy decoding, in f32."""
    model.eval()
    order = sorted(range(len(source)), key=lambda i: len(source[i]))
    output = [""] * len(source)
    for first in range(0, len(order), 128):
        part = order[first : first + 128]
        ids = padded([source[i] for i in part], model.pad)
        # German captions are rarely longer than this; an untrained model would go on for ever.
        rows = model.greedy(ids, EOS, longest=ids.shape[1] * 3 // 2 + 5)
        for i, text in zip(part, pieces.decode(rows)):
            output[i] = text
    return bleu(output, references)


def checkpoints(options) -> list[Path]:
    return sorted(options.work.glob("epoch-*.pt"))


def save_checkpoint(state: dict, options) -> None:
    """Keeps the last few; a file appears under its name only when it is whole."""
    path = options.work / f"epoch-{state['epoch']:03}.pt"
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)
    for old in checkpoints(options)[: -options.average]:
        old.unlink()


def average(paths: list[Path]) -> dict:
    states = [torch.load(path)["model"] for path in paths]
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def run(worker: int, options) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.workers > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{options.work.resolve()}/meeting",
                                             rank=worker, world_size=options.workers)

    def say(text):
        if worker == 0:
            print(text, flush=True)
            with (options.work / "log.txt").open("a") as log:
                print(text, file=log)

    lines = {(part, language): read_lines(options.data / f"{part}.{language}.gz")
             for part in ("train", "val") for language in ("en", "de")}
    spm = options.work / "joint.model"
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    pad = len(pieces)
    corpora = {key: encode(pieces, text) for key, text in lines.items()}
    val_source = corpora["val", "en"]
    val_batches = make_batches(val_source, corpora["val", "de"], options.tokens, pad, random.Random(0))

    model = make_model(options, pad + 1)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    first = update = 0
    if options.start:
        load_hugging_face(model, options.start)
    if options.resume:
        state = torch.load(checkpoints(options)[-1])
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first, update = state["epoch"], state["update"]
    say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {vars(options)}")

    for epoch in range(first, options.epochs):
        began = time.monotonic()
        # Seeds by epoch, so that a resumed run repeats what an uninterrupted one would have done.
        torch.manual_seed(options.seed + 1 + epoch + 1000 * worker)
        model.masks.redraw(options.dropout * min(1.0, (epoch + 1) / options.dropout_rise))
        batches = make_batches(corpora["train", "en"], corpora["train", "de"], options.tokens, pad,
                               random.Random(options.seed + epoch))
        if epoch < options.prune_epochs and options.prune_heads:
            prune_heads(model, options.prune_heads * (epoch + 1) // options.prune_epochs, val_batches)
            say(f"pruned: {' '.join(names_of_pruned(model))}; val {validation_loss(model, val_batches):.4f}")
        update, surprise = train_epoch(model, optimizer, batches, epoch, update, worker, options)
        if worker > 0:
            continue
        trained = time.monotonic()
        text = f"epoch {epoch + 1} updates {update} train {surprise:.4f} val {validation_loss(model, val_batches):.4f}"
        if (epoch + 1) % options.bleu_every == 0:
            text += f" greedy BLEU {validation_bleu(model, pieces, val_source, lines['val', 'de']):.2f}"
        state = dict(model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch + 1, update=update)
        save_checkpoint(state, options)
        say(f"{text} seconds {trained - began:.0f} + {time.monotonic() - trained:.0f}")

    if worker > 0:
        return
    paths = checkpoints(options)
    losses = {}
    for count in sorted({1, len(paths)}):
        model.load_state_dict(average(paths[-count:]))
        losses[count] = validation_loss(model, val_batches)
    best = min(losses, key=losses.get)
    model.load_state_dict(average(paths[-best:]))
    export(model, spm, options)
    say(f"val by the number of last epochs averaged: {losses}; exported {best}")
    say(f"greedy BLEU {validation_bleu(model, pieces, val_source, lines['val', 'de']):.2f}")


def main():
    options = arguments()
    options.work.mkdir(parents=True, exist_ok=True)
    (options.work / "meeting").unlink(missing_ok=True)
    if not options.resume:
        for path in checkpoints(options):
            path.unlink()
        train_pieces(options)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Processes, not threads: a thread that waits for its core stops all others at the next of thousands of
    # barriers per update; here there is one per update, and the machine may be busy with something else.
    torch.multiprocessing.spawn(run, (options,), options.workers)


if __name__ == "__main__":
    main()
