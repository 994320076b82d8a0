# clang-tidy, for test.sh to source.

# All files take nine minutes of two cores: what changed of late and a part of the rest is what a run can afford.
run_tidy() {
  check "clang-tidy" tools/tidy.sh --recent --jobs "$jobs"
}
