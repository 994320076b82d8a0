#!/usr/bin/env python3
"""Checks the Markdown files of the repository: every relative link leads to a file, every anchor to a heading, and
every page under docs/ can be reached from docs/README.md. No file names a page of docs/ that is not there. Prints a
line for each fault; exit code 1 where there is one.

    tests/source/links.py [FOLDER]      # else the repository that holds this file
"""

import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
# [text](target "title"), ![text](target), [name]: target, and the href and src of HTML.
LINK = re.compile(r"\]\(\s*<?([^)<>\s]*)>?(?:\s+\"[^\"]*\")?\s*\)|^ {0,3}\[[^\]]+\]:\s+(\S+)|(?:href|src)=\"([^\"]*)\"")
# A page that a comment, a message or a script names, or an address on the web.
NAMED = re.compile(r"https?://\S+|\b(docs/[\w./-]+?\.md)\b")
SOURCE = re.compile(r".*\.(cpp|h|c|comp|glsl|def|py|sh|bash|cmake|html|js|in|yml|md)|(.*/)?CMakeLists\.txt|\.ci/run")
ANCHOR = re.compile(r"<a\s+(?:name|id)=\"([^\"]+)\"")


def lines_of(text):
    """(number, line) of everything outside of fenced code."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = mark[1] if fence is None else None
        elif fence is None:
            yield number, line


def slug(heading, taken):
    """The anchor that GitHub gives a heading; the second of one name ends in -1."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    count = taken.get(name, 0)
    taken[name] = count + 1
    return f"{name}-{count}" if count else name


def anchors_of(text):
    taken, found = {}, set()
    for _, line in lines_of(text):
        heading = HEADING.match(line)
        if heading:
            found.add(slug(heading[1], taken))
        found.update(ANCHOR.findall(line))
    return found


def links_of(text):
    """(line number, target) of each link outside of code."""
    for number, line in lines_of(text):
        for groups in LINK.findall(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line)):
            yield number, next(filter(None, groups), "")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]).resolve()
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\0")
    files = {name for name in listed if name and (root / name).exists()}
    folders = {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents}
    texts = {name: (root / name).read_text(encoding="utf-8") for name in sorted(files) if name.endswith(".md")}
    anchors = {name: anchors_of(text) for name, text in texts.items()}
    faults, count, pages = [], 0, {}
    for name, text in texts.items():
        pages[name] = set()
        for number, target in links_of(text):
            if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.I):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            path = urllib.parse.unquote(path)
            to = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if to not in files and to not in folders:
                faults.append(f"{name}:{number}: {target} is not in the repository")
            elif anchor and to in anchors and anchor not in anchors[to]:
                faults.append(f"{name}:{number}: {to} has no heading #{anchor}")
            pages[name].add(to)
    for name in sorted(filter(SOURCE.fullmatch, files)):
        for number, line in enumerate((root / name).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            faults += [f"{name}:{number}: {page} is not in the repository"
                       for page in NAMED.findall(line) if page and page not in files]
    reached, left = set(), ["docs/README.md"]
    while left:
        page = left.pop()
        if page not in reached and page in pages and page.startswith("docs/"):
            reached.add(page)
            left += pages[page]
    faults += [f"{name}: no way leads here from docs/README.md"
               for name in texts if name.startswith("docs/") and name not in reached]
    print("\n".join(faults + [f"{len(texts)} files, {count} relative links, {len(faults)} faults"]))
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
