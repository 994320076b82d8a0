#!/usr/bin/env bash
# Installs what is missing, sets up the software Vulkan drivers, builds everything and runs every
# test: on lavapipe and SwiftShader, with capability masks, under the validation layer, under
# sanitizers, and against an installed library. Works twice, from any folder. About 25 minutes on
# 2 cores the first time. The last line is "N passed, N failed, N skipped".
#   ./test.sh [--yes] [--only PART[,PART...]]
#   --yes   do not ask before sudo        --only  the named parts, and the build
set -euo pipefail

root=$(cd "$(dirname "$0")" && pwd)
cd "$root"
all_parts=(lavapipe swiftshader conformance android-2021 storage-1M validation sanitizers fuzz install
  scripts debian-testing)
parts=("${all_parts[@]}")
yes=()
while (($# > 0)); do
  case $1 in
    --yes) yes=(--yes) ;;
    --only) IFS=, read -r -a parts <<<"${2:-}"; shift ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; echo "Parts: ${all_parts[*]}"; exit 2 ;;
  esac
  shift
done

export MULCIBER_DRIVERS=${MULCIBER_DRIVERS:-$HOME/.cache/vulkan-drivers}
if [[ -z ${MULCIBER_FIXTURES:-} && -d ../shared/fixtures ]]; then
  MULCIBER_FIXTURES=$(realpath ../shared/fixtures)
  export MULCIBER_FIXTURES
fi
jobs=$(nproc)
logs=$root/build/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
timings=() failures=() skips=()

# Parts report through these three; names of what failed or was skipped are repeated at the end.
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); failures+=("$1"); echo "FAILED: $1"; }
skip() { skipped=$((skipped + 1)); skips+=("$1"); echo "skipped: $1"; }

# check NAME COMMAND...: one test that passes when the command does; 77 means skipped.
check() {
  local name=$1 log status=0
  log=$logs/${name//[^A-Za-z0-9]/-}.log
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  case $status in
    0) pass ;;
    77) skip "$name: $(tail -n 1 "$log")" ;;
    *) fail "$name"; tail -n 25 "$log" ;;
  esac
}

# part NAME FUNCTION [ARGUMENT...]: runs it if it was asked for, and notes the time.
part() {
  local name=$1 start=$SECONDS status=0
  shift
  [[ " ${parts[*]} build " == *" $name "* ]] || return 0
  echo "==> $name"
  "$@" || status=$?
  timings+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
  return "$status"
}

# run_ctest CONFIGURATION BUILD_FOLDER CTEST_ARGUMENT...: adds up test cases, not programs. A
# program that fails without a failed case of its own (a crash, a leak) counts as one failure.
# ctest_prefix runs it elsewhere, where this checkout is seen at ctest_root.
ctest_prefix=() ctest_root=$root
run_ctest() {
  local configuration=$1 build=$2 counts log p f s with_failures=0 programs_failed=0
  shift 2
  counts=$logs/$configuration.counts log=$logs/$configuration.log
  rm -f "$counts" "$log.xml"
  MULCIBER_TEST_SUMMARY=$ctest_root/build/test-logs/$configuration.counts \
    "${ctest_prefix[@]}" ctest --test-dir "$ctest_root/$build" -j "$jobs" --output-on-failure \
    --no-tests=error --output-junit "$ctest_root/build/test-logs/$configuration.log.xml" "$@" \
    >"$log" 2>&1 </dev/null || true
  if [[ ! -s $log.xml ]]; then
    tail -n 25 "$log"
    fail "$configuration: ctest did not run"
    return
  fi
  if [[ -e $counts ]]; then
    while read -r p f s; do
      passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
      if ((f > 0)); then with_failures=$((with_failures + 1)); fi
    done <"$counts"
  fi
  local name state
  while read -r name state; do
    case $name:$state in
      cli_*:run) pass ;;
      cli_*:notrun) skip "$configuration: $name" ;;
      cli_*) fail "$configuration: $name" ;;
      *:run) ;;
      *) programs_failed=$((programs_failed + 1)); failures+=("$configuration: $name") ;;
    esac
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1 \2/p' "$log.xml")
  if ((programs_failed > with_failures)); then
    failed=$((failed + programs_failed - with_failures))
  fi
  grep -h '^skipped: ' "$log.xml" | sed "s/^skipped: /$configuration: /" |
    while IFS= read -r line; do echo "skipped: $line"; done || true
  if grep -q ' status="fail"' "$log.xml"; then
    grep -E 'FAILED:|Failed|\*\*\*|ERROR: |runtime error' -A 6 "$log" | head -n 80
  fi
  grep -E 'tests passed|Total Test time' "$log" || true
}

# on_driver NAME COMMAND...: runs the command on one of the drivers of tools/drivers/software.sh.
on_driver() {
  local icd=$MULCIBER_DRIVERS/$1.json
  shift
  if [[ ! -e $icd ]]; then
    skip "${2:-$1}: there is no $icd here"
    return
  fi
  VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd "$@"
}

# build FOLDER TARGET CMAKE_ARGUMENT...
build() {
  local folder=$1 target=$2 log=$logs/$1.log
  shift 2
  if ! { cmake -S . -B "$folder" -G Ninja "$@" &&
    cmake --build "$folder" -j "$jobs" --target "$target"; } \
    >"$log" 2>&1 </dev/null; then
    grep -E 'error|Error|FAILED' -A 5 "$log" | head -n 60
    fail "build of $folder"
    return 1
  fi
  # A repeated build compiles nothing and so warns of nothing: this counts in a fresh clone.
  if grep -q 'warning:' "$log"; then
    grep 'warning:' "$log" | sort -u | head -n 20
    fail "build of $folder without warnings"
  else
    pass
  fi
}

# Tests of the host side alone say nothing new under another mask or layer; nor do mutants and recorded vectors, which
# run on both drivers in full.
device_tests=(-L unit -E "^(attention_page|chat|config|inspect|layering|mutants|safetensors|token|vectors)")

# Each case of a kernel compiles pipelines of its own: every eighth here (SwiftShader: every twelfth), and the suite's short
# list below.
run_lavapipe() { MULCIBER_CASE_STEP=8 on_driver lvp run_ctest lavapipe build; }
run_swiftshader() {
  # Mutants, the suite's own mechanics and the options of generate are slow here, and were seen on lavapipe.
  MULCIBER_CASE_STEP=12 on_driver swiftshader run_ctest swiftshader build \
    -E "^(mutants_test|cli_conform|cli_page|cli_attention_page|cli_pull|cli_generate|cli_real_models)$"
}
# Here it is the paths that differ, and every tenth case takes them.
run_android_2021() {
  MULCIBER_CASE_STEP=10 MULCIBER_LIMITS=android-2021 on_driver lvp run_ctest android-2021 build "${device_tests[@]}"
}
run_storage_1m() {
  MULCIBER_CASE_STEP=10 MULCIBER_LIMITS=storage=1M on_driver lvp run_ctest storage-1M build "${device_tests[@]}"
}
run_validation() {
  if [[ -z $(find /usr/share/vulkan /etc/vulkan -name 'VkLayer_khronos_validation.json' \
    2>/dev/null) ]]; then
    skip "validation: the package vulkan-validationlayers is not installed"
    return
  fi
  MULCIBER_CASE_STEP=10 MULCIBER_VALIDATE=1 on_driver lvp run_ctest validation build "${device_tests[@]}"
  if [[ -e $logs/validation.log.xml ]] &&
    ! grep -q 'synchronization validation was active' "$logs/validation.log.xml"; then
    fail "validation: no device had synchronization validation"
  fi
}
run_sanitizers() {
  build build-sanitize mulciber_tests -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULCIBER_SANITIZE=ON || return 0
  MULCIBER_CASE_STEP=40 LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0 \
  UBSAN_OPTIONS=print_stacktrace=1 \
    on_driver lvp run_ctest sanitizers build-sanitize -L unit
}

# Readers of foreign files against libFuzzer, each for a minute, two at a time.
run_fuzz() {
  if ! command -v clang++ >/dev/null; then
    skip "fuzz: the package clang is not installed"
    return
  fi
  build build-fuzz mulciber_fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
    -DMULCIBER_TESTS=OFF -DMULCIBER_FUZZ=ON || return 0
  check "fuzz targets" tests/fuzz/run.sh build-fuzz "${MULCIBER_FUZZ_SECONDS:-60}"
}

# The suite's verdict on the drivers, as a user asks for it, in parts that keep the whole below 25 minutes.
run_conformance() {
  on_driver lvp check "conformance: a third of the short list on lavapipe" build/mulciber conform --mustpass --fraction 0,3 \
    --output "$logs/conformance-lavapipe.jsonl"
  on_driver swiftshader check "conformance: a twelfth of the short list on SwiftShader" build/mulciber \
    conform --mustpass --fraction 1,12 --output "$logs/conformance-swiftshader.jsonl"
  on_driver lvp check "conformance: a twentieth under validation" build/mulciber conform --validate \
    --fraction 1,20 --repeat 2 --output "$logs/conformance-validation.jsonl"
}

consumer() {
  local stage=$root/build/stage
  rm -rf "$stage" build/consumer
  cmake --install build --strip --prefix "$stage" &&
    cmake -S tests/install -B build/consumer -G Ninja -DCMAKE_PREFIX_PATH="$stage" &&
    cmake --build build/consumer &&
    [[ -n $(build/consumer/consumer "$stage/share/mulciber/en-de") ]]
}
installed_size() {
  local bytes
  bytes=$(find build/stage/bin build/stage/lib* -type f \( -name mulciber -o -name '*.so*' \) \
    -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
  echo "installed command and library: $bytes bytes, limit 10000000"
  ((bytes > 0 && bytes < 10000000))
}
run_install() {
  on_driver lvp check "find_package consumer" consumer
  check "installed size under 10 MB" installed_size
  tail -n 1 "$logs/installed-size-under-10-MB.log"
}

run_scripts() {
  if ! command -v shellcheck >/dev/null; then
    skip "scripts: shellcheck is not installed"
    return
  fi
  local files
  mapfile -t files < <(find . -path './build*' -prune -o -name '*.sh' -print)
  check "shellcheck" shellcheck "${files[@]}" .ci/run
}

# Mesa 26.1 with cooperative matrices, when asked for: the folder takes minutes to set up and build.
run_debian_testing() {
  if [[ ${MULCIBER_TESTING:-} != 1 ]]; then
    skip "debian-testing: Mesa 26.1, asked for with MULCIBER_TESTING=1"
    return
  fi
  if ! tools/drivers/debian-testing.sh; then
    skip "debian-testing: the folder cannot be set up here"
    return
  fi
  ctest_prefix=(tools/drivers/in_debian_testing.sh)
  if [[ -n ${MULCIBER_FIXTURES:-} ]]; then
    ctest_prefix+=(env MULCIBER_FIXTURES=/shared/fixtures)
  fi
  check "debian-testing build" "${ctest_prefix[@]}" bash -c \
    "cmake -S . -B build-testing -G Ninja && cmake --build build-testing -j $jobs"
  ctest_root=/mulciber
  run_ctest debian-testing build-testing -L unit
  ctest_prefix=() ctest_root=$root
}

echo "==> packages and drivers"
if ! tools/install_dependencies.sh --tests "${yes[@]}"; then
  # The build says what it misses; only what the tests alone use is skipped by name.
  tools/install_dependencies.sh "${yes[@]}"
fi
tools/drivers/software.sh

if [[ -n ${MULCIBER_FIXTURES:-} ]]; then
  echo "fixtures: $MULCIBER_FIXTURES"
else
  skip "tests that need the reference models: there is no ../shared/fixtures"
fi
build_failed=0
part build build build all -DCMAKE_BUILD_TYPE=Release -DMULCIBER_TESTS=ON || build_failed=1
if ((!build_failed)); then
  for name in "${all_parts[@]}"; do
    function=${name,,}
    part "$name" "run_${function//-/_}" || true
  done
fi

echo "==> times"
printf '%s\n' "${timings[@]}"
printf '%5d s  in all\n' "$SECONDS"
if ((${#failures[@]} > 0)); then
  echo "==> failed (logs in build/test-logs)"
  printf '  %s\n' "${failures[@]}"
fi
if ((${#skips[@]} > 0)); then
  echo "==> skipped"
  printf '  %s\n' "${skips[@]}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
