# The build, for test.sh to source.

# build FOLDER "TARGET..." CMAKE_ARGUMENT...
build() {
  local folder=$1 targets log=$logs/$1.log
  read -r -a targets <<<"$2"
  shift 2
  if ! { cmake -S . -B "$folder" -G Ninja "$@" &&
    cmake --build "$folder" -j "$jobs" --target "${targets[@]}"; } \
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

# The proof needs the command and a third of the test programs.
run_build() {
  local target=all
  if [[ $size == proof ]]; then target=mulciber_proof; fi
  build build "$target" -DCMAKE_BUILD_TYPE=Release -DMULCIBER_TESTS=ON
}
