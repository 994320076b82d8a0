# How parts report, for test.sh to source: counts, logs, what failed and what was skipped.
passed=0 failed=0 skipped=0
timings=() failures=() skips=() left_out=()

# Parts report through these four; names of what failed, was skipped or left out are repeated at the end.
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); failures+=("$1"); echo "FAILED: $1"; }
skip() { skipped=$((skipped + 1)); skips+=("$1"); echo "skipped: $1"; }
leave_out() { left_out+=("$1"); }

# check NAME COMMAND...: one test that passes when the command does; 77 means skipped.
check() {
  local name=$1 status=0
  shift
  "$@" >"$(log_of "$name")" 2>&1 </dev/null || status=$?
  judge "$name" "$status"
}
log_of() { echo "$logs/${1//[^A-Za-z0-9]/-}.log"; }
judge() {
  case $2 in
    0) pass ;;
    77) skip "$1: $(tail -n 1 "$(log_of "$1")")" ;;
    *) fail "$1"; tail -n 25 "$(log_of "$1")" ;;
  esac
}

# begin NAME COMMAND...: a check that runs beside others, as many at once as there are cores. settle waits for all.
begun=() begun_names=()
begin() {
  local name=$1
  shift
  while ((${#begun[@]} >= jobs)); do settle_first; done
  (set +e && "$@") >"$(log_of "$name")" 2>&1 </dev/null &
  begun+=($!) begun_names+=("$name")
}
settle_first() {
  local status=0
  wait "${begun[0]}" || status=$?
  judge "${begun_names[0]}" "$status"
  begun=("${begun[@]:1}") begun_names=("${begun_names[@]:1}")
}
settle() { while ((${#begun[@]} > 0)); do settle_first; done; }

# minutes_are_left N: whether what takes N minutes ends within --minutes.
minutes_are_left() { ((minutes == 0 || SECONDS + 60 * $1 <= 60 * minutes)); }

# part NAME FUNCTION [ARGUMENT...]: runs it if it was asked for and not too late, and notes the time.
part() {
  local name=$1 start=$SECONDS status=0
  shift
  [[ " ${parts[*]} build " == *" $name "* ]] || return 0
  if ((minutes > 0 && start >= 60 * minutes)); then
    skip "$name: $minutes minutes had passed"
    return 0
  fi
  echo "==> $name"
  "$@" || status=$?
  timings+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
  return "$status"
}

print_list() {
  local heading=$1
  shift
  (($# > 0)) || return 0
  echo "==> $heading"
  printf '  %s\n' "$@"
}

# The last line is "N passed, N failed, N skipped"; fails where something did.
summary() {
  echo "==> times"
  printf '%s\n' "${timings[@]}"
  printf '%5d s  in all\n' "$SECONDS"
  print_list "failed (logs in build/test-logs)" "${failures[@]}"
  print_list "skipped" "${skips[@]}"
  print_list "left out, which ./test.sh --all runs" "${left_out[@]}"
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0))
}
