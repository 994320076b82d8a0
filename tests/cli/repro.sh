#!/usr/bin/env bash
# `mulciber conform --repro`: folders that build alone with CMake, agree with the reference on this driver, and notice
# a result that is wrong. And the reports made from a file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

# The first case of each kind that this device can run: by descriptors, by addresses, with control words, and one of
# several dispatches that wait for each other.
kinds=('mulciber.matmul.tiled_f32.m33_*' 'mulciber.*_address_f32.*' 'mulciber.attention.f32.*head_mask*' 'mulciber.beam_step.baseline.*steps_10*')
written=0
for kind in "${kinds[@]}"; do
  "$MULCIBER" conform --list --filter "$kind" >names
  name=$(sed -n 1p names)
  [[ -n $name ]] || fail "no case like $kind"
  folder=case$written
  if ! "$MULCIBER" conform --repro "$name" --repeat 2 --output $folder >out 2>err; then
    # A device without buffer addresses has no such repro, and says so.
    [[ $kind == *address* ]] && grep -q "buffer addresses" err && continue
    fail "--repro $name: $(cat err)"
  fi
  grep -q '^Pass' out || fail "$name: $(cat out)"
  grep -q '^Pass' $folder/README.md || fail "README.md of $name does not say what came out"
  cmake -S $folder -B $folder/build -DCMAKE_C_FLAGS="-Wall -Wextra -Wno-missing-field-initializers -Werror" >log 2>&1 ||
    fail "configuring $name: $(tail -n 20 log)"
  cmake --build $folder/build >log 2>&1 || fail "building $name: $(cat log)"
  $folder/build/repro --repeat 3 >log 2>&1 || fail "exit $? of $name: $(cat log)"
  grep -q "^right in 3 runs" log || fail "$name: $(cat log)"
  written=$((written + 1))
done
((written >= 3)) || fail "only $written folders"
(($(grep -c '^static const struct constant' case$((written - 1))/case.h) > 1)) || fail "the last case is one dispatch"

# A wrong expectation is noticed, and named: element 3 of case 0 becomes 1e6.
python3 - <<'PY'
import struct
with open("case0/expected0.bin", "r+b") as file:
    file.seek(8 * 3)
    file.write(struct.pack("<d", 1e6))
PY
status=0
case0/build/repro --repeat 1 >log 2>&1 || status=$?
[[ $status == 1 ]] || fail "exit $status for a wrong result: $(cat log)"
grep -Eq "(row|column) 3.*expected 1000000" log || fail "the worst element is not named: $(cat log)"
rm case0/expected0.bin
status=0
case0/build/repro >log 2>&1 || status=$?
[[ $status == 2 ]] || fail "exit $status without what is expected"
status=0
"$MULCIBER" conform --repro mulciber.no.such.case >out 2>err || status=$?
[[ $status == 2 ]] || fail "exit $status for a case that is not there"

# Reports from a file, without a device.
"$MULCIBER" conform --filter 'mulciber.softmax.*' --fraction 0,8 --repeat 1 --output run.jsonl --html run.html --junit run.xml \
  >out 2>err || fail "conform: $(cat err)"
export VK_DRIVER_FILES=$work/none.json VK_ICD_FILENAMES=$work/none.json
"$MULCIBER" conform --report run.jsonl --html again.html --junit again.xml >out || fail "--report"
if ! cmp run.html again.html || ! cmp run.xml again.xml; then fail "a report from a file differs from that after the run"; fi
grep -q "No fault found" out || fail "no verdict: $(cat out)"
python3 - <<'PY' || fail "run.xml"
import json, xml.etree.ElementTree as tree
cases = [json.loads(line) for line in open("run.jsonl")]
cases = [c for c in cases if c["kind"] == "case"]
root = tree.parse("run.xml").getroot()
assert int(root.get("tests")) == len(cases) == len(root.findall("testsuite/testcase"))
assert int(root.get("skipped")) == sum(c["status"] in ("NotSupported", "Waiver") for c in cases)
assert root.find("testsuite/properties/property[@name='device']") is not None
PY
"$MULCIBER" conform --report run.jsonl --compare run.jsonl --html two.html >/dev/null || fail "--compare"
"$MULCIBER" conform --matrix run.jsonl run.jsonl >table.md || fail "--matrix"
grep -q '^| softmax |' table.md || fail "--matrix prints no table"
status=0
"$MULCIBER" conform --report run.jsonl >out 2>err || status=$?
[[ $status == 2 ]] || fail "exit $status for --report without a report"
