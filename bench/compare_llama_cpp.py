#!/usr/bin/env python3
"""Interleaved runs of Mulciber and llama.cpp on equal files, driver and cores: prefill and decode tokens
per second, medians over rounds, and their ratios.

    bench/compare_llama_cpp.py --mulciber build/mulciber --llama-bench llama-bench llama-134m-f16.gguf llama-134m-q4_0.gguf

llama.cpp runs twice: with its Vulkan backend (GGML_VK_VISIBLE_DEVICES=0 makes it take a software driver) and with
its CPU backend. Debian testing has it in the packages llama.cpp-tools and libggml0-backend-vulkan;
tools/drivers/in_debian_testing.sh runs this script where they are. bench/make_llama_model.py makes files to measure.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path


def run(command, environment):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def mulciber(options, model):
    found = run(shlex.split(options.mulciber) + ["bench", "-m", model, "-p", str(options.prompt), "-n", str(options.new),
                                                 "-r", "1", "--json"], {})
    return {"prefill": found["prefill_tps"], "decode": found["decode_tps"], "device": found["device"]}


def llama_cpp(options, model, vulkan):
    # Without this variable llama.cpp refuses a software driver and computes on the CPU.
    environment = {"GGML_VK_VISIBLE_DEVICES": "0"} if vulkan else {}
    found = run(shlex.split(options.llama_bench) + ["-m", model, "-p", str(options.prompt), "-n", str(options.new),
                                                    "-t", str(options.threads), "-r", "1", "-o", "json"], environment)
    backends = {row["backends"] for row in found}
    if not vulkan and any(row["gpu_info"] for row in found):
        sys.exit("llama.cpp took a GPU although none was named: hide it to measure its CPU backend")
    if vulkan and not all("Vulkan" in row["backends"] and row["gpu_info"] for row in found):
        sys.exit(f"llama.cpp has no Vulkan device here (backends: {', '.join(backends)})")
    return {"prefill": next(row["avg_ts"] for row in found if row["n_prompt"] > 0),
            "decode": next(row["avg_ts"] for row in found if row["n_gen"] > 0),
            "device": found[0]["gpu_info"] if vulkan else found[0]["cpu_info"]}


ENGINES = {
    "Mulciber": lambda options, model: mulciber(options, model),
    "llama.cpp, Vulkan": lambda options, model: llama_cpp(options, model, True),
    "llama.cpp, CPU": lambda options, model: llama_cpp(options, model, False),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("--mulciber", default="build/mulciber")
    parser.add_argument("--llama-bench", default="llama-bench")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=16, help="tokens decoded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-cpu", action="store_true", help="leave out llama.cpp's CPU backend, which takes a GPU where there is one")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of llama.cpp's CPU backend")
    parser.add_argument("--json", action="store_true", help="print every sample, not the table")
    options = parser.parse_args()

    engines = [engine for engine in ENGINES if not (options.no_cpu and engine == "llama.cpp, CPU")]
    samples = {(model, engine): [] for model in options.models for engine in engines}
    for _ in range(options.rounds):
        for model, engine in samples:
            samples[model, engine].append(ENGINES[engine](options, model))
    if options.json:
        print(json.dumps([{"model": model, "engine": engine, "samples": found} for (model, engine), found in samples.items()]))
        return
    print(f"| model | engine | prefill of {options.prompt}, tokens/s | decode of {options.new}, tokens/s | prefill, Mulciber's ratio | decode |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for model in options.models:
        median = {engine: {part: statistics.median(sample[part] for sample in samples[model, engine])
                           for part in ("prefill", "decode")} for engine in engines}
        for engine, found in median.items():
            ratios = [median["Mulciber"][part] / found[part] for part in ("prefill", "decode")]
            print(f"| {Path(model).name} | {engine} | {found['prefill']:.1f} | {found['decode']:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    devices = {sample["device"] for found in samples.values() for sample in found}
    print(f"\nMedians of {options.rounds} alternating rounds, {options.threads} cores. Devices: {', '.join(sorted(devices))}.")


if __name__ == "__main__":
    main()
