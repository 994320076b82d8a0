#!/usr/bin/env bash
# Runs the conformance suite on every driver and mask of docs/reference/conformance-results.md, and writes that file.
#   tools/conformance_matrix.sh [RUN...]      all runs, or the named ones (see the list below)
# Records go to ${MULCIBER_RUNS:-conformance-runs}, one file for each run. A run that stopped is continued; a complete
# one is kept: remove its file to repeat it. Drivers come from tools/drivers/software.sh and debian-testing.sh; missing
# drivers are named and left out. REPEAT: runs of each case (20). CASES: options that select them (all; --mustpass).
# TIMEOUT: seconds for a case (900: one pipeline of a large tile compiles for a minute on lavapipe of Mesa 25.0).
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${MULCIBER_RUNS:-conformance-runs}
drivers=${MULCIBER_DRIVERS:-$HOME/.cache/vulkan-drivers}
mulciber=${MULCIBER:-build/mulciber}
repeat=${REPEAT:-20}
read -ra cases <<<"${CASES:-}"
mkdir -p "$runs"
say() { echo "matrix: $*"; }

# name, driver, --limits, environment. Lavapipe's subgroups are as wide as its vectors.
list=(
  "lavapipe-22 lvp - -"
  "lavapipe-25 lvp-backports - -"
  "lavapipe-26 testing - -"
  "swiftshader swiftshader - -"
  "lavapipe-22-subgroup-4 lvp - LP_NATIVE_VECTOR_WIDTH=128"
  "lavapipe-22-subgroup-16 lvp - LP_NATIVE_VECTOR_WIDTH=512"
  "lavapipe-22-android lvp android-2021 -"
  "lavapipe-22-no-subgroup lvp no-subgroup -"
  "lavapipe-22-storage lvp storage=1M -"
  "lavapipe-22-small lvp invocations=128,shared=16384 -"
  "lavapipe-26-subgroup-16 testing - LP_NATIVE_VECTOR_WIDTH=512"
  "gpu - - -"
)

whole() { [[ -e $1 ]] && tail -n 1 "$1" | grep -q '"kind":"summary"'; }

# run NAME DRIVER LIMITS ENVIRONMENT
run() {
  local file=$runs/$1.jsonl options=("${cases[@]}" --repeat "$repeat" --timeout "${TIMEOUT:-900}") before=() command=("$mulciber") status=0
  if whole "$file"; then return; fi
  [[ $3 == - ]] || options+=(--limits "$3")
  [[ $4 == - ]] || before+=("$4")
  [[ ! -e $file ]] || options+=(--resume)
  case $2 in
    testing)
      if [[ ! -x build-testing/mulciber ]]; then
        say "no build-testing/mulciber: build it with tools/drivers/in_debian_testing.sh"
        return
      fi
      command=(tools/drivers/in_debian_testing.sh env "${before[@]}" build-testing/mulciber)
      before=() ;;
    -)
      # The default device, if it is hardware.
      "$mulciber" devices --json | grep -q '"kind": *"[a-z]* GPU"' || { say "no GPU here"; return; } ;;
    *)
      [[ -e $drivers/$2.json ]] || { say "no $2.json: run tools/drivers/software.sh"; return; }
      before+=(VK_DRIVER_FILES="$drivers/$2.json" VK_ICD_FILENAMES="$drivers/$2.json") ;;
  esac
  say "$1"
  env "${before[@]}" "${command[@]}" conform "${options[@]}" --output "$file" >"$runs/$1.log" 2>&1 || status=$?
  # 1: a case failed, which is a result.
  ((status <= 1)) || say "$1 ended with $status: $(tail -n 1 "$runs/$1.log")"
}

files=()
for entry in "${list[@]}"; do
  read -r name driver limits environment <<<"$entry"
  if (($# == 0)) || [[ " $* " == *" $name "* ]]; then run "$name" "$driver" "$limits" "$environment"; fi
  if whole "$runs/$name.jsonl"; then files+=("$runs/$name.jsonl"); fi
done
((${#files[@]} > 0)) || { say "no run is whole"; exit 1; }
"$mulciber" conform --matrix "${files[@]}" --findings docs/reference/conformance-findings.md >"$runs/conformance.md"
mv "$runs/conformance.md" docs/reference/conformance-results.md
say "wrote docs/reference/conformance-results.md from ${#files[@]} runs"
