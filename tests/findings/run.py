#!/usr/bin/env python3
"""Runs the shaders of this folder, each of which shows a fault of some driver, on the Vulkan device that there is.

    python3 tests/findings/run.py [NAME...]

Needs glslangValidator, CMake, a C compiler and Vulkan's headers and loader. With --keep FOLDER the folders stay, as
`mulciber conform --repro` writes them: build one with CMake and run `repro`. Exit code: 0 when every result is right,
1 when one is wrong."""
import argparse
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parent.parent / "conformance" / "repro"


def words(values):
    return b"".join(struct.pack("<I", value) for value in values)


def floats(values):
    return b"".join(struct.pack("<f", value) for value in values)


INFINITY = float("inf")
# Input bytes, expected words, workgroups, push-constant words, whether buffers come as addresses.
CASES = {
    "pack_half": (floats([1, 65504, 65536, INFINITY, -INFINITY]), [0x3c00, 0x7bff, 0x7c00, 0x7c00, 0xfc00], 5, [], False),
    "long_loop": (words([1, 1000, 65535, 65536, 65537, 100000, 1000000]),
                  [1, 1000, 65535, 65536, 65537, 100000, 1000000], 7, [], False),
}


def header(name, inputs, expected, groups, push, by_address):
    output = (256 + len(inputs) + 511) // 256 * 256
    end = (output + 4 * len(expected) + 511) // 256 * 256
    return f"""/* Written by tests/findings/run.py. Offsets and sizes are bytes. */
#define CASE_NAME "{name}"
#define DEVICE_NAME ""
#define MEMORY_BYTES UINT64_C({end})
#define FEATURES_NEEDED {"BUFFER_ADDRESS" if by_address else 0}
#define FEATURES_ENABLED FEATURES_NEEDED
#define SUBGROUP_SIZE 1
#define SUBGROUPS_NEEDED false
static const struct range buffers0[] = {{{{256, {len(inputs)}}}, {{{output}, {4 * len(expected)}}}}};
static const uint32_t push0[] = {{{", ".join(map(str, push or [0]))}}};
static const struct node nodes[] = {{{{"{name}.spv", "{name}", NULL, 0, buffers0, 2, 0, push0, {len(push)},
    {str(by_address).lower()}, false, false, {{{groups}, 1, 1}}}}}};
static const struct input inputs[] = {{{{"input0.bin", {{256, {len(inputs)}}}}}}};
static const struct output outputs[] = {{{{"expected0.bin", NULL, U32, {output}, 1, {len(expected)}, 0}}}};
static const struct range owned[] = {{{{256, {len(inputs)}}}, {{{output}, {4 * len(expected)}}}}};
"""


def run(name, folder):
    inputs, expected, groups, push, by_address = CASES[name]
    shutil.copytree(PROGRAM, folder, dirs_exist_ok=True)
    shutil.copy(PROGRAM.parent.parent / "runtime" / "recent_vulkan.h", folder)
    subprocess.run(["glslangValidator", "-V", "--quiet", "--target-env", "vulkan1.1", "-o", folder / f"{name}.spv",
                    HERE / f"{name}.comp"], check=True)
    (folder / "input0.bin").write_bytes(inputs)
    (folder / "expected0.bin").write_bytes(struct.pack(f"<{len(expected)}d", *expected))
    (folder / "case.h").write_text(header(name, inputs, expected, groups, push, by_address))
    for command in (["cmake", "-S", folder, "-B", folder / "build"], ["cmake", "--build", folder / "build"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    status = subprocess.run([folder / "build" / "repro"]).returncode
    if status < 0:
        print(f"WRONG: {name} died of signal {-status}")
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        statuses = [run(name, (options.keep or pathlib.Path(scratch)) / name) for name in options.names or CASES]
    # 2: the device lacks what the shader needs.
    return 1 if any(status not in (0, 2) for status in statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
