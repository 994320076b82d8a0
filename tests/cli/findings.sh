#!/usr/bin/env bash
# The faults of drivers that docs/reference/conformance-findings.md tells of are there, on the drivers that it names, and
# on no other. Builds the shaders of tests/findings as folders of their own.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/exits.bash"
cd "$work"
for tool in glslangValidator cmake python3; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
driver=$("$MULCIBER" devices --json | python3 -c 'import json, sys
device = json.load(sys.stdin)[0]
print(device["driver"], ".".join(map(str, device["driver_version"])))')
case $driver in
  "llvmpipe 22.3."*) wrong=" long_loop " ;;
  SwiftShader*) wrong=" pack_half " ;;
  *) wrong=" " ;;
esac
for shader in "$MULCIBER_SOURCE"/tests/findings/*.comp; do
  name=$(basename "$shader" .comp)
  code=0
  if [[ $wrong == *" $name "* ]]; then code=1; fi
  exits $code python3 "$MULCIBER_SOURCE/tests/findings/run.py" "$name"
done
