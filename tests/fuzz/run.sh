#!/usr/bin/env bash
# Runs the fuzz targets of a build folder, two at a time, each for a bounded time, from a seed corpus made on the spot.
# Fails when one of them finds something; what it found lies in the build folder then.
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
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
findings=$build/fuzz-findings
mkdir -p "$findings"
python3 "$source/seeds.py" "$work"

one() {
  local target=$1 log=$work/$1.log status=0
  mkdir -p "$work/$target.new"
  ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1 \
    "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=1500 -malloc_limit_mb=512 \
    -max_len=16384 -dict="$work/$target.dict" -artifact_prefix="$findings/$target-" -print_final_stats=1 \
    "$work/$target.new" "$work/$target" >"$log" 2>&1 || status=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if ((status != 0)); then
    echo "$target: a finding after ${runs:-?} runs (in $findings):"
    grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD|INITED|READ)' "$log" | tail -n 30
    return 1
  fi
  echo "$target: ${runs:-?} runs in $seconds s, no finding"
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
