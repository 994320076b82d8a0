#!/usr/bin/env bash
# `mulciber kernels`: rows through the driver's compiler. MULCIBER comes from ctest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }

"$MULCIBER" kernels --kernel 'rms_norm*' >out || fail "exit $?"
grep -q '^[* ] rms_norm_f32 ' out || fail "no line of rms_norm_f32: $(cat out)"
# Something is selected for the shapes, and --chosen leaves nothing but it.
grep -q '^\* rms_norm' out || fail "no row is marked as selected"
"$MULCIBER" kernels --kernel 'rms_norm*' --chosen --json >chosen.json
"$MULCIBER" kernels --kernel 'rms_norm*' --json --disassembly texts >all.json
python3 - <<'PYTHON'
import json
everything, chosen = json.load(open("all.json")), json.load(open("chosen.json"))
assert len(chosen["pipelines"]) < len(everything["pipelines"]), "everything is chosen"
assert all(p["chosen_for"] for p in chosen["pipelines"])
keys = [(p["row"], p["activation"], p["weight"], tuple(sorted(p["constants"].items()))) for p in everything["pipelines"]]
assert len(set(keys)) == len(keys), "a pipeline was compiled twice"
for p in everything["pipelines"]:
    assert p["op"] == "rms_norm" and "failure" not in p and p["compile_seconds"] >= 0, p
    assert len(p["groups"]) == len(p["shapes"]) and all(len(g) == 3 and min(g) > 0 for g in p["groups"]), p
    assert p["shapes"] and all(shape in p["shapes"] for shape in p["chosen_for"]), p
    assert p["constants"]["0"] == p["local_size"], p
PYTHON
[[ -d texts ]] || fail "--disassembly made no folder"
# One shape; a weight; what does not match.
"$MULCIBER" kernels --kernel matmul --shape 1,96,64 --weight q8_0 --json >one.json
python3 -c '
import json
found = json.load(open("one.json"))["pipelines"]
assert found and all(p["weight"] == "q8_0" and p["shapes"] == [[1, 96, 64]] for p in found), found'
status=0
"$MULCIBER" kernels --kernel no-such 2>err || status=$?
[[ $status == 2 ]] || fail "exit $status, expected 2"
grep -q no-such err || fail "no name of what does not match: $(cat err)"
for command in kernels bench; do
  status=0
  "$MULCIBER" "$command" --kernel 'softmax*' --weight no-such >out 2>err || status=$?
  if [[ $status != 2 ]] || ! grep -q 'type that matches "no-such"' err; then
    fail "$command of no such type: $status $(cat out err)"
  fi
done
# Shapes of nothing, and of more than a tensor holds.
for command in kernels bench; do
  for shape in 0,64,64 1000000000,1000000000,1000000000 18446744073709551615,8,8; do
    status=0
    "$MULCIBER" "$command" --kernel matmul --shape "$shape" >out 2>err || status=$?
    if [[ $status != 2 || -s out ]] || ! grep -q "\"$shape\" is no shape" err; then
      fail "$command $shape: $status $(cat out err)"
    fi
  done
done
# Queries times keys are no tensor: 65,536 by 131,072 of them are a shape.
"$MULCIBER" kernels --kernel attention_tiled_64_f32 --shape 1,65536,131072,1,64 --json >long.json
python3 -c '
import json
assert json.load(open("long.json"))["pipelines"], "no pipeline for a long context"'
# Blocks of q4_0 have 32 values.
status=0
"$MULCIBER" kernels --kernel matmul --weight q4_0 --shape 1,8,7 >out 2>err || status=$?
if [[ $status != 2 || -s out ]] || ! grep -q "serves these shapes" err; then fail "1,8,7: $status $(cat out err)"; fi
