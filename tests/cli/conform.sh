#!/usr/bin/env bash
# `mulciber conform`: each fault on purpose comes out with its status on the case it was put into, and changes no
# other; a run that is killed goes on; selections, baselines and waivers do what --help says.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/exits.bash"
cd "$work"
few=(--filter 'mulciber.layer_norm.*' --fraction '0,8')
conform=("$MULCIBER" conform "${few[@]}")
quick=(--repeat 3)

# Statuses of a file, name by name.
cat >statuses.py <<'PY'
import json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    if record["kind"] == "case":
        print(record["name"], record["status"], record["worst_error"] if "--errors" in sys.argv else "")
PY
statuses() { python3 statuses.py "$@" | sort; }

exits 0 "${conform[@]}" --list </dev/null
cp out names
(($(wc -l <names) >= 30)) || fail "too few cases: $(wc -l <names)"
exits 0 "${conform[@]}" "${quick[@]}" --output clean.jsonl
statuses clean.jsonl >clean
[[ $(wc -l <clean) == $(wc -l <names) ]] || fail "not every case has a result"
head -n 1 clean.jsonl | grep -q '"git_revision"' || fail "no fingerprint"
tail -n 1 clean.jsonl | grep -q '"summary"' || fail "no summary"

# The odd case stands in the middle of the first batch, whose order is that of the list.
passing=$(grep -Fx -f <(grep ' Pass' clean | cut -d' ' -f1) names | sed -n 9p)
# A case may take as long as it needs, and the one that hangs is given up after a while.
for fault in crash:Crash hang:Timeout corrupt:Fail flaky:Flaky outside:Fail lost:DeviceLost crash-beside-others:Flaky; do
  kind=${fault%:*} status=${fault#*:}
  exits 1 "${conform[@]}" "${quick[@]}" --inject "$kind:$passing" --timeout 20 --output "$kind.jsonl"
  statuses "$kind.jsonl" >with
  sed "s/^$passing Pass/$passing $status/" clean | diff - with || fail "$kind changed the above"
  grep -q "^$status: $passing" err || fail "$kind is not reported: $(cat err)"
done
grep -q "alone in a new process it gave Pass" crash-beside-others.jsonl || fail "no word about the other cases"
grep -q SIGABRT crash.jsonl || fail "no signal is named"

# Other orders of workgroups and subgroups: with --shake, with part of the short list unless it is turned off, and recorded.
shake=("$MULCIBER" conform --filter 'mulciber.rms_norm.f32.*' --fraction '0,2' --repeat 1 --inject 'order:*')
shaken=$("$MULCIBER" conform --list --mustpass --filter 'mulciber.rms_norm.f32.*' | sed -n 1p)
exits 1 "${shake[@]}" --caselist - --shake --output order.jsonl <<<"$shaken"
grep -q "^Flaky: $shaken: .* order of workgroups and subgroups element 0 of output 0 is" err || fail "$(cat err)"
grep -q '"shake":"all"' order.jsonl || fail "no word of orders: $(cat order.jsonl)"
exits 1 "${shake[@]}" --mustpass --output order.jsonl
grep -q '"orders":\["r[a-z0-9 ]*"\]' order.jsonl || fail "no order: $(cat order.jsonl)"
grep -q '"status":"Pass"' order.jsonl || fail "not a part of the cases: $(cat order.jsonl)"
exits 0 "${shake[@]}" --mustpass --no-shake
exits 0 "${shake[@]}"
exits 2 "${shake[@]}" --shake --no-shake

# A seed gives the same errors for any number of child processes; another seed gives others.
statuses clean.jsonl --errors >errors
exits 0 "${conform[@]}" "${quick[@]}" --jobs 1 --batch 7 --output again.jsonl
statuses again.jsonl --errors | cmp - errors || fail "a second run gives other errors"
exits 0 "${conform[@]}" "${quick[@]}" --seed 5 --output seed.jsonl
statuses seed.jsonl --errors | cmp -s - errors && fail "the seed changes nothing"

# Blocks and whole models know the same faults.
for name in mulciber.block.f32.feed_forward.r2_l7_d32_f64.relu mulciber.model.en_de.greedy.s4; do
  for fault in corrupt:Fail flaky:Flaky outside:Fail lost:DeviceLost; do
    exits 1 "$MULCIBER" conform --filter "$name" --repeat 1 --inject "${fault%:*}:$name"
    grep -q "^${fault#*:}: $name" err || fail "${fault%:*} in $name: $(cat err)"
  done
  exits 0 "$MULCIBER" conform --filter "$name" --repeat 1
done

# Killed in the middle; the file stays readable, and the rest is run later.
twenty_in() { [[ -s $1 ]] && (($(wc -l <"$1") > 20)); }
"${conform[@]}" "${quick[@]}" --jobs 1 --batch 10 --timeout 3600 --inject "hang:$(sed -n 25p names)" --output killed.jsonl >out 2>err &
pid=$!
awaits "no twenty cases before the kill" twenty_in killed.jsonl
kill -9 $pid
wait $pid 2>/dev/null || true
before=$(grep -c '"case"' killed.jsonl)
((before >= 20 && before < $(wc -l <names))) || fail "$before cases before the kill"
printf '{"kind":"case","na' >>killed.jsonl
exits 0 "${conform[@]}" "${quick[@]}" --output killed.jsonl --resume
statuses killed.jsonl | diff clean - || fail "a resumed run differs"
[[ $(grep -c '"case"' killed.jsonl) == $(wc -l <names) ]] || fail "cases ran twice"
exits 0 "${conform[@]}" "${quick[@]}" --output killed.jsonl --resume
cp killed.jsonl other.jsonl
sed -i '/"summary"/d' other.jsonl && sed -i '$d' other.jsonl
exits 2 "${conform[@]}" --output other.jsonl --resume --repeat 4
grep -q repeats err || fail "a resumed run with other options: $(cat err)"

# SIGINT ends it cleanly.
"${conform[@]}" "${quick[@]}" --jobs 1 --batch 10 --timeout 3600 --inject "hang:$(sed -n 25p names)" --output stopped.jsonl >out 2>err &
pid=$!
awaits "no twenty cases before SIGINT" twenty_in stopped.jsonl
# A background job of a script ignores SIGINT unless it asks for it, as this command does.
kill -INT $pid
status=0
wait $pid || status=$?
[[ $status == 130 ]] || fail "exit $status after SIGINT: $(cat err)"
grep -q -- --resume err || fail "no word of --resume: $(cat err)"

# Selections.
exits 0 "$MULCIBER" conform --list --caselist - --filter '*' <names
cmp out names || fail "--caselist - gives other cases"
for part in 0 1 2; do
  exits 0 "$MULCIBER" conform --list --fraction "$part,3" --caselist names
  cat out >>parts
done
sort parts | cmp - <(sort names) || fail "fractions do not part the list"
exits 3 "$MULCIBER" conform --filter no-such-case
exits 2 "$MULCIBER" conform --caselist - <<<mulciber.no.such.case
exits 2 "$MULCIBER" conform --inject nothing:x
exits 2 "$MULCIBER" conform --fraction 3,3 --list
exits 2 "$MULCIBER" conform --resume
exits 2 "${conform[@]}" --limits no-such-limit
grep -q "no-such-limit" err || fail "$(cat err)"
exits 4 "${conform[@]}" "${quick[@]}" --device "no such device"
grep -q "no such device" err || fail "$(cat err)"
VK_DRIVER_FILES=$work/none.json VK_ICD_FILENAMES=$work/none.json exits 4 "${conform[@]}" "${quick[@]}"

# Only what is worse than the baseline counts; a waiver covers a failure and is reported when it is idle.
exits 0 "${conform[@]}" "${quick[@]}" --baseline corrupt.jsonl
grep -q "^better: $passing: Fail -> Pass" out || fail "no better case: $(cat out)"
exits 0 "${conform[@]}" "${quick[@]}" --inject "corrupt:$passing" --baseline corrupt.jsonl
exits 1 "${conform[@]}" "${quick[@]}" --inject "corrupt:$passing" --baseline clean.jsonl
grep -q "^worse: $passing: Pass -> Fail" out || fail "no worse case: $(cat out)"
echo "[{\"cases\": \"$passing\", \"reason\": \"on purpose\", \"link\": \"tests/cli\"}]" >waivers.json
exits 0 "${conform[@]}" "${quick[@]}" --inject "corrupt:$passing" --waivers waivers.json --output waived.jsonl
grep -q '"waived":"on purpose (tests/cli)"' waived.jsonl || fail "no waiver in the record"
exits 0 "${conform[@]}" "${quick[@]}" --waivers waivers.json
grep -q "is not needed" out || fail "an idle waiver is not reported: $(cat out)"

# A message of the validation layer is a fault of the suite.
if "${conform[@]}" --repeat 1 --validate --caselist - <<<"$passing" >out 2>err; then
  exits 1 "${conform[@]}" --repeat 1 --validate --inject "misuse:$passing"
  grep -q "^InternalError: $passing: .*validation.*usage" err || fail "misuse is not reported: $(cat err)"
else
  grep -q "layer is not installed" err || fail "under validation: $(cat err)"
fi

exits 1 "${conform[@]}" "${quick[@]}" --inject "corrupt:$passing" --json
python3 -c 'import json; r = json.load(open("out"))
assert r["complete"] and r["exit_code"] == 1 and len(r["not_good"]) == 1 and r["fingerprint"]["row_hashes"]'
