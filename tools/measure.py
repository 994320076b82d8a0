#!/usr/bin/env python3
"""Measures the chosen kernels and a translation on several Vulkan drivers, interleaved, and writes the table of
docs/internals/performance.md.

    tools/measure.py --command build/mulciber --model assets/en-de [--rounds 3] NAME=ICD.json ...

Each round visits every driver once, so that a busy moment of the machine does not fall on one of them alone; the
table holds medians over rounds. NAME= without a file uses the machine's default driver. A command of several words
(to measure inside another root) is given as one argument with spaces.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

CASES = [  # op, shape, storage, unit, title
    ("matmul", "64,2048,768", ("f32", "f16"), "gflops", "matrix product 64 x 2048 x 768, f16 weights, GFLOP/s"),
    ("matmul", "64,2048,768", ("f32", "f32"), "gflops", "matrix product 64 x 2048 x 768, f32 weights, GFLOP/s"),
    ("matmul", "1,2048,768", ("f32", "f16"), "gbytes_per_second", "matrix-vector product 2048 x 768, f16 weights, GB/s"),
    ("attention", "1,512,512,12,64", ("f32", "f32"), "gflops", "attention 512 x 512, 12 heads of 64, GFLOP/s"),
    ("attention", "1,1,1024,12,64", ("f32", "f32"), "gbytes_per_second", "attention, 1 query, 1,024 keys, GB/s"),
    ("layer_norm", "768,768", ("f32", "f32"), "gbytes_per_second", "layer norm 768 x 768, GB/s"),
    ("softmax", "768,768", ("f32", "f32"), "gbytes_per_second", "softmax 768 x 768, GB/s"),
]


def run(command, arguments, icd):
    environment = dict(os.environ)
    if icd:
        environment["VK_DRIVER_FILES"] = environment["VK_ICD_FILENAMES"] = icd
    done = subprocess.run(shlex.split(command) + arguments, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/mulciber")
    parser.add_argument("--model", default="assets/en-de")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("drivers", nargs="+", metavar="NAME=ICD")
    options = parser.parse_args()
    drivers = []
    for word in options.drivers:
        name, _, icd = word.partition("=")
        command = options.command
        if "@" in icd:  # NAME=ICD@COMMAND: another command for this driver
            icd, _, command = icd.partition("@")
        drivers.append((name, icd, command))

    samples = {}
    names = {}
    for _ in range(options.rounds):
        for name, icd, command in drivers:
            for op, shape, types, unit, title in CASES:
                found = run(command, ["bench", "--json", "--kernel", f"{op}", "--shape", shape], icd)
                for row in found["results"]:
                    if row["chosen"] and (row["activation"], row["weight"]) == types:
                        samples.setdefault((title, name), []).append(row[unit])
                        names[(title, name)] = row["row"]
            model = run(command, ["bench", "-m", options.model, "--json"], icd)
            for key, title in [("encode_tps", "bundled model, encode, tokens/s"),
                               ("decode_tps", "bundled model, beam search, tokens/s"),
                               ("wall_over_kernels", "bundled model, wall time over sum of kernel times")]:
                samples.setdefault((title, name), []).append(model[key])
            names[("device", name)] = f"{model['device']}, {model['driver']}"

    titles = [case[4] for case in CASES] + [t for t, n in samples if t.startswith("bundled") and n == drivers[0][0]]
    titles = list(dict.fromkeys(titles))
    print("| " + " | ".join(["", *(name for name, _, _ in drivers)]) + " |")
    print("| --- |" + " --- |" * len(drivers))
    print("| device | " + " | ".join(names[("device", name)] for name, _, _ in drivers) + " |")
    for title in titles:
        cells = []
        for name, _, _ in drivers:
            values = samples.get((title, name))
            if not values:
                cells.append("-")
                continue
            text = f"{statistics.median(values):.3g}" if statistics.median(values) < 100 else f"{statistics.median(values):.0f}"
            row = names.get((title, name))
            cells.append(f"{text} (`{row}`)" if row else text)
        print(f"| {title} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
