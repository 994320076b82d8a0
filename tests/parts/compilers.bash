# The compilers of GPUs that are not there, for test.sh to source.

run_compilers() {
  local folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
  if [[ ! -e $folder/opt/stubs/libvulkan_panfrost.so ]]; then
    skip "compilers: tools/drivers/stubs.sh has not run here"
    return
  fi
  if ((EUID != 0)); then
    skip "compilers: the folder of Debian testing needs root"
    return
  fi
  check "compilers: build in Debian testing" tools/drivers/in_debian_testing.sh bash -c \
    "cmake -S . -B build-testing -G Ninja && cmake --build build-testing -j $jobs --target mulciber"
  check "compilers: rows on 15 devices" tools/drivers/compilers.py --check
}
