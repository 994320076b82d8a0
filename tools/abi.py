#!/usr/bin/env python3
"""Keeps capi/abi.txt, the record of the C interface: functions, sizes and offsets of structures, values of enumerators.

abi.py           compares the headers with the record, and says what would break programs that were built before
abi.py --record  renews the record
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "capi" / "abi.txt"
HEADERS = sorted((ROOT / "include/mulciber/c").glob("*.h"))


def declarations():
    """The declarations of all headers in one line, without comments, directives and attributes."""
    text = "\n".join(path.read_text() for path in HEADERS)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^#(?:.*\\\n)*.*$", " ", text, flags=re.M)
    text = re.sub(r'MULCIBER_DEPRECATED\(\s*"[^"]*"\s*\)', " ", text)
    return re.sub(r"\s+", " ", text)


def members(body):
    """Names of a structure's members."""
    for member in filter(None, map(str.strip, body.split(";"))):
        function = re.match(r".*?\(\*(\w+)\)\(", member)
        if function:
            yield function[1]
        else:
            for declarator in member.split(","):
                yield re.search(r"(\w+)(?:\[\w+\])?$", declarator.strip())[1]


def record():
    text = declarations()
    structures = re.findall(r"struct (\w+) \{([^{}]*)\}", text)
    enumerations = re.findall(r"enum (\w+) \{([^{}]*)\}", text)
    functions = re.findall(r"MULCIBER_API ([\w ]+?\**) ?(mulciber_\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\);", text)
    lines = ['#include <stddef.h>', '#include <stdio.h>', '#include "mulciber/mulciber_c.h"', "int main(void) {"]
    for name, body in enumerations:
        for value in re.findall(r"(\w+)(?: =[^,]*)?(?:,|$)", body.strip()):
            lines.append(f'printf("enumerator {name} {value} %d\\n", (int){value});')
    for name, body in structures:
        lines.append(f'printf("structure {name} %zu\\n", sizeof({name}));')
        lines += [f'printf("member {name} {m} %zu\\n", offsetof({name}, {m}));' for m in members(body)]
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layout"
        subprocess.run(["cc", "-std=c11", "-w", "-I", str(ROOT / "include"), "-x", "c", "-", "-o", str(program)],
                       input="\n".join(lines), text=True, check=True)
        layout = subprocess.run([str(program)], text=True, capture_output=True, check=True).stdout.splitlines()
    layout += [f"function {name} {result} ({parameters})" for result, name, parameters in functions]
    return sorted(layout, key=lambda line: line.split()[:2])  # members keep their order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="renew the record")
    arguments = parser.parse_args()
    if sys.maxsize < 2**32:
        print("skipped: the record is of 64-bit processors")
        return 0
    found = record()
    if arguments.record:
        RECORD.write_text("\n".join(found) + "\n")
        return 0
    # A structure without its size first could never grow.
    wrong = [f"{line.split()[1]} does not begin with its size" for line in found
             if line.startswith("member ") and line.endswith(" 0") and line.split()[2] != "size"]
    difference = list(difflib.unified_diff(RECORD.read_text().splitlines(), found, "recorded", "found", n=0, lineterm=""))
    if difference:
        wrong += difference + [
            "Programs that were built before break where a recorded line changes or goes. Add members at the end of a",
            "structure, and functions and enumerators beside the others; then run tools/abi.py --record."]
    print("\n".join(wrong) or f"{len(found)} lines as recorded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
