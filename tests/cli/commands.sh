#!/usr/bin/env bash
# What every subcommand has: --help with an example, the common options, and errors for wrong words.
# And the device list, for people and for machines. MULCIBER comes from ctest.
set -euo pipefail
. "$(dirname "$0")/exits.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$MULCIBER" --version >version
[[ $(head -n 1 version) =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "--version: $(cat version)"
grep -qE '^shaders: glslang .*, SPIR-V [0-9a-f]{16}$' version || fail "--version names no shaders: $(cat version)"
# What --help lists is what is tested: a command that is added must be named here with the others.
"$MULCIBER" --help >all
mapfile -t commands < <(sed -n '/^subcommands:/I,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' all)
named="devices translate generate chat serve perplexity score transcribe embed classify answer match read tokenize bench tune kernels verify inspect conform heads pull"
[[ ${commands[*]} == "$named" ]] || fail "--help lists '${commands[*]}', this test knows '$named'"
for command in "${commands[@]}"; do
  "$MULCIBER" "$command" --help >help || fail "$command --help"
  grep -q Example help || fail "no example in $command --help"
  # Every command that runs something on a device lets one choose it and what it may use.
  case $command in
    devices) options=(--limits --json) ;;
    inspect | tokenize | pull) options=(--json) ;;
    *) options=(--device --limits --validate --json) ;;
  esac
  for option in "${options[@]}"; do
    grep -q -- "$option" help || fail "no $option in $command --help"
  done
  says 2 "" "$MULCIBER" "$command" --no-such-option
done
says 2 "subcommand is required" "$MULCIBER" no-such-command
says 2 no-such-option "$MULCIBER" devices --no-such-option
says 2 "subcommand is required" "$MULCIBER"

"$MULCIBER" devices >list
[[ -s list ]] || fail "no devices"
"$MULCIBER" devices -v >rows
grep -q matmul rows || fail "devices -v names no kernels"
[[ $(head -n 1 rows) == "$(tail -n 1 version)" ]] || fail "devices -v names no shaders"
"$MULCIBER" devices --json | python3 -c 'import json, sys; assert json.load(sys.stdin)' ||
  fail "devices --json"
"$MULCIBER" devices --limits android-2021 >phone
MULCIBER_CACHE=$work/cache "$MULCIBER" devices --limits android-2021 --self-test --json >tested 2>err || fail "self-test: $(cat err)"
grep -q " 0 failed" err || fail "self-test: $(cat err)"
python3 -c 'import json, sys; t = json.load(sys.stdin)[0]["self_test"]; assert t["passed"] and not t["untested"], t' <tested ||
  fail "devices --self-test leaves rows untested"
cmp -s phone list && fail "android-2021 takes nothing away"
says 2 "'no-such-limit' is not a limit" "$MULCIBER" devices --limits no-such-limit
says 2 "'shared=much' is not a limit" "$MULCIBER" translate -m . --limits shared=much text
MULCIBER_LIMITS=no-such-limit says 2 "MULCIBER_LIMITS: 'no-such-limit'" "$MULCIBER" devices
says 4 "no such device" "$MULCIBER" translate -m . --device "no such device" text
export VK_DRIVER_FILES=$work/none.json VK_ICD_FILENAMES=$work/none.json
says 4 driver "$MULCIBER" devices
