#!/usr/bin/env bash
# bench/compare_server.py on our server alone: the load that it makes, what it counts, and that it says what went wrong.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat
compare=("$MULCIBER_SOURCE/bench/compare_server.py" --mulciber "$MULCIBER" --llama-server '' --shortest 4 --longest 16 --context 64)

exits 0 timeout 900 "${compare[@]}" --clients 1,4 --requests 2 --json chat
python3 - <<'PYTHON' || fail "samples: $(cat out err)"
import json
cells = json.load(open("out"))
assert [(cell["clients"], cell["server"]) for cell in cells] == [(1, "Mulciber"), (4, "Mulciber")], cells
for cell in cells:
    [sample] = cell["samples"]
    answers = 2 * cell["clients"]
    assert sample["whole"] == sample["answers"] == answers and sample["errors"] == [], sample
    assert 4 * answers <= sample["new_tokens"] <= 16 * answers and 0 < sample["prompt_tokens"] <= 16 * answers, sample
    assert sample["first_p99"] >= sample["first_p50"] > 0 and sample["gap_p99"] >= sample["gap_p50"] > 0, sample
    assert sample["worst_p99_over_median"] >= 1, sample
    assert abs(sample["rate"] * sample["seconds"] - sample["prompt_tokens"] - sample["new_tokens"]) < 1e-6, sample
PYTHON
exits 0 timeout 900 "${compare[@]}" --clients 2 --requests 1 chat
grep -q '^| 2 | Mulciber | [0-9.]* | [0-9.]* |.*| 2 of 2 | 0 |' out || fail "the table: $(cat out)"
# Answers are as long as asked, so what a server cuts is an error.
exits 1 timeout 900 "${compare[@]}" --clients 2 --requests 1 --serve-options '--tokens 3' chat
grep -q 'tokens of prompt and answer' err || fail "no word of answers that are too short: $(cat out err)"
# What time cuts off is none. Nobody answers so many in a second.
exits 0 timeout 900 "${compare[@]}" --clients 2 --requests 1000 --seconds 1 --json chat
python3 -c 'import json; [s] = json.load(open("out"))[0]["samples"]; assert s["whole"] < 2000 and s["errors"] == [] and 1 <= s["seconds"], s' || fail "a bounded run: $(cat out)"
