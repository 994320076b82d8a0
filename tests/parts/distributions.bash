# The newest distribution, for test.sh to source.

# Where newcomers are is ahead of this machine: the command is compiled and linked with the compiler and the libraries of
# Debian testing. What else tools/distributions.sh does takes an hour.
run_distributions() {
  check "distributions: the command with Debian testing" tools/distributions.sh --build-only debian-testing
}
