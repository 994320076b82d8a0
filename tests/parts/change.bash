# What a change can have touched, and a part of the rest by the day, for test.sh to source.

# touched_rows OP...: rows of these ops where lavapipe as it is does not take them: at most 200 cases a driver.
touched_rows() {
  local filters=() op cases parts
  for op in "$@"; do filters+=(--filter "mulciber.$op.*"); done
  cases=$(build/mulciber conform --mustpass "${filters[@]}" --list | wc -l)
  parts=$(((cases + 199) / 200))
  echo "$# ops, $cases cases, one in $parts of them on each driver"
  conform_part swiftshader "touched rows on SwiftShader" 0,"$parts" touched-swiftshader --mustpass "${filters[@]}"
  conform_part lvp "touched rows under android-2021" 0,"$parts" touched-android --mustpass "${filters[@]}" --limits android-2021
  conform_part lvp "touched rows under storage=1M" 0,"$parts" touched-storage --mustpass "${filters[@]}" --limits storage=1M
}

# touched_tests REGEX...: tests and scripts whose names begin so, on SwiftShader, but for those that are slow there.
touched_tests() {
  local regex
  regex="^($(IFS='|' && echo "$*"))"
  MULCIBER_CASE_STEP=32 MULCIBER_SHARE=0,3 on_driver swiftshader run_ctest touched build -R "$regex" \
    -E "$slow_on_swiftshader"
}

# touched_fuzz TARGET...: as many seconds each as in --all.
touched_fuzz() {
  if ! command -v clang++ >/dev/null; then
    skip "fuzz: the package clang is not installed"
    return
  fi
  local build_minutes=10
  if [[ " $* " == *" c_interface "* ]]; then build_minutes=20; fi  # it links every room
  if ! minutes_are_left "$build_minutes"; then
    leave_out "touched: fuzz targets $*, whose build takes minutes"
    return
  fi
  sanitized_build "${@/#/fuzz_}" || return 0
  fuzz_targets "$@"
}

# The commit of .ci/base is the last one at which ./test.sh --all passed.
run_touched() {
  local lines line
  if ! lines=$(tests/parts/touched.py 2>&1); then
    echo "$lines" | tail -n 1
    fail "touched: what differs from the commit that .ci/base names cannot be told"
    return
  fi
  echo "since $(cut -c1-12 .ci/base): ${lines:-nothing beyond what the other parts show}"
  while read -r -a line; do
    case ${line[0]:-} in
      rows | tests | fuzz) "touched_${line[0]}" "${line[@]:1}" ;;
    esac
  done <<<"$lines"
  # Compiled together, files lend each other their headers; clang-tidy reads each alone.
  if minutes_are_left 6; then run_tidy; else leave_out "touched: clang-tidy, which takes minutes"; fi
}

# One of these by the day, in eight slices: as many as begin within the twenty minutes that a proof shall take.
turns=(swiftshader validation sanitizers android-2021 storage-1M)
run_turn() {
  local turn=${MULCIBER_TURN:-${turns[$(date +%s) / 86400 % ${#turns[@]}]}} slice
  echo "the turn of $turn"
  if ((SECONDS > 19 * 60)); then
    leave_out "$turn: the proof takes twenty minutes without it"
    return
  fi
  case $turn in
    sanitizers)
      if ! minutes_are_left 15; then
        leave_out "sanitizers: their build takes up to 15 minutes"
        return
      fi
      sanitized_build mulciber_tests || return 0 ;;
  esac
  for slice in 1 2 3 4 5 6 7 8; do
    if ((SECONDS > 19 * 60)) || ! minutes_are_left 2; then
      leave_out "$turn: slices $slice to 8 of 8, for want of minutes"
      return
    fi
    ctest_slice=(-I "$slice,,8")
    "run_${turn//-/_}"
    ctest_slice=()
  done
}
