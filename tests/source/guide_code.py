#!/usr/bin/env python3
"""Compiles the code of a guide: each block of C++ or C of docs/guide/embedding.md becomes a function, behind the declarations
of tests/source/guide. C functions that the page names must be declared. Errors name the page's lines; exit code 1 where there
is one, 77 without a compiler or Vulkan's headers.

    tests/source/guide_code.py [PAGE]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRELUDES = ROOT / "tests/source/guide"
# Of each language: its prelude, the compilers that may be there, and their options.
LANGUAGES = {
    "cpp": ("prelude.h", [os.environ.get("CXX"), "c++", "g++", "clang++"], ["-x", "c++", "-std=c++20"]),
    "c": ("prelude_c.h", [os.environ.get("CC"), "cc", "gcc", "clang"], ["-x", "c", "-std=c11"]),
}
SKIPPED = 77


def blocks_of(text):
    """(language, number of the first line, code) of each block of code."""
    found, language, first, code = [], None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if language is None:
            fence = re.match(r"```(\w*)\s*$", line)
            if fence:
                language, first, code = fence[1], number + 1, []
        elif line.startswith("```"):
            found.append((language, first, "\n".join(code)))
            language = None
        else:
            code.append(line)
    if language is not None:
        sys.exit(f"line {first - 1}: a block of code does not end")
    return found


def source_of(language, blocks, page):
    """A file with a function for each block, whose lines are those of the page. A block may stand in a loop."""
    parts = [f'#include "{LANGUAGES[language][0]}"']
    for number, (first, code) in enumerate(blocks):
        arguments = "void" if language == "c" else ""
        parts.append(f'void block_{number}({arguments});\nvoid block_{number}({arguments}) {{ for (;;) {{\n'
                     f'#line {first} "{page}"\n{code}\n}} }}')
    return "\n".join(parts) + "\n"


def compiler_of(language):
    for name in LANGUAGES[language][1]:
        if name and shutil.which(name.split()[0]):
            return name.split()
    return None


def compile_blocks(language, blocks, page):
    """The compiler's errors, and whether it accepts the blocks."""
    command = compiler_of(language) + LANGUAGES[language][2] + [
        "-fsyntax-only", "-Werror=deprecated-declarations", "-I", str(ROOT / "include"), "-I", str(PRELUDES), "-"]
    done = subprocess.run(command, input=source_of(language, blocks, page), text=True, capture_output=True)
    return done.stderr, done.returncode == 0


def unknown_functions(text):
    """(line, name) of C functions that the page names and no header declares."""
    declared = set()
    for header in (ROOT / "include/mulciber/c").glob("*.h"):
        declared |= set(re.findall(r"\b(mulciber_\w+)\(", header.read_text()))
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"\b(mulciber_[a-z]\w*)\b(?!\.h)", line):
            if name not in declared:
                yield number, name


def check_itself():
    text = "a\n```cpp\nint x;\n```\n```\nnot code\n```\n```c\nint y;\nint z;\n```\n"
    assert blocks_of(text) == [("cpp", 3, "int x;"), ("", 6, "not code"), ("c", 9, "int y;\nint z;")]
    assert '#line 3 "page"\nint x;\n' in source_of("cpp", [(3, "int x;")], "page")
    assert list(unknown_functions("`mulciber_c.h`, mulciber_no_such_function()")) == [(1, "mulciber_no_such_function")]


def main():
    check_itself()
    page = sys.argv[1] if len(sys.argv) > 1 else "docs/guide/embedding.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = blocks_of(text)
    faults = [f"{page}:{number}: no header declares {name}" for number, name in unknown_functions(text)]
    compiled = 0
    for language in LANGUAGES:
        some = [(first, code) for kind, first, code in blocks if kind == language]
        if not some:
            continue
        if not compiler_of(language):
            print(f"no compiler of {language}")
            return SKIPPED
        # A block that cannot fail says nothing: a broken one must be refused, at its line.
        said, accepted = compile_blocks(language, [(1, "no_such_name = 1;")], page)
        if accepted or f"{page}:1:" not in said:
            if "vulkan/vulkan.h" in said:
                print("Vulkan's headers are not installed")
                return SKIPPED
            faults.append(f"the compiler of {language} takes what is no code:\n{said}")
        said, accepted = compile_blocks(language, some, page)
        compiled += len(some)
        if not accepted:
            faults.append(said.rstrip())
    print("\n".join(faults + [f"{page}: {compiled} blocks, {len(faults)} faults"]))
    return 1 if faults or not compiled else 0


if __name__ == "__main__":
    sys.exit(main())
