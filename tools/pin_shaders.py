#!/usr/bin/env python3
"""Keeps the SPIR-V of every kernel row in the repository, for builds whose glslang is too old (shaders/pinned).

  tools/pin_shaders.py           # compile what changed, write modules.zst and manifest.txt
  tools/pin_shaders.py --check   # exit code 1 where a fresh compilation of every row gives anything else
  tools/pin_shaders.py --quick   # exit code 1 where sources changed since; compiles nothing

Compiles with the glslang that the manifest names: this machine's, or the one in the folder of Debian testing
(tools/drivers/debian-testing.sh; needs root). Where neither has that version the exit code is 77, but for
--new-glslang, which takes the one in that folder. Needs cmake and zstd. cmake/pinned_modules.cmake says what the
manifest holds."""

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = "tools/pin_shaders.py"
IN_FOLDER = [str(ROOT / "tools/drivers/in_debian_testing.sh")]
SKIPPED = 77


class Pinned:
    """What shaders/pinned holds: of each module its words and hashes, of each shader its frame."""

    def __init__(self, folder):
        self.glslang, self.archive_hash, self.modules, self.frames, rows = "", "", {}, {}, []
        self.manifest, self.archive = folder / "manifest.txt", folder / "modules.zst"
        offset = 0
        data = self.archive.read_bytes() if self.archive.exists() else b""
        for line in self.manifest.read_text().splitlines() if self.manifest.exists() else []:
            kind, *words = line.split(" ")
            if kind == "glslang":
                self.glslang = words[0]
            elif kind == "archive":
                self.archive_hash = words[1]
            elif kind == "shader":
                rows = []
                self.frames[words[0]] = (rows, data[offset:offset + int(words[1])])
                offset += int(words[1])
            elif kind == "module":
                rows.append(words[0])
                self.modules[words[0]] = (int(words[1]), words[2], words[3])
        self.intact = hashlib.sha256(data).hexdigest() == self.archive_hash


def present_rows(shaders):
    """Of each row of kernels.def its frame, and the hash of what its module is made from. The plain forms of rows on
    matrix units have frames of their own: a glslang that lacks matrices compiles those, and needs no pinned ones."""
    with tempfile.NamedTemporaryFile("r") as file:
        subprocess.run(["cmake", f"-DSHADERS={shaders}", f"-DOUTPUT={file.name}", "-P",
                        ROOT / "cmake/list_shader_rows.cmake"], check=True)
        lines = [line.split() for line in file.read().splitlines()]
        return {row: (f"{shader}.plain" if row.endswith("_plain") else shader, sources) for row, shader, sources in lines}


def fnv1a(data):
    """base/hash.h, byte by byte: the hash that `mulciber conform` writes of every row."""
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


def zstd(arguments, data):
    return subprocess.run(["zstd", "--quiet", *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


def glslang_version(prefix):
    try:
        said = subprocess.run([*prefix, "glslangValidator", "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""
    version = re.search(r"Glslang Version: (\S+)", said)
    return version.group(1) if version else ""


def compiler(wanted):
    """How to run the glslang of that version, any of the folder's where none is named, and its version."""
    if wanted and glslang_version([]) == wanted:
        return [], wanted
    here = glslang_version(IN_FOLDER)
    if not here or (wanted and here != wanted):
        print(f"{COMMAND}: glslang {wanted} is neither here nor in the folder of Debian testing ("
              f"{here or 'which is not there: tools/drivers/debian-testing.sh makes it, as root'}). "
              "--new-glslang pins what another version makes of every row")
        sys.exit(SKIPPED)
    return IN_FOLDER, here


def compile_rows(prefix, fresh):
    """The words of every row, compiled and validated as any build does it."""
    folder = "build-pin-testing" if prefix else "build-pin"  # the folder sees this checkout elsewhere
    configure = f"cmake -S . -B {folder} -G Ninja -DMULCIBER_SHADERS=local -DMULCIBER_TESTS=OFF"
    build = f"cmake --build {folder} -j {os.cpu_count()} --target mulciber_spirv{' --clean-first' if fresh else ''}"
    done = subprocess.run([*prefix, "bash", "-c", f"{configure} && {build}"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout[-4000:])
        sys.exit(f"{COMMAND}: the rows cannot be compiled")
    return lambda row: (ROOT / folder / "shaders" / f"{row}.spv").read_bytes()


def write(old, rows, words_of, glslang):
    """A frame of a shader whose modules are the same stays the same, whatever this machine's zstd would make of it."""
    shaders = {}
    for row, (shader, _) in rows.items():
        shaders.setdefault(shader, []).append(row)
    archive, lines, changed = b"", [], []
    for shader in sorted(shaders):
        modules = [words_of(row) for row in shaders[shader]]
        known, frame = old.frames.get(shader, ([], b""))
        if known != shaders[shader] or not old.intact or zstd(["-d", "-c"], frame) != b"".join(modules):
            frame = zstd(["-19", "-c"], b"".join(modules))
        lines.append(f"shader {shader} {len(frame)}")
        for row, module in zip(shaders[shader], modules):
            said = (len(module) // 4, rows[row][1], fnv1a(module))
            if old.modules.get(row, ("", "", ""))[2] != said[2]:
                changed.append(row)
            lines.append(f"module {row} {said[0]} {said[1]} {said[2]}")
        archive += frame
    old.archive.parent.mkdir(exist_ok=True)
    old.archive.write_bytes(archive)
    head = [f"Written by {COMMAND}, for cmake/pinned_modules.cmake, which says what each line is.", f"glslang {glslang}",
            f"archive {len(archive)} {hashlib.sha256(archive).hexdigest()}"]
    old.manifest.write_text("\n".join(head + lines) + "\n")
    print(f"{COMMAND}: {len(rows)} modules of glslang {glslang} in {len(archive)} bytes, {len(changed)} of them new: "
          f"{', '.join(changed[:8]) or 'none'}{', ...' if len(changed) > 8 else ''}")


def differences(old, rows, words_of):
    """What is not as it should be, in lines; without words_of, what shows without a compiler."""
    found = [] if old.intact else ["modules.zst is not the archive that manifest.txt describes"]
    shader_of = {row: shader for shader, (modules, _) in old.frames.items() for row in modules}
    for row, (shader, sources) in rows.items():
        if shader_of.get(row) != shader:
            found.append(f"{row} has no module of {shader}")
        elif old.modules[row][1] != sources:
            found.append(f"{row} was made from other sources")
    found += [f"{row} is no row of kernels.def" for row in old.modules if row not in rows]
    if found or not words_of:
        return found
    for shader, (modules, frame) in old.frames.items():
        words = zstd(["-d", "-c"], frame)
        for row in modules:
            module, words = words[:4 * old.modules[row][0]], words[4 * old.modules[row][0]:]
            if module != words_of(row) or fnv1a(module) != old.modules[row][2]:
                found.append(f"{row} is not what glslang {old.glslang} makes of {shader}")
        if words:
            found.append(f"the frame of {shader} holds more than its modules")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--new-glslang", action="store_true")
    parser.add_argument("--shaders", type=pathlib.Path, default=ROOT / "shaders", help=argparse.SUPPRESS)
    options = parser.parse_args()
    old = Pinned(options.shaders / "pinned")
    rows = present_rows(options.shaders)
    if options.quick:
        found = differences(old, rows, None)
    else:
        prefix, glslang = compiler("" if options.new_glslang else old.glslang)
        words_of = compile_rows(prefix, options.check)
        if not options.check:
            write(old, rows, words_of, glslang)
            return
        found = differences(old, rows, words_of)
    for line in found[:12]:
        print(f"shaders/pinned: {line}")
    if found:
        sys.exit(f"shaders/pinned: {len(found)} differences from the sources. Run {COMMAND} and commit shaders/pinned.")
    print(f"shaders/pinned: {len(rows)} modules of glslang {old.glslang} are those of the sources")


if __name__ == "__main__":
    main()
