#!/usr/bin/env python3
"""The tables of numbers that IQ2 and IQ3 of ggml refer to, as shaders/include/grid_tables.h.

    tools/grid_tables.py > shaders/include/grid_tables.h

They are facts of the file format; the gguf package has them (gguf/quants.py), in fewer bits than ggml's ggml-common.h.
Needs numpy and gguf (pip install gguf).
"""
import sys

try:
    import gguf.quants as quants
    import numpy as np
except ImportError as error:
    sys.exit(f"{sys.argv[0]}: {error}: pip install gguf numpy")

TYPES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")
PER_LINE = 7
PART = 64  # words: compilers take long over larger arrays
HEADER = """// The tables of ggml's IQ2 and IQ3 (grids.h), for GLSL and C++: two entries a word, an entry's
// numbers in two bits each (IQ2) or three (IQ3), the first lowest. GRID_TYPE_PARTS(F) calls F(AT,
// WORDS) for every 64 words. Made by tools/grid_tables.py.
// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h), as the package gguf has them.
#ifndef MULCIBER_GRID_TABLES_H
#define MULCIBER_GRID_TABLES_H
// clang-format off
"""


def main():
    print(HEADER)
    for name in TYPES:
        kind = getattr(quants, name)
        kind.init_grid()
        grid = kind.grid.reshape(kind.grid_shape)
        codes = np.searchsorted(np.array(kind.grid_map), grid).astype(np.uint32)
        bits = 2 if grid.shape[1] == 8 else 3
        entries = (codes << (bits * np.arange(grid.shape[1], dtype=np.uint32))).sum(1)
        words = entries[0::2] | entries[1::2] << 16
        parts = range(0, len(words), PART)
        for part in parts:
            some = [f"0x{word:08x}u" for word in words[part:part + PART]]
            lines = [", ".join(some[at:at + PER_LINE]) for at in range(0, PART, PER_LINE)]
            print(f"#define GRID_{name}_{part} \\\n  " + ", \\\n  ".join(lines))
        calls = " \\\n  ".join(f"F({at}, GRID_{name}_{at})" for at in parts)
        print(f"#define GRID_{name}_PARTS(F) \\\n  {calls}\n")
    print("#endif")


main()
