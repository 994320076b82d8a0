#!/usr/bin/env python3
"""Holds the public headers and the texts of --help to the table "One thing, one name" of docs/reference/glossary.md: no word of
its column "not used for it" is in them, outside of deprecated names. Prints a line for each fault; exit code 1 where there is one.

    tests/source/glossary.py [FOLDER]      # else the repository that holds this file

A word in small letters is found in prose and as a part of names (`picture` in read_pictures and PictureTask), an
identifier with capitals as a whole one, and a phrase with any white space between its words.
"""

import pathlib
import re
import sys

HEADING = "## One thing, one name"
# A header that stays for its old name, and what is deprecated inside of another: a block under its heading, or one declaration.
STUB = re.compile(r"^(//|/\*) Deprecated: ")
BLOCK = re.compile(r"(// Deprecated names[\s\S]*?(?=\n\}  // namespace)|/\* ---- Deprecated names[\s\S]*?(?=\n#ifdef __cplusplus))")
DECLARATION = re.compile(r"[^;{}\n]*(?:\n[^;{}\n]*)?(?:\[\[deprecated|MULCIBER_DEPRECATED)[^;{}]*(?:\{[^}]*\}|[;,])")
VULKAN = re.compile(r"\b(VK_\w+|Vk\w+|vk[A-Z]\w+)")
HELP = re.compile(r"\b(?:add_subcommand|add_option|add_choice|add_flag|footer)\(")
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def table(glossary):
    """(name, words that are not used, phrases that may be used) of each row."""
    if HEADING not in glossary:
        sys.exit(f"docs/reference/glossary.md has no heading {HEADING!r}")
    rows = []
    for line in glossary.split(HEADING, 1)[1].split("\n## ", 1)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 4 or cells[0] == "name" or set(cells[0]) <= {"-"}:
            continue
        words, _, allowed = cells[2].partition(" but ")
        rows.append((cells[0], re.findall("`([^`]+)`", words), re.findall("`([^`]+)`", allowed)))
    return rows


def expression(word):
    if re.search(r"[A-Z]", word) or "_" in word:
        return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    if " " in word or "-" in word:
        spaced = r"\s+(?:(?://+|\*)\s*)?".join(re.escape(part) for part in word.split())
        return re.compile(rf"(?<!\w){spaced}(?![\w-])", re.I)
    plural = "" if word.endswith("s") else "s?"
    return re.compile(rf"(?<![A-Za-z])(?i:{word}){plural}(?![a-z])|(?<=[a-z0-9]){word.capitalize()}{plural}(?![a-z])")


def blanked(text, pattern):
    """The text with what a pattern finds as white space, so that lines keep their numbers."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def faults(text, rows):
    """(line, name, word) of each word that is not used."""
    for name, words, allowed in rows:
        rest = text
        for phrase in allowed:
            spaced = r"\s+(?:(?://+|\*)\s*)?".join(re.escape(part) for part in phrase.split())
            rest = blanked(rest, re.compile(spaced, re.I))
        for word in words:
            for match in expression(word).finditer(rest):
                yield rest.count("\n", 0, match.start()) + 1, name, word


def names_of_header(text):
    if STUB.match(text):
        return ""
    for pattern in (BLOCK, DECLARATION, VULKAN):
        text = blanked(text, pattern)
    return text


def help_texts(text):
    """Everything but the strings of --help as white space; no statement with a deprecated or hidden option."""
    kept = [" " if c != "\n" else c for c in text]
    for match in HELP.finditer(text):
        depth, at, end = 1, match.end(), len(text)
        strings = []
        while at < len(text) and depth:
            string = STRING.match(text, at)
            if string:
                strings.append(string)
                at = string.end()
                continue
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        end = text.find(";", at)
        if 'group("")' in text[match.start():end] or "eprecated" in text[match.start():end]:
            continue
        for string in strings:
            kept[string.start() + 1:string.end() - 1] = string.group(1)
    return "".join(kept)


def check_itself():
    rows = [("image", ["picture"], []), ("application", ["host"], ["host-visible"]), ("batch", ["BatchOptions"], []),
            ("slot", ["places"], [])]

    def words(text):
        return [word for _, _, word in faults(text, rows)]
    assert words("read_pictures(PictureTask, kPicture)") == ["picture"] * 3
    assert words("hostile localhost host-visible") == [] and words("the host's HostDevice") == ["host"] * 2
    assert words("TextBatchOptions BatchOptions") == ["BatchOptions"]
    assert words("in place of two places") == ["places"]
    assert names_of_header('  uint32_t a;\n    uint32_t b\n [[deprecated("use a")]];\n').split() == ["uint32_t", "a;"]
    assert help_texts('c.add_flag("--a", x, "y (z)"); d.add_flag("--b", x, "deprecated: --a");').split() == ["--a", "y", "(z)"]
    assert table(HEADING + "\n| name | a | b | c |\n| --- | --- | --- | --- |\n| x | y | `u`, `v`, but `w u` | |\n") == [
        ("x", ["u", "v"], ["w u"])]


def main():
    check_itself()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent.parent
    rows = table((root / "docs/reference/glossary.md").read_text())
    found, checked = [], 0
    for pattern, part in (("include/mulciber/**/*.h", names_of_header), ("apps/**/*.cpp", help_texts)):
        for path in sorted(root.glob(pattern)):
            checked += 1
            for line, name, word in faults(part(path.read_text()), rows):
                found.append(f"{path.relative_to(root)}:{line}: {word!r}; the glossary's name is {name}")
    print("\n".join(found) or f"{checked} files, {sum(len(words) for _, words, _ in rows)} words")
    return 1 if found or not rows or checked < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
