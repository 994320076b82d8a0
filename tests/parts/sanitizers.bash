# Sanitizers and fuzzing, for test.sh to source.

# sanitized_build TARGET...: one build for both. clang has libFuzzer, and compiles instrumented code in two thirds of GCC's
# time. Shaders are not what sanitizers look at: the pinned ones need no compiling.
sanitized_build() {
  local compiler=()
  if command -v clang++ >/dev/null; then
    compiler=(-DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DMULCIBER_FUZZ=ON)
  fi
  build build-sanitizers "$*" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULCIBER_SANITIZE=ON -DMULCIBER_SHADERS=pinned \
    "${compiler[@]}"
}

# Rows over their cases, recorded vectors and reference values tell of shaders; what the CPU does for them, layers and small
# models do as well.
run_sanitizers() {
  sanitized_build mulciber_tests || return 0
  MULCIBER_CASE_STEP=80 MULCIBER_SHARE=2,3 LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0 \
  UBSAN_OPTIONS=print_stacktrace=1 \
    on_driver lvp run_ctest sanitizers build-sanitizers -L unit -E "^(conformance_(attention|block|matmul|rowwise)|decoder_reference|folded_appends|vectors)_test$"
}

# Two threads, a hundred translations each. Not of --all: a build of its own for one program. What drivers do among themselves
# is not looked at.
run_threads() {
  build build-threads models_tests -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULCIBER_SANITIZE=thread || return 0
  MULCIBER_THREAD_ROUNDS=${MULCIBER_THREAD_ROUNDS:-100} TSAN_OPTIONS=suppressions=$root/tests/tsan.supp \
    on_driver lvp check "two threads under ThreadSanitizer" build-threads/tests/models_tests \
    --filenames-as-tags "[#threads_test]"
}

# fuzz_targets [TARGET...]: those of the C interface run on lavapipe, and are left out without it.
fuzz_targets() {
  local command=(check "fuzz targets" tests/fuzz/run.sh build-sanitizers "${MULCIBER_FUZZ_SECONDS:-20}" "$@")
  if [[ -e $MULCIBER_DRIVERS/lvp.json ]]; then
    on_driver lvp "${command[@]}"
  else
    "${command[@]}"
  fi
}
# Readers of foreign files against libFuzzer, each for 20 seconds, and calls of the C interface for 45, two at a time.
run_fuzz() {
  if ! command -v clang++ >/dev/null; then
    skip "fuzz: the package clang is not installed"
    return
  fi
  sanitized_build mulciber_fuzz || return 0
  fuzz_targets
}
