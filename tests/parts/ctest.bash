# Tests of a build folder on a Vulkan driver, for test.sh to source.

# run_ctest CONFIGURATION BUILD_FOLDER CTEST_ARGUMENT...: adds up test cases, not programs. A
# program that fails without a failed case of its own (a crash, a leak) counts as one failure.
# ctest_prefix runs it elsewhere, where this checkout is seen at ctest_root.
# ctest_slice takes a part of the tests: (-I FIRST,,STRIDE).
ctest_prefix=() ctest_root=$root ctest_slice=()
run_ctest() {
  local configuration=$1 build=$2 counts log p f s with_failures=0 programs_failed=0
  shift 2
  if ((${#ctest_slice[@]} > 0)); then configuration+=-${ctest_slice[1]%%,*}; fi
  counts=$logs/$configuration.counts log=$logs/$configuration.log
  rm -f "$counts" "$log.xml"
  MULCIBER_TEST_SUMMARY=$ctest_root/build/test-logs/$configuration.counts \
    "${ctest_prefix[@]}" ctest --test-dir "$ctest_root/$build" -j "$jobs" --output-on-failure \
    --test-output-size-passed 65536 --no-tests=error --output-junit "$ctest_root/build/test-logs/$configuration.log.xml" "${ctest_slice[@]}" "$@" \
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
  slowest "$log.xml"
}

# slowest JUNIT_FILE: the three tests that took most of the time.
slowest() {
  sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 s \1/p' "$1" | sort -rn | head -n 3 |
    while IFS= read -r line; do echo "slowest: $line"; done
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
