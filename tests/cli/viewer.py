"""Looks at the pixels of mulciber-viewer: viewer.py CHECK SCREENSHOT.png REPORT.json ATTENTION.json REPOSITORY.

CHECK map: the picked map in the image is the one in the JSON of `mulciber translate --attention`, within 1/255.
CHECK arcs: arcs of heavy weights stand where they must, as heavy as they must. CHECK bare: there are none.
"""
import json
import re
import struct
import sys
import zlib


def read_png(path):
    """Rows of (red, green, blue): an 8-bit RGB file."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG file"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2), "not RGB of 8 bits"
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride = zlib.decompress(packed), 3 * width
    rows, above = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        method, row = raw[start], bytearray(raw[start + 1:start + 1 + stride])
        for i in range(stride if method else 0):
            left, up = row[i - 3] if i >= 3 else 0, above[i]
            corner = above[i - 3] if i >= 3 else 0
            if method == 1:
                guess = left
            elif method == 2:
                guess = up
            elif method == 3:
                guess = (left + up) // 2
            else:
                estimate = left + up - corner
                guess = min((left, up, corner), key=lambda value: abs(estimate - value))
            row[i] = (row[i] + guess) & 255
        rows.append(row)
        above = row
    return rows


def palette(root, theme):
    """The attention page's colors, which the viewer promises to have."""
    script = open(f"{root}/apps/attention/page/maps.js").read()
    found = re.search(rf"const {theme}Colours = \[(.*?)\]", script, re.S)
    return [[int(word[i:i + 2], 16) for i in (0, 2, 4)] for word in re.findall(r"#(\w{6})", found.group(1))]


def color_of(colors, weight):
    at = min(max(weight, 0), 1) * (len(colors) - 1)
    low = min(int(at), len(colors) - 2)
    return [a + (b - a) * (at - low) for a, b in zip(colors[low], colors[low + 1])]


def shows(pixel, colors, weight, tolerance):
    """Whether a pixel has the color of a weight that is at most `tolerance` away; half a step is rounded off."""
    steps = [color_of(colors, weight + tolerance * i / 4) for i in range(-4, 5)]
    return any(all(abs(p - c) <= 0.75 for p, c in zip(pixel, step)) for step in steps)


def main():
    check, screenshot, report_file, attention_file, root = sys.argv[1:]
    rows = read_png(screenshot)
    report = json.load(open(report_file))
    sentence = json.load(open(attention_file))["sentences"][0]
    kind = next(k for k in sentence["attention"] if k["kind"] == report["kind"].lower())
    weights = kind["weights"][report["layer"]][report["head"]]
    colors = palette(root, report["theme"])

    def pixel(x, y):
        return rows[int(y)][3 * int(x):3 * int(x) + 3]

    if check == "map":
        left, top, width, height = report["map"]
        queries, keys = kind["queries"], kind["keys"]
        assert (len(report["queries"]), len(report["keys"])) == (queries, keys), "another text"
        wrong = 0
        for query in range(queries):
            for key in range(keys):
                seen = pixel(left + (key + 0.5) * width / keys, top + (query + 0.5) * height / queries)
                weight = weights[query][key] if query < report["rows"] else 0
                wrong += not shows(seen, colors, weight or 0, 1 / 255)
        assert wrong == 0, f"{wrong} of {queries * keys} cells have another color"
        heavy = sum((w or 0) > 0.3 for row in weights[:report["rows"]] for w in row)
        assert heavy >= 3, "a map of small weights shows nothing"
        print(queries * keys)
        return
    # Where arcs cross, the heavier is in front, and its edge darkens; the middle is at most two pixels away.
    heavy = sorted({w for row in weights[:report["rows"]] for w in row if w and w > 0.3})
    places = [(weights[q][k], x, y) for q, k, x, y in report["arcs"] if (weights[q][k] or 0) > 0.5]
    assert len(places) >= 3, "no heavy weights to look at"
    there = sum(any(shows(pixel(x + aside, y), colors, w, 3 / 255) for w in heavy if w >= weight - 1e-6
                    for aside in range(-2, 3)) for weight, x, y in places)
    wanted = len(places) if check == "arcs" else 0
    assert there == wanted, f"{there} of {len(places)} heavy arcs are there"
    print(there)


main()
