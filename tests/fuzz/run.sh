#!/usr/bin/env bash
# Runs the fuzz targets of a build folder, two at a time, each for a bounded time, from a seed corpus made on the spot.
# Fails when one of them finds something; what it found lies in the build folder then. Calls of the C interface need a
# software driver, which VK_DRIVER_FILES names.
#   tests/fuzz/run.sh BUILD_FOLDER [SECONDS=10] [TARGET...]
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
seconds=${2:-10}
targets=("${@:3}")
if ((${#targets[@]} == 0)); then
  targets=(adapter tokenizer chat_template grammar gguf config safetensors image request)
  # Only where libsndfile is installed.
  if [[ -x $build/tests/fuzz/fuzz_sound ]]; then targets+=(sound); fi
  if [[ -n ${VK_DRIVER_FILES:-} ]]; then targets=(c_interface "${targets[@]}"); fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
findings=$build/fuzz-findings
mkdir -p "$findings"
python3 "$source/seeds.py" "$work"

one() {
  local target=$1 log=$work/$1.log status=0 time=$seconds own=()
  # It loads models before its first run, and each run works on a device. The driver's memory counts too, and looking for
  # leaks behind each run would take longer than the run.
  if [[ $target == c_interface ]]; then
    time=$((seconds * 9 / 4)) own=(-rss_limit_mb=4000 -malloc_limit_mb=1024 -max_len=512 -detect_leaks=0)
  fi
  mkdir -p "$work/$target.new"
  MULCIBER_SOURCE=$source/../.. LSAN_OPTIONS=suppressions=$source/../lsan.supp:print_suppressions=0 \
  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1 \
    "$build/tests/fuzz/fuzz_$target" -max_total_time="$time" -timeout=120 -rss_limit_mb=1500 -malloc_limit_mb=512 \
    -max_len=16384 -dict="$work/$target.dict" -artifact_prefix="$findings/$target-" -print_final_stats=1 \
    "${own[@]}" "$work/$target.new" "$work/$target" >"$log" 2>&1 || status=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status != 0)); then
    echo "$target: a finding after ${runs:-?} runs (in $findings):"
    grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD|INITED|READ)' "$log" | tail -n 30
    return 1
  fi
  echo "$target: ${runs:-?} runs in $time s, no finding"
}

failed=0
pids=()
for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= 2)); do wait -n || true; done
  one "$target" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit "$failed"
