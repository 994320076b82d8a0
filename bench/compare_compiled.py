#!/usr/bin/env python3
"""Compares kernels of Mulciber and llama.cpp for equal work by the output of GPU compilers, without the GPUs.

On each stub device (tools/drivers/on_stub.sh) llama.cpp's Vulkan backend (Debian testing's libggml0-backend-vulkan)
and Mulciber do the same work; a table shows the compiled code of both kernels and their cost in one model.

  bench/compare_compiled.py --write                 # docs/reference/compilers-llama-cpp.md
  bench/compare_compiled.py --device 7900xtx b580   # to standard output
  bench/compare_compiled.py --keep /tmp/peer        # keep, and use again, what the engines printed

Needs the folder of Debian testing with stubs (docs/internals/building.md) and build-testing/mulciber in it; packages
that are missing there are installed.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Honeykrisp gives no disassembly, and llama.cpp ends with an error on a Raspberry Pi 5.
DEVICES = "7900xtx 9070xt 6900xt rx580 rtx5090 rtx4090 turing a770 b580 tigerlake adreno740 malig610".split()
PACKAGES = "libggml0-backend-vulkan libggml-dev g++ nlohmann-json3-dev libvulkan-dev"
PLACE = "build-testing/compare-compiled"  # in the checkout, which both sides see

MATMULS = [(1, ("f16", "q4_0", "q4_K", "q6_K")), (4, ("f16", "q4_0", "q4_K", "q6_K")), (512, ("f16", "q4_0", "q4_K"))]
WORKS = [("matmul", type_, (rows, 4096, 4096)) for rows, types in MATMULS for type_ in types]
WORKS += [("attention", "f16", (1, queries, 4096, 32, size, 8)) for queries in (512, 1) for size in (64, 128)]

# The model's parameters of a device. lanes: f32 multiply-adds that a scheduler starts in a cycle; matrix: multiply-adds
# of f16 with f32 sums that its matrix unit does in a cycle (0: drivers offer none); scalar: cycles of an instruction
# for all lanes (0 where a separate unit runs them in parallel). Computed from the vendors' figures for whole cards:
# operations a second / clock / schedulers / 2.
MODEL = {
    "7900xtx": (32, 128, 0), "9070xt": (32, 256, 0), "6900xt": (32, 0, 0), "rx580": (16, 0, 0),
    "rtx5090": (32, 64, 1), "rtx4090": (32, 64, 1), "turing": (16, 64, 1),
    "a770": (8, 64, 1), "b580": (16, 128, 1), "tigerlake": (8, 0, 1),
    "adreno740": (64, 0, 1), "malig610": (16, 0, 1),
}
# A load or store of all lanes occupies the path to memory as long as four multiply-adds, shared memory as long as two.
MEMORY, SHARED = 4, 2
MATRIX_ROWS = 16  # per operand: attention of fewer queries wastes the rest


# Reasons for ratios above 1. The tables above are generated anew, this text is not.
WHY = """\
Where Mulciber asks for more in the first table:

- Products of 512 rows without matrix units (6900xt, tigerlake, adreno740, malig610): llama.cpp rounds the activations by
  itself, to f16 for weights in f16 (two products an instruction) and to 8-bit integers for weights in blocks (four).
  Mulciber keeps them in f32 unless it is asked to round them; the second table is the comparison in equal arithmetic.
- Blocks with matrix units of Intel and of Turing: likewise integers against f16.
- One row times q4_K: the same, integers against f32.
- Attention of 512 queries without matrix units (6900xt, rx580): llama.cpp adds products in f16, Mulciber in f32. Heads of
  128 on Intel: the matrix row needs more registers than there are, so the plain row serves.
- One query: Mulciber splits the keys across workgroups and merges what they find; llama.cpp's loop holds 16 queries, of
  which 4 are asked for (counted as waste where a matrix unit does them)."""


def name_of(work):
    op, type_, shape = work
    return f"{op}:{type_}:{','.join(map(str, shape))}"


def rounded(name, activation):
    """The same work with activations in another type."""
    return f"{name} of {activation}"


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT, **more)
    if done.returncode != 0:
        sys.exit(f"compare_compiled: {' '.join(map(str, command))[:200]}: {done.stderr.strip()[-1500:]}")
    return done.stdout


def prepare():
    """The layer and the program of ggml's operations, inside the folder of Debian testing."""
    place = ROOT / PLACE
    place.mkdir(parents=True, exist_ok=True)
    sources = sorted((ROOT / "apps/kernels").glob("*_instructions.cpp"))
    sources += [ROOT / file for file in ("apps/kernels/executable.cpp", "apps/kernels/inner_loop.cpp",
                                         "apps/kernels/instructions.cpp", "runtime/pipeline_executables.cpp")]
    layer = " ".join(str(path.relative_to(ROOT)) for path in [ROOT / "bench/pipeline_layer.cpp", *sources])
    run([ROOT / "tools/drivers/in_debian_testing.sh", "bash", "-euc", f"""
        export DEBIAN_FRONTEND=noninteractive
        if ! dpkg -s {PACKAGES} >/dev/null 2>&1; then
          apt-get -o Acquire::Check-Valid-Until=false update -qq
          apt-get install -y -qq --no-install-recommends {PACKAGES}
        fi
        g++ -std=c++20 -O1 -shared -fPIC -I. {layer} -o {PLACE}/libpipelines.so
        g++ -std=c++17 -O1 bench/ggml_work.cpp -o {PLACE}/ggml_work -lggml -lggml-base
        dpkg-query -W -f '${{Version}}' libggml0-backend-vulkan > {PLACE}/version"""])
    (place / "layer.json").write_text(json.dumps({"file_format_version": "1.2.0", "layer": {
        "name": "VK_LAYER_MULCIBER_pipelines", "type": "GLOBAL", "library_path": f"/mulciber/{PLACE}/libpipelines.so",
        "api_version": "1.4.300", "implementation_version": "1", "description": "What pipelines became"}}))


def on_stub(device, *command):
    return run([ROOT / "tools/drivers/on_stub.sh", device, *command])


def llama_cpp(device, works):
    """For each work the kernel with most multiply-adds, as the layer saw it, and how many were dispatched."""
    log = ROOT / PLACE / f"{device}.log"
    log.unlink(missing_ok=True)
    on_stub(device, "env", f"MULCIBER_PIPELINE_LOG=/mulciber/{PLACE}/{device}.log", "GGML_VK_DEBUG_MARKERS=1",
            "GGML_VK_VISIBLE_DEVICES=0", "VK_INSTANCE_LAYERS=VK_LAYER_MULCIBER_pipelines",
            f"VK_LAYER_PATH=/mulciber/{PLACE}", f"/mulciber/{PLACE}/ggml_work", *map(name_of, works))
    found, work, pipelines = {}, None, {}
    for line in map(json.loads, log.read_text().splitlines()):
        if "work" in line:
            work = line["work"]
            found[work] = []
            continue
        pipelines.setdefault(line["dispatch"], line.get("executables"))
        found[work].append({"kernel": line["name"] or str(line["dispatch"]), "groups": line["groups"],
                            "executables": pipelines[line["dispatch"]]})
    return found


def mulciber(device, works):
    found = {}
    for op, shape in dict.fromkeys((op, shape) for op, _, shape in works):
        report = json.loads(on_stub(device, "mulciber", "kernels", "--json", "--chosen", "--kernel", op,
                                    "--shape", ",".join(map(str, shape))))
        for pipeline in report["pipelines"]:
            work = name_of((op, {"q4_k": "q4_K", "q6_k": "q6_K"}.get(pipeline["weight"], pipeline["weight"]), shape))
            if pipeline["activation"] != "f32":
                # Without a dot product of four bytes, integer products are not among the counted loops.
                if pipeline["activation"] == "q8_1" and "dot" not in pipeline["row"]:
                    continue
                work = rounded(work, pipeline["activation"])
            found.setdefault(work, []).append({"kernel": pipeline["row"], "groups": pipeline["groups"][0],
                                               "executables": pipeline["executables"]})
    return found


def useful(work, loop):
    """The share of a matrix kernel's multiply-adds that somebody asked for."""
    op, _, shape = work
    if op != "attention" or not loop["operations"]["matrix"]:
        return 1
    return min(1, shape[1] * shape[3] / shape[5] / MATRIX_ROWS)


def cycles(device, work, executable):
    """By the model, cycles of a scheduler for a thousand multiply-adds of the work; None without a loop."""
    loop, lanes = executable.get("inner_loop"), executable["subgroup_size"]
    if not loop or not lanes:
        return None
    width, matrix, scalar = MODEL[device]
    does = loop["operations"]
    passes = max(1, lanes / width)
    total = (does["fma"] + does["arithmetic"] + does["control"] + does["nops"]) * passes
    total += (does["memory"] + does["scratch"]) * MEMORY * passes + does["shared"] * SHARED * passes
    total += does["scalar"] * scalar
    in_all = loop["multiply_adds"] * lanes
    if does["matrix"]:
        if not matrix:
            return None
        total += (in_all - does["fma"] * lanes) / matrix
    return 1000 * total / in_all / useful(work, loop)


def main_kernel(device, work, kernels):
    """Of what was dispatched for a work, the kernel whose loop multiplies; the last one where none is known."""
    best = None
    for kernel in kernels or []:
        for executable in kernel["executables"] or []:
            cost = cycles(device, work, executable)
            chosen = {"kernel": kernel["kernel"], "groups": kernel["groups"], "executable": executable, "cost": cost,
                      "dispatches": len(kernels)}
            if best is None or (cost is not None and (best["cost"] is None or executable["inner_loop"]["multiply_adds"]
                                                      > best["executable"]["inner_loop"]["multiply_adds"])):
                best = chosen
    return best


def described(kernel):
    """Name, registers, waves, lanes, loop by class, cost: the cells of a table."""
    if kernel is None:
        return ["none"] + [""] * 5
    executable = kernel["executable"]
    registers, waves = (executable["figures"].get(figure) for figure in ("registers", "occupancy"))
    loop = executable.get("inner_loop")
    classes = ""
    if loop:
        classes = " ".join(f"{count} {name}" for name, count in loop["operations"].items() if count)
        classes += f" for {loop['multiply_adds']:g}"
    return [f"`{kernel['kernel']}`", *("" if value is None else f"{value:.0f}" for value in (registers, waves)),
            str(executable["subgroup_size"] or ""), classes, "" if kernel["cost"] is None else f"{kernel['cost']:.1f}"]


def ratio_of(ours, theirs):
    if not ours or not theirs or not ours["cost"] or not theirs["cost"]:
        return None
    return ours["cost"] / theirs["cost"]


def pair(device, work, results):
    """Both engines' kernels for a work."""
    return tuple(main_kernel(device, work, found.get(name_of(work))) for found in results)


def document(results, version):
    yield "# Kernels beside llama.cpp's, compiler by compiler"
    yield ""
    yield from f"""\
Generated by `bench/compare_compiled.py --write`. The real drivers of these GPUs compiled the kernels that Mulciber
and llama.cpp's Vulkan backend (ggml {version}, Debian testing) take for the same work; nothing was executed. Weights
are 4096 x 4096; attention has 32 heads, 8 of keys, and 4,096 keys in f16.

The cost is cycles of one scheduler for a thousand multiply-adds, by this model: an instruction of the kernel's inner
loop (the one with most multiply-adds) takes lanes / width cycles, one that reads or writes memory {MEMORY} times as
long, one of shared memory {SHARED} times, a matrix instruction its multiply-adds by the rate of the unit, and one for
all lanes together a cycle, or none on AMD, where a unit of its own takes it along. It leaves out what is not in that
loop (a tile's staging where the compiler kept a loop inside), how long memory takes to answer, and how many waves
hide it. So it says which kernel asks less of the machine, not how fast either is; where both ask little, bytes decide, and
those are the same. Multiply-adds of scales count as if they were the work's (3 % of Mulciber's kernels of blocks, up to
a quarter of llama.cpp's with integer dot products, in its favour); a matrix of attention holds {MATRIX_ROWS} rows, and what a single
query leaves of them is counted as waste. A ratio below 1 is in Mulciber's favour.""".splitlines()
    yield ""
    rows = []
    for device, (ours, theirs) in results.items():
        for work in WORKS:
            rows.append((device, name_of(work), ratio_of(*pair(device, work, (ours, theirs)))))
    yield from summary(rows)
    yield from f"""\
With activations rounded as llama.cpp rounds them: to f16 where weights are (`half_activations`), to blocks of 8-bit
integers where weights are in blocks (`--fast-activations`, docs/guide/quantization.md); blank where the device has no
instruction for products of four bytes.
""".splitlines()
    yield ""
    yield from summary([
        (device, rounded(name_of(work), activation),
         ratio_of(main_kernel(device, work, ours.get(rounded(name_of(work), activation))),
                  main_kernel(device, work, theirs.get(name_of(work)))))
        for device, (ours, theirs) in results.items()
        for work in WORKS if work[0] == "matmul"
        for activation in ["f16" if work[1] == "f16" else "q8_1"]])
    yield from WHY.splitlines()
    yield ""
    for device, (ours, theirs) in results.items():
        yield f"## {device}"
        yield ""
        yield "| work | engine | kernel | registers | waves | lanes | inner loop | cost |"
        yield "| --- | --- | --- | ---: | ---: | ---: | --- | ---: |"
        for work in WORKS:
            for engine, kernel in zip(("Mulciber", "llama.cpp"), pair(device, work, (ours, theirs))):
                yield f"| {name_of(work)} | {engine} | " + " | ".join(described(kernel)) + " |"
        yield ""


def summary(rows):
    devices = list(dict.fromkeys(device for device, _, _ in rows))
    works = list(dict.fromkeys(work for _, work, _ in rows))
    yield "| work | " + " | ".join(devices) + " |"
    yield "| --- |" + " ---: |" * len(devices)
    found = {(device, work): ratio for device, work, ratio in rows}
    for work in works:
        cells = [found[device, work] for device in devices]
        yield f"| {work} | " + " | ".join("" if ratio is None else f"{ratio:.2f}" for ratio in cells) + " |"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/reference/compilers-llama-cpp.md")
    parser.add_argument("--device", nargs="+", choices=DEVICES, default=DEVICES, metavar="NAME")
    parser.add_argument("--keep", type=pathlib.Path, help="folder of what the engines printed; used again")
    options = parser.parse_args()
    prepare()
    version = (ROOT / PLACE / "version").read_text().strip()
    results = {}
    for device in options.device:
        kept = options.keep / f"{device}.json" if options.keep else None
        if kept and kept.exists():
            results[device] = json.loads(kept.read_text())
            continue
        results[device] = (mulciber(device, WORKS), llama_cpp(device, WORKS))
        print(f"{device} done", file=sys.stderr)
        if kept:
            options.keep.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(results[device]))
    text = "\n".join(document(results, version))
    if options.write:
        (ROOT / "docs/reference/compilers-llama-cpp.md").write_text(text.rstrip("\n") + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
