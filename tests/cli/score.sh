#!/usr/bin/env bash
# `mulciber score`: lines, continuations, alternatives, errors; a decoder's vectors by `embed`; and draft tokens of
# `generate`. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
model=$MULCIBER_SOURCE/tests/data/gemma3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"

printf 'the red hammer\nthe blue nails and the red hammer\n' >lines
exits 0 "$MULCIBER" score -m "$model" lines
grep -qP '^-[0-9.]+\t-[0-9.]+\t[0-9]+\tthe red hammer$' out || fail "lines: $(cat out)"
exits 0 "$MULCIBER" score -m "$model" --top 2 --json - <lines
python3 - <<'PYTHON' || fail "score --json: $(cat out)"
import json
rows = [json.loads(line) for line in open("out")]
assert [row["text"] for row in rows] == open("lines").read().splitlines()
for row in rows:
    assert len(row["tokens"]) == len(row["ids"]) - 1  # all but <bos>
    assert abs(sum(token["log_probability"] for token in row["tokens"]) - row["sum"]) < 1e-9
    assert abs(row["mean"] * len(row["tokens"]) - row["sum"]) < 1e-9
    for token in row["tokens"]:
        first, second = token["likeliest"]
        assert first["log_probability"] >= second["log_probability"]
        assert (token["rank"] == 0) == (first["id"] == token["id"])
PYTHON
exits 0 "$MULCIBER" score -m "$model" --bare --json lines
python3 -c 'import json; row = json.loads(open("out").readline()); assert len(row["tokens"]) == len(row["ids"]) - 1 > 0 and "rank" not in row["tokens"][0]' ||
  fail "--bare: $(cat out)"
exits 0 "$MULCIBER" score -m "$model" --whole --stats lines
[[ $(grep -c '^-' out) == 1 ]] || fail "--whole: $(cat out)"
grep -q 'tokens .* scored' err || fail "--stats: $(cat err)"

printf 'the red\t hammer\nthe red\t nails and nails\nthe blue\t hammer\n' >pairs
exits 0 "$MULCIBER" score -m "$model" --pairs --json pairs
python3 - <<'PYTHON' || fail "--pairs: $(cat out)"
import json
rows = [json.loads(line) for line in open("out")]
assert [row["context"] for row in rows] == ["the red", "the red", "the blue"]
assert rows[0]["best_sum"] == (rows[0]["sum"] >= rows[1]["sum"]) != rows[1]["best_sum"]
assert rows[0]["best_mean"] == (rows[0]["mean"] >= rows[1]["mean"]) != rows[1]["best_mean"]
assert rows[2]["best_sum"] and rows[2]["best_mean"]
PYTHON
says 2 "has no tab" "$MULCIBER" score -m "$model" --pairs lines
echo >empty
says 2 "text 1 of 1: has no tokens to score" "$MULCIBER" score -m "$model" empty
says 2 "the context 4" "$MULCIBER" score -m "$model" --context 4 lines
says 2 "is not one that continues texts" "$MULCIBER" score -m "$MULCIBER_SOURCE/tests/data/marian" lines

# Vectors of decoders.
exits 0 "$MULCIBER" embed -m "$model" --pooling last --normalize lines
python3 - <<'PYTHON' || fail "embed: $(cut -c -200 out)"
import json
rows = [json.loads(line) for line in open("out")]
assert len(rows) == 2 and all(abs(sum(x * x for x in row["vector"]) - 1) < 1e-5 for row in rows)
PYTHON
exits 0 "$MULCIBER" embed -m "$MULCIBER_SOURCE/tests/data/gguf_families/gpt2.gguf" lines
says 2 "has no pooler" "$MULCIBER" embed -m "$model" --pooling pooler lines

# Speculative decoding says nothing else.
text="the red hammer and the blue nails and the red hammer"
ask=("$MULCIBER" generate -m "$model" -p "$text" -n 20 --ignore-end --json --stats)
exits 0 "${ask[@]}"
mv out plain
for options in "--prompt-lookup 2" "--lookup 2" "--draft $model --draft-tokens 3"; do
  # shellcheck disable=SC2086
  exits 0 "${ask[@]}" $options
  python3 - <<'PYTHON' || fail "generate $options: $(cat out)"
import json
plain, answer = json.load(open("plain")), json.load(open("out"))
assert answer["ids"] == plain["ids"] and answer["text"] == plain["text"] and answer["end"] == plain["end"]
s = answer["statistics"]
assert 0 <= s["accepted_tokens"] <= s["draft_tokens"] == s["proposed_tokens"] > 0 and s["new_tokens"] == 20
PYTHON
done
exits 0 "${ask[@]:0:6}" -n 8 --ignore-end --stats --draft "$model"
grep -q 'draft tokens .* accepted (100.0 %)' err || fail "--stats: $(cat err)"
says 2 "take a smaller model of the same family" "$MULCIBER" generate -m "$model" -p a -n 2 --draft "$MULCIBER_SOURCE/tests/data/gguf_families/gpt2.gguf"
