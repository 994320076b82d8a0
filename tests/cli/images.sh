#!/usr/bin/env bash
# `mulciber classify`, `embed` and `match` with images, as a person uses them: files, JSON, NumPy, the page of maps,
# and errors of two lines. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
model=$MULCIBER_SOURCE/assets/vit-digits
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Two digits, as PPM, which every build reads: a 0 and a 1.
python3 - <<'PY'
zero = ["..XXXX..", ".XX..XX.", ".X....X.", ".X....X.", ".X....X.", ".X....X.", ".XX..XX.", "..XXXX.."]
one = ["...XX...", "..XXX...", ".XXXX...", "...XX...", "...XX...", "...XX...", "...XX...", "..XXXX.."]
for name, digit in (("zero", zero), ("one", one)):
    with open(name + ".pgm", "wb") as file:
        file.write(b"P5 8 8 255\n" + bytes(240 if dot == "X" else 0 for line in digit for dot in line))
PY
"$MULCIBER" classify -m "$model" zero.pgm >labels
[[ $(wc -l <labels) == 1 && $(head -c 2 labels) == "0 " ]] || fail "a zero: $(cat labels)"
"$MULCIBER" classify -m "$model" zero.pgm one.pgm --json --stats --attention map.html >objects 2>statistics
grep -q "^images  *2" statistics || fail "statistics: $(cat statistics)"
"$MULCIBER" embed -m "$model" zero.pgm one.pgm --normalize >vectors
"$MULCIBER" embed -m "$model" zero.pgm one.pgm --normalize --npy vectors.npy >nothing
[[ ! -s nothing ]] || fail "--npy prints vectors too"
"$MULCIBER" embed -m "$model" zero.pgm --pooling mean >means
python3 - <<'PY' || fail "images"
import base64, json, math, re, struct
objects = [json.loads(line) for line in open("objects")]
assert [row["image"] for row in objects] == ["zero.pgm", "one.pgm"]
assert all(row["picture"] == row["image"] for row in objects)  # deprecated name
assert objects[0]["label"] == "0" and objects[1]["label"] == "1", objects
assert all(abs(sum(row["probabilities"].values()) - 1) < 1e-4 and len(row["logits"]) == 10 for row in objects)
vectors = [json.loads(line)["vector"] for line in open("vectors")]
assert len(vectors) == 2 and all(abs(math.hypot(*vector) - 1) < 1e-5 for vector in vectors)
data = open("vectors.npy", "rb").read()
(length,) = struct.unpack("<H", data[8:10])
assert b"(2, %d)" % len(vectors[0]) in data[10:10 + length]
assert len(data) == 10 + length + 8 * len(vectors[0])
assert json.loads(open("means").read())["vector"] != vectors[0]
page = open("map.html").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
assert [image["name"] for image in data["images"]] == ["zero.pgm", "one.pgm"]
for image in data["images"]:
    patches = image["rows"] * image["columns"]
    assert len(base64.b64decode(image["rgb"])) == image["width"] * image["height"] * 3
    rollout = struct.unpack(f"<{patches}f", base64.b64decode(image["rollout"]))
    assert 0 < sum(rollout) <= 1.0001 and min(rollout) >= 0
    assert len(base64.b64decode(image["maps"])) == 4 * patches * image["layers"] * image["heads"]
assert "http" not in page.replace("http-equiv", "")
PY

says 2 "this model reads images" "$MULCIBER" classify -m "$model"
says 2 "is no image that can be read" "$MULCIBER" classify -m "$model" labels
says 2 "none.png" "$MULCIBER" embed -m "$model" none.png
says 2 "--pair" "$MULCIBER" classify -m "$model" zero.pgm --pair text
says 2 "--query" "$MULCIBER" embed -m "$model" zero.pgm --query text
says 2 "--pooling" "$MULCIBER" embed -m "$model" zero.pgm --pooling first
# What is no regular file is left as it is: a page that replaced a device would take it from everybody.
mkfifo pipe
says 2 "not a regular file" "$MULCIBER" classify -m "$model" zero.pgm --attention pipe
[[ -p pipe ]] || fail "the pipe was replaced"
says 2 "No such file" "$MULCIBER" embed -m "$model" zero.pgm --attention none/map.html
head -c 40 zero.pgm >cut.pgm
says 2 "ends before its pixels do" "$MULCIBER" classify -m "$model" cut.pgm
says 2 "matches images with texts" "$MULCIBER" match -m "$model" --labels a,b zero.pgm
texts=$MULCIBER_SOURCE/tests/data/roberta_cls
says 2 "--attention" "$MULCIBER" classify -m "$texts" --attention map.html labels
says 2 "is a second file" "$MULCIBER" classify -m "$texts" labels labels
mkdir bare
cp "$model"/{config.json,model.safetensors} bare
says 2 "has no preprocessor_config.json" "$MULCIBER" classify -m bare zero.pgm
for header in "100000 100000:at most 67108864" "0 5:it shows nothing"; do
  printf 'P6 %s 255\n' "${header%%:*}" >size.ppm
  says 2 "${header#*:}" "$MULCIBER" classify -m "$model" size.ppm
  says 2 "${header#*:}" "$MULCIBER" read -m "$MULCIBER_SOURCE/assets/digit-strings" size.ppm
done

# The bundled reader on its sample, where PNG files are read.
strings=$MULCIBER_SOURCE/assets/digit-strings
if "$MULCIBER" read -m "$strings" "$strings/string.png" --attention string.html >string 2>string_error; then
  [[ $(<string) == 31977* ]] || fail "the sample reads: $(<string)"
  grep -q '"tokens":\["3","1","9","7","7"\]' string.html || fail "the page has other tokens"
  head -c 3000 "$strings/string.png" >cut.png
  says 2 "ends before its pixels do" "$MULCIBER" read -m "$strings" cut.png
else
  grep -q "this build reads none" string_error || fail "$(<string_error)"
fi

# A model that reads images, of random weights: what it writes is no text, but the same each time.
cp -r "$MULCIBER_SOURCE/tests/data/image_text_reader" reader
python3 - <<'PY'
import json
added = [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
          "special": True} for i, name in enumerate(("<s>", "<pad>", "</s>"))]
words = {token["content"]: token["id"] for token in added} | {chr(ord("a") + i): 3 + i for i in range(16)}
json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "post_processor": None,
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
           "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": words, "merges": []}},
          open("reader/tokenizer.json", "w"))
json.dump({"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": 8, "width": 20},
           "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
           "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}, open("reader/preprocessor_config.json", "w"))
PY
"$MULCIBER" read -m reader zero.pgm one.pgm --json --attention read.html >texts
"$MULCIBER" read -m reader zero.pgm --beams 3 --json >beams
python3 - <<'PY' || fail "read: $(cat texts beams)"
import base64, json, re
texts, beams = [json.loads(line) for line in open("texts")], json.load(open("beams"))
assert [row["image"] for row in texts] == ["zero.pgm", "one.pgm"]
assert beams["log_probability"] >= texts[0]["log_probability"] - 1e-4
page = open("read.html").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
shown = {image["name"]: image for image in data["images"]}
for row in texts:
    assert row["text"] == "".join(chr(ord("a") + i - 3) for i in row["ids"] if i > 2), row
    if not row["ids"]: continue
    image = shown[row["image"]]
    assert (image["rows"], image["columns"]) == (2, 5) and len(image["tokens"]) == len(row["ids"])
    assert len(base64.b64decode(image["maps"])) == 4 * 10 * len(row["ids"]) * image["layers"] * image["heads"]
assert any(row["ids"] for row in texts), texts
PY
says 2 "which is not one that reads the text in images" "$MULCIBER" read -m "$model" zero.pgm

siglip=${MULCIBER_FIXTURES:-}/models2/siglip
if [[ -d $siglip ]]; then
  "$MULCIBER" match -m "$siglip" --labels "a hammer,an anvil" zero.pgm one.pgm >matches
  for label in "a hammer" "an anvil"; do
    [[ $(grep -c "$label 0" matches) == 2 ]] || fail "matches: $(cat matches)"
  done
  "$MULCIBER" match -m "$siglip" --labels "a hammer,an anvil" --template "{}" --json one.pgm |
    python3 -c 'import json, sys; row = json.load(sys.stdin); assert set(row["probabilities"]) == {"a hammer", "an anvil"}' ||
    fail "matches as JSON"
  says 2 "has no {}" "$MULCIBER" match -m "$siglip" --labels a --template b one.pgm
fi
echo "images: passed"
