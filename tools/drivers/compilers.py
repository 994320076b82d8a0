#!/usr/bin/env python3
"""Compiles the kernel rows with the shader compilers of many GPUs, without the GPUs.

Runs `mulciber kernels` on stub devices (on_stub.sh) and writes docs/reference/compilers.md, or checks that every row that
selection takes there compiles, spills no register and takes a core at most 5 seconds.

  tools/drivers/compilers.py --write             # docs/reference/compilers.md
  tools/drivers/compilers.py --write-tiles       # its section on whole tiles alone
  tools/drivers/compilers.py --check             # exit code 1, and a line for each fault
  tools/drivers/compilers.py --keep /tmp/stubs   # keep, and use again, what `mulciber kernels --json` printed
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEVICES = ("7900xtx 9070xt 6900xt rx580 rtx5090 rtx4090 turing a770 b580 tigerlake adreno740 adreno830 malig610 m1 "
           "pi5").split()
MOST_SECONDS = 5.0

# Exceptions of the check: device, row, kind ("spills", "time" or "refused"), reason. Globs.
KNOWN = [line.split("|") for line in """
pi?       | *                  | spills | the compiler keeps every array in memory, and counts it so
pi?       | sample_choose      | time   | a minute; the compiler tries strategy after strategy
a770      | *attention_group_* | spills | 24 at most, 12 accesses in an inner loop of 3,500 instructions
tigerlake | *attention_group_* | spills | the same
mali*     | *matvec_subgroup_* | spills | sums of eight rows are more than 64 registers; of blocks also the columns
mali*     | matvec_q8_1_*      | spills | no model takes it there: products of integers want a device with an instruction
mali*     | *attention_*       | spills | 17 accesses at most in an inner loop, 52 in one of 936 instructions
m1        | latent_attention_tiled_16* | spills | 21 at most in 2,900 instructions: sums and scores are 80 registers of 127
mali*     | beam_step_wide     | spills | 5 accesses, once a step
mali*     | *_f32_grids        | spills | 34 accesses at most with one row of x and one column, beside a table that passes through memory once
mali*     | expert_*_lanes_f32_blocks | spills | 34 accesses with q6_K alone, whose halves have scales
""".strip().splitlines()]

# Rows in the tables of docs/reference/compilers.md for each device: op, shape, types.
HOT = [
    ("matmul", (1, 2048, 768), ("f32", "f16"), "one row times f16 weights"),
    ("matmul", (1, 2048, 768), ("f32", "q4_0"), "one row times q4_0 weights"),
    ("matmul", (1, 2048, 768), ("f32", "q4_k"), "one row times q4_k weights"),
    ("matmul", (1, 2048, 768), ("q8_1", "q4_0"), "one row times q4_0 weights, in integers"),
    ("matmul", (8, 2048, 768), ("f32", "f16"), "eight rows times f16 weights"),
    ("matmul", (8, 2048, 768), ("q8_1", "q4_0"), "eight rows times q4_0 weights, in integers"),
    ("matmul", (64, 2048, 768), ("f32", "f16"), "64 rows times f16 weights"),
    ("matmul", (256, 768, 2048), ("f32", "f32"), "256 rows times f32 weights"),
    ("matmul", (256, 768, 2048), ("f32", "f16"), "256 rows times f16 weights"),
    ("matmul", (256, 768, 2048), ("f32", "q4_0"), "256 rows times q4_0 weights"),
    ("matmul", (256, 768, 2048), ("q8_1", "q4_0"), "256 rows times q4_0 weights, in integers"),
    ("attention", (1, 512, 512, 12, 64), ("f32", "f16"), "attention, 512 queries over 512 keys, 12 heads of 64"),
    ("attention", (1, 1, 1024, 32, 64, 8), ("f32", "f16"), "attention, one query over 1024 keys, 32 heads of 64, 8 of keys"),
    ("rms_norm", (1, 2048), ("f32", "f32"), "RMS norm of one row"),
]

# Products of the section on whole tiles: a shape that tiles of all sizes divide, and a similar one that none divides.
TILE_DEVICES = "7900xtx 9070xt rtx5090 rtx4090 turing a770 b580".split()
TILE_SHAPES = [(256, 768, 2048), (250, 770, 2056)]
TILE_TYPES = [("f32", "f16"), ("f32", "bf16")]


def known_devices():
    lines = (HERE / "stub_devices.txt").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]
    return {row[0]: row[1] for row in rows}


def compile_rows(device, program, keep, arguments):
    """The report of `mulciber kernels` on a device; kept in the folder `keep` where there is one."""
    kept = keep / f"{device}{''.join(arguments[1:])}.json" if keep else None
    if kept and kept.exists():
        return json.loads(kept.read_text())
    command = [HERE / "on_stub.sh", device, program, "kernels", "--json", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(run.stdout)
    except ValueError:
        tail = "\n".join(run.stderr.strip().splitlines()[-3:])
        sys.exit(f"compilers: mulciber kernels ended with {run.returncode} on {device}: {tail}")
    if kept:
        keep.mkdir(parents=True, exist_ok=True)
        kept.write_text(run.stdout)
    return report


def figures(pipeline):
    """Of the widest executable: a driver may make several."""
    return max((e["figures"] for e in pipeline["executables"]), key=lambda f: f.get("instructions", 0), default={})


def lanes(pipeline):
    return max((e["subgroup_size"] for e in pipeline["executables"]), default=0)


def inner_loop(pipeline):
    """Of the widest executable; None where the driver gives no disassembly or there is no loop."""
    loops = [e["inner_loop"] for e in pipeline["executables"] if e.get("inner_loop")]
    return max(loops, key=lambda loop: loop["instructions"], default=None)


def scratch_of(pipeline):
    loop = inner_loop(pipeline)
    return loop["operations"]["scratch"] if loop else 0


def faults_of(pipeline):
    if "failure" in pipeline:
        yield "refused", pipeline["failure"]
        return
    spills = max((e["figures"].get("spills", 0) for e in pipeline["executables"]), default=0)
    scratch = scratch_of(pipeline)
    if spills > 0 or scratch > 1:
        yield "spills", f"{spills:.0f} spills, {scratch} accesses to memory of an invocation in the inner loop"
    if pipeline["compile_seconds"] > MOST_SECONDS:
        yield "time", f"{pipeline['compile_seconds']:.1f} s"


def check(reports):
    faults, excused = [], 0
    for device, report in reports.items():
        for pipeline in report["pipelines"]:
            for kind, what in faults_of(pipeline):
                if any(fnmatch.fnmatch(device, known[0].strip()) and fnmatch.fnmatch(pipeline["row"], known[1].strip())
                       and kind == known[2].strip() for known in KNOWN):
                    excused += 1
                    continue
                shape = ",".join(map(str, pipeline["shapes"][0]))
                faults.append(f"{device}: {pipeline['row']} ({pipeline['weight']}, {shape}): {what}")
    for fault in faults:
        print("compilers:", fault)
    count = sum(len(report["pipelines"]) for report in reports.values())
    print(f"compilers: {count} pipelines on {len(reports)} devices, {len(faults)} faults, {excused} known")
    return 1 if faults else 0


def cell(value):
    return "" if value is None else f"{value:.0f}"


def table(heading, rows):
    yield "| " + " | ".join(heading) + " |"
    yield "| " + " | ".join("---" for _ in heading) + " |"
    for row in rows:
        yield "| " + " | ".join(str(cell_) for cell_ in row) + " |"
    yield ""


def chosen(report, op, shape, types):
    for pipeline in report["pipelines"]:
        if (pipeline["op"] == op and list(shape) in pipeline["chosen_for"]
                and (pipeline["activation"], pipeline["weight"]) == types):
            return pipeline
    return None


def selection(reports):
    """Each op, types and shape: which row is taken where."""
    problems = {}
    for device, report in reports.items():
        for pipeline in report["pipelines"]:
            for shape in pipeline["chosen_for"]:
                key = (pipeline["op"], pipeline["activation"], pipeline["weight"], tuple(shape))
                problems.setdefault(key, {}).setdefault(pipeline["row"], []).append(device)
    for (op, activation, weight, shape), rows in problems.items():
        text = "; ".join(f"`{row}`: {'all' if len(devices) == len(reports) else ', '.join(devices)}"
                         for row, devices in sorted(rows.items(), key=lambda item: -len(item[1])))
        yield op, f"{activation}, {weight}", ",".join(map(str, shape)), text


def whole_tiles(program, keep):
    yield "## Whole tiles"
    yield ""
    yield ("Where rows, columns and depth of a product on matrix units are whole tiles, its kernel is compiled without "
           "what edges need. Instructions")
    yield (f"in all and in the inner loop, of {','.join(map(str, TILE_SHAPES[0]))} beside "
           f"{','.join(map(str, TILE_SHAPES[1]))}, whose every extent has an edge (but where the compiler does better")
    yield ("with the check of the depth, in rows for Intel's 8x8x16). Where a device multiplies no bf16 such weights "
           "become f16.")
    yield ""
    rows = []
    for device in TILE_DEVICES:
        pairs = {types: [] for types in TILE_TYPES}
        for shape in TILE_SHAPES:
            arguments = ["--chosen", "--kernel", "matmul_coopmat_*", "--weight", "*f16"]
            report = compile_rows(device, program, keep, [*arguments, "--shape", ",".join(map(str, shape))])
            for types, found in pairs.items():
                found.append(chosen(report, "matmul", shape, types))
        for types, found in pairs.items():
            if not all(found):
                continue
            whole, edged = (figures(p)["instructions"] for p in found)
            loops = [loop["instructions"] if loop else "" for loop in map(inner_loop, found)]
            rows.append((device, f"`{found[0]['row']}`", types[1], cell(whole), cell(edged), *loops))
    yield from table(("device", "row", "weights", "whole", "with edges", "inner loop, whole", "with edges"), rows)


def replace_section(page, heading, lines):
    """Puts lines in the place of a section, or before the last one."""
    text = page.read_text()
    begin = text.find(f"\n{heading}\n") + 1 or text.rindex("\n## ") + 1
    end = begin if not text.startswith(heading, begin) else text.index("\n## ", begin) + 1
    page.write_text(text[:begin] + "\n".join(lines).rstrip() + "\n\n" + text[end:])


def document(reports, tiles):
    names = known_devices()
    drivers = sorted({f"{r['driver']} ({r['driver_info']})" for r in reports.values()})
    yield "# What compilers make of the kernels"
    yield ""
    yield ("Generated by `tools/drivers/compilers.py --write`. The real drivers of these GPUs compiled every row that "
           "selection takes")
    yield ("there for the shapes of `mulciber bench`; nothing was executed, for the GPUs were not there "
           "([building.md](../internals/building.md) says how to")
    yield ("set up such stub devices). So limits, selection, registers, spills and the time to compile are what an "
           "owner of the GPU gets from")
    yield "this driver; speed is not known. Drivers: " + ", ".join(drivers) + "."
    yield ""
    yield "## Devices"
    yield ""
    rows = []
    for device, report in reports.items():
        pipelines = report["pipelines"]
        slowest = max(pipelines, key=lambda p: p["compile_seconds"])
        spilling = sorted({p["row"] for p in pipelines if any(kind == "spills" for kind, _ in faults_of(p))})
        rows.append((device, names[device], report["subgroup_size"], len(pipelines),
                     f"{sum(p['compile_seconds'] for p in pipelines):.1f}",
                     f"{slowest['compile_seconds']:.2f}, `{slowest['row']}`",
                     ", ".join(f"`{row}`" for row in spilling) or "none"))
    yield from table(("name", "GPU", "subgroup", "pipelines", "compiled in, s of a core", "slowest", "rows that spill"),
                     rows)
    yield "## Hot rows"
    yield ""
    yield ("Registers are those of one invocation in the driver's own unit (Intel: 32 bytes of a thread); waves are "
           "what fits on one unit at a time,")
    yield ("as the driver counts; blank is what it does not say. Loop: instructions of the inner loop with most "
           "multiply-adds, where the driver")
    yield ("gives a disassembly; multiply-adds of one invocation in it; the ratio of the two. Where a compiler unrolled "
           "the inner loop away it is the")
    yield "one around it, so that ratios of one device compare better than those of two."
    yield ""
    for op, shape, types, what in HOT:
        rows = []
        for device, report in reports.items():
            pipeline = chosen(report, op, shape, types)
            if not pipeline:
                continue
            f = figures(pipeline)
            spills = "" if "spills" not in f else f"{f['spills']:.0f} : {f.get('fills', 0):.0f}"
            loop = inner_loop(pipeline)
            inner = ["", "", ""]
            if loop and loop["multiply_adds"]:
                inner = [loop["instructions"], f"{loop['multiply_adds']:.0f}",
                         f"{loop['instructions'] / loop['multiply_adds']:.2f}"]
            rows.append((device, f"`{pipeline['row']}`", lanes(pipeline) or "", cell(f.get("registers")),
                         cell(f.get("instructions")), spills, cell(f.get("shared")), cell(f.get("occupancy")),
                         f"{pipeline['compile_seconds']:.2f}", *inner))
        yield f"### {what[0].upper()}{what[1:]}"
        yield ""
        yield f"`{op}` {','.join(map(str, shape))}, {types[0]} activations, {types[1]}."
        yield ""
        yield from table(("device", "row", "lanes", "registers", "instructions", "spills : fills", "shared, bytes",
                          "waves", "s", "loop", "multiply-adds", "ratio"), rows)
    yield from tiles
    yield "## Selection"
    yield ""
    yield from table(("op", "activations, weights", "shape", "row: devices"), selection(reports))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/reference/compilers.md")
    parser.add_argument("--write-tiles", action="store_true", help="write the page's section on whole tiles alone")
    parser.add_argument("--program", default="mulciber", help="a build's program; build/mulciber is this machine's")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a row is refused, spills or is slow")
    parser.add_argument("--devices", default=" ".join(DEVICES), help="names that on_stub.sh knows")
    parser.add_argument("--keep", type=pathlib.Path, help="folder of reports")
    options = parser.parse_args()
    page = ROOT / "docs/reference/compilers.md"
    if options.write_tiles:
        replace_section(page, "## Whole tiles", whole_tiles(options.program, options.keep))
        return 0
    if not options.write and not options.check:
        parser.error("give --write, --write-tiles or --check")
    reports = {}
    # Compile times are processor times, so parallel devices do not change them.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        devices = options.devices.split()
        found = pool.map(lambda device: compile_rows(device, options.program, options.keep, ["--chosen"]), devices)
        for device, report in zip(devices, found):
            reports[device] = report
            print(f"compilers: {device}: {len(report['pipelines'])} pipelines", flush=True)
    if options.write:
        tiles = whole_tiles(options.program, options.keep)
        page.write_text("\n".join(document(reports, tiles)).rstrip() + "\n")
    return check(reports) if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
