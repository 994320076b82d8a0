#!/usr/bin/env python3
"""sacreBLEU, lower-cased, 13a tokens, of a file of translations against a reference, line by line.

    tools/train/bleu.py hypotheses.de ../shared/data/multi30k/val.de.gz
"""

import argparse
import gzip
from pathlib import Path

import sacrebleu


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, gzipped or not. Only line feeds end a line, as in every other tool for corpora."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip() for line in file]


def bleu(hypotheses: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(hypotheses, [references], lowercase=True, tokenize="13a").score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hypotheses", type=Path, help="one translation per line, UTF-8; .gz or plain")
    parser.add_argument("reference", type=Path, help="the same number of lines; .gz or plain")
    options = parser.parse_args()
    hypotheses, references = read_lines(options.hypotheses), read_lines(options.reference)
    if len(hypotheses) != len(references):
        parser.error(f"{options.hypotheses} has {len(hypotheses)} lines, {options.reference} has {len(references)}")
    print(f"{bleu(hypotheses, references):.2f}")


if __name__ == "__main__":
    main()
