#!/usr/bin/env python3
"""Draws the cross-attention from tokens to an image as SVG, from the page that `mulciber read --attention` writes.

    mulciber read -m assets/digit-strings assets/digit-strings/string.png --attention map.html
    tools/train/reading_figure.py map.html docs/images/digit-strings.svg

It has a strip for each token: the first image of the page under the mean over the heads of the last layer.
"""

import base64
import json
import re
import struct
import sys
from pathlib import Path

SCALE = 6  # of a pixel


def main() -> None:
    page, figure = map(Path, sys.argv[1:])
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S).group(1)
    image = json.loads(data)["images"][0]
    rows, columns, heads, tokens = (image[key] for key in ("rows", "columns", "heads", "tokens"))
    width, height = image["width"], image["height"]
    rgb = base64.b64decode(image["rgb"])
    maps = base64.b64decode(image["maps"])
    values = struct.unpack(f"<{len(maps) // 4}f", maps)
    patches = rows * columns
    last = (image["layers"] - 1) * heads
    pixels = "".join(f'<path stroke="rgb{tuple(rgb[at * 3:at * 3 + 3])}" d="M{at % width} {at // width}.5h1"/>'
                     for at in range(width * height) if any(rgb[at * 3:at * 3 + 3]))
    step = height + 3
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 10} {step * len(tokens)}" '
             f'width="{(width + 10) * SCALE}" font-family="sans-serif" font-size="8">',
             f'<defs><g id="image" shape-rendering="crispEdges"><rect width="{width}" height="{height}"/>{pixels}</g>'
             '</defs>']
    for token, text in enumerate(tokens):
        seen = [sum(values[((last + head) * len(tokens) + token) * patches + patch] for head in range(heads)) / heads
                for patch in range(patches)]
        lines.append(f'<g transform="translate(0 {token * step + 1})"><text x="1" y="{height - 5}">{text}</text>'
                     '<use href="#image" x="8"/>')
        for patch, value in enumerate(seen):
            share = value / max(seen)
            if share > 0.02:
                lines.append(f'<rect x="{8 + patch % columns * width / columns:g}" y="{patch // columns * height / rows:g}"'
                             f' width="{width / columns:g}" height="{height / rows:g}" fill="#ff7a1a"'
                             f' fill-opacity="{0.75 * share:.2f}"><title>{value:.3f}</title></rect>')
        lines.append("</g>")
    figure.write_text("\n".join(lines) + "\n</svg>\n")


if __name__ == "__main__":
    main()
