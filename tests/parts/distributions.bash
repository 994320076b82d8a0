# The newest distribution, for test.sh to source.

# Where newcomers are is ahead of this machine: the command is compiled and linked with the compiler and the libraries of
# Debian testing. What else tools/distributions.sh does takes an hour.
run_distributions() {
  if ! minutes_are_left 10; then
    leave_out "distributions: the command with Debian testing, which takes up to ten minutes"
    return
  fi
  check "distributions: the command with Debian testing" tools/distributions.sh --build-only debian-testing
}
