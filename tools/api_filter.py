#!/usr/bin/env python3
"""Prints a public header in Doxygen's form: comments behind a declaration, comments of two slashes above one, and the
comment at the head of the file become documentation, and angle brackets are escaped.
docs/Doxyfile calls it for each header.

    tools/api_filter.py FILE
"""

import html
import re
import sys

# Code that can be followed by a comment: a member, an enumerator, a parameter.
MEMBER = re.compile(r"^(\s*[^\s/*#}].*?[,;(]\s+|\s*\w+\s+)(//|/\*) (.*)$")


def escaped(text):
    """Angle brackets outside of `code` and "quotes", which Doxygen leaves as they are."""
    parts = re.split(r'(`[^`]*`|"[^"]*")', text)
    return "".join(part if part[:1] in ('`', '"') else html.escape(part, quote=False) for part in parts)


def cpp(lines):
    yield "/// @file"
    column = None  # column of a comment behind a member; comment lines in the same column continue it
    for line in lines:
        member, comment = MEMBER.match(line), re.match(r"^(\s*)(///?) ?(.*)$", line)
        if comment and comment[2] == "//" and column == len(comment[1]):
            yield f"{comment[1]}///< {escaped(comment[3])}"
        elif comment:
            column = None
            yield f"{comment[1]}/// {escaped(comment[3])}"
        elif member and member[2] == "//":
            column = len(member[1])
            yield f"{member[1]}///< {escaped(member[3])}"
        else:
            column = None
            yield line


def c(lines):
    inside = False
    for number, line in enumerate(lines):
        member, comment = MEMBER.match(line), re.match(r"^(\s*)/\* (?!----)(.*)$", line)
        if inside:
            text = escaped(line)
        elif comment:
            text = f"{comment[1]}/** {escaped(comment[2])}"
        elif member and member[2] == "/*":
            text = f"{member[1]}/**< {escaped(member[3])}"
        else:
            yield line
            continue
        inside = "*/" not in line
        yield text if number else text.replace("/** ", "/** @file\n * ", 1)


def main():
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    print("\n".join(cpp(lines) if lines[0].startswith("//") else c(lines)))


if __name__ == "__main__":
    main()
