# Sanitizers and fuzzing, for test.sh to source.

# Mutants and barriers taken out say what cases catch, and drive the host as other tests do. Shaders are not what
# sanitizers look at: the pinned ones need no compiling.
run_sanitizers() {
  build build-sanitize mulciber_tests -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULCIBER_SANITIZE=ON \
    -DMULCIBER_SHADERS=pinned || return 0
  MULCIBER_CASE_STEP=80 LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0 \
  UBSAN_OPTIONS=print_stacktrace=1 \
    on_driver lvp run_ctest sanitizers build-sanitize -L unit -E "^(barriers|mutants)_test$"
}

# Two threads for a minute each way. Not of --all: a build of its own for one program. What drivers do among themselves
# is not looked at.
run_threads() {
  build build-threads threads_test -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULCIBER_SANITIZE=thread || return 0
  MULCIBER_THREAD_SECONDS=${MULCIBER_THREAD_SECONDS:-60} TSAN_OPTIONS=suppressions=$root/tests/tsan.supp \
    on_driver lvp check "two threads under ThreadSanitizer" build-threads/tests/threads_test
}

# Readers of foreign files against libFuzzer, each for half a minute, two at a time.
run_fuzz() {
  if ! command -v clang++ >/dev/null; then
    skip "fuzz: the package clang is not installed"
    return
  fi
  build build-fuzz mulciber_fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
    -DMULCIBER_TESTS=OFF -DMULCIBER_FUZZ=ON || return 0
  check "fuzz targets" tests/fuzz/run.sh build-fuzz "${MULCIBER_FUZZ_SECONDS:-30}"
}
