#!/usr/bin/env bash
# `mulciber transcribe`: subtitles, JSON, streams and files that cannot be used, with the small reference model; with
# MULCIBER_MODELS=1 also what Whisper tiny.en hears of sentences that espeak-ng speaks. MULCIBER and MULCIBER_SOURCE
# come from ctest.
set -euo pipefail
model=${MULCIBER_FIXTURES:-$MULCIBER_SOURCE/../shared/fixtures}/models/whisper
if [[ ! -d $model ]]; then
  echo "no reference models (set MULCIBER_FIXTURES)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/exits.bash"
cd "$work"
python3 - <<'PYTHON'
import math, struct, wave
samples = [int(9000 * math.sin(2 * math.pi * (200 + 300 * i / 16000) * i / 16000)) for i in range(40000)]
data = struct.pack(f"<{len(samples)}h", *samples)
open("tone.raw", "wb").write(data)
def write(name, rate, channels, frames):
    with wave.open(name, "wb") as file:
        file.setnchannels(channels), file.setsampwidth(2), file.setframerate(rate), file.writeframes(frames)
write("tone.wav", 16000, 1, data)
write("empty.wav", 16000, 1, b"")
write("one.wav", 16000, 1, b"\0\1")
write("fast.wav", 192000, 8, data)
whole = open("tone.wav", "rb").read()
open("cut.wav", "wb").write(whole[:44 + 32000])
open("header.wav", "wb").write(whole[:44])
PYTHON
transcribe=("$MULCIBER" transcribe -m "$model" --beams 1 --language en)
status=0
"${transcribe[@]}" tone.wav </dev/null >out 2>err || status=$?
if grep -q "made without libsndfile" err; then
  echo "built without libsndfile"
  exit 77
fi
((status == 0)) || fail "transcribe: $(<err)"
text=$(tr '\n' ' ' <out)
[[ -n ${text// /} ]] || fail "no text"
exits 0 "${transcribe[@]}" --srt tone.wav
[[ $(sed -n 1p out) == 1 && $(sed -n 2p out) =~ ^00:00:00,000\ --\>\ 00:00:0[0-9],[0-9]{3}$ ]] || fail "--srt: $(<out)"
exits 0 "${transcribe[@]}" --vtt tone.wav
[[ $(head -n 1 out) == WEBVTT ]] || fail "--vtt: $(<out)"
exits 0 "${transcribe[@]}" --json --words tone.wav
python3 - "$text" <<'PYTHON' || fail "--json: $(<out)"
import json, sys
found = json.load(open("out"))
assert found["text"].split() == sys.argv[1].split(), found
assert found["language"] == "en" and found["seconds"] == 2.5
for segment in found["segments"]:
    assert " ".join(w["text"] for w in segment["words"]).split() == segment["text"].split(), segment
PYTHON
exits 0 "${transcribe[@]}" --stats fast.wav
grep -q "s in 1 windows" err || fail "--stats: $(<err)"
exits 0 "${transcribe[@]}" one.wav
says 2 "not one sample" "${transcribe[@]}" empty.wav
# Files that were cut short: what is there is heard, and said to be less than the header says.
exits 0 "${transcribe[@]}" cut.wav
grep -q "cut.wav: is cut short: its header says 2.5 s, and 1.0 s are there" err || fail "a cut file: $(<err)"
says 2 "its header says 2.5 s, and no sample of them" "${transcribe[@]}" header.wav
# One seed draws one text, and another seed another.
for seed in 1 1 2; do
  exits 0 "${transcribe[@]}" --temperature 1 --seed "$seed" tone.wav
  cat out >>drawn
done
(($(sort -u drawn | wc -l) > $(sort -u out | wc -l))) || fail "two seeds draw one text: $(<drawn)"
exits 0 "${transcribe[@]}" --attention map.html tone.wav
says 2 "is about a file" "${transcribe[@]}" --attention map.html -
python3 - <<'PYTHON' || fail "--attention"
import base64, json, re
page = open("map.html").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
assert [round(window["start"], 2) for window in data["windows"]] == sorted(round(w["start"], 2) for w in data["windows"])
for window in data["windows"]:
    weights, rows = base64.b64decode(window["weights"]), len(window["tokens"]) * len(window["maps"])
    assert rows > 0 and len(weights) == rows * window["positions"] and len(window["largest"]) == rows
    assert all(0 < largest <= 1 for largest in window["largest"])
    assert all(max(weights[i:i + window["positions"]]) == 255 for i in range(0, len(weights), window["positions"]))
    assert len(base64.b64decode(window["sound"])) == window["frames"] * window["mels"]
    assert window["positions"] * window["positionSeconds"] <= window["seconds"] + 0.021
assert "http" not in page.replace("http-equiv", "")
PYTHON
# A stream: what is printed in the end is a text.
"${transcribe[@]}" - <tone.raw >out 2>err || fail "a stream: $(<err)"
[[ -s out ]] || fail "a stream has no text"
says 2 "not a sound file" "${transcribe[@]}" "$model/config.json"
says 2 "no-such.wav" "${transcribe[@]}" no-such.wav
says 2 "'xx' is none of the model's" "$MULCIBER" transcribe -m "$model" --language xx one.wav
says 2 "translate" "$MULCIBER" transcribe -m "$MULCIBER_SOURCE/assets/en-de" one.wav

if [[ ${MULCIBER_MODELS:-} == 1 ]]; then
  for program in espeak-ng sndfile-resample; do
    command -v "$program" >/dev/null || { echo "$program is not installed"; exit 77; }
  done
  whisper=$("$MULCIBER_SOURCE/tools/fetch_whisper.sh")
  python3 "$MULCIBER_SOURCE/tools/word_errors.py" "$MULCIBER" "$whisper" >rate
  # docs/guide/speech.md has the rate.
  python3 -c 'import sys; rate = float(open("rate").read().split()[-2]); sys.exit(rate > 20)' ||
    fail "more than a fifth of the words are wrong: $(<rate)"
fi
