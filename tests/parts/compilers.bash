# The compilers of GPUs that are not there, for test.sh to source.

# This machine's own build, whose glslang and headers may be too old for them, selects the rows for matrix units.
matrix_rows() {
  local device said
  for device in 7900xtx rtx4090; do
    said=$(tools/drivers/on_stub.sh "$device" build/mulciber devices -v)
    if ! grep -q 'f32, f16: matmul_coopmat_' <<<"$said"; then
      grep -E 'shaders|coopmat' <<<"$said"
      echo "$device takes no row for matrix units"
      return 1
    fi
  done
}

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
  # The folder may be older than what the build needs.
  if ! tools/drivers/debian-testing.sh; then
    skip "compilers: the folder of Debian testing cannot be brought up to date"
    return
  fi
  check "compilers: build in Debian testing" tools/drivers/in_debian_testing.sh bash -c \
    "cmake -S . -B build-testing -G Ninja && cmake --build build-testing -j $jobs --target mulciber"
  check "compilers: rows on 15 devices" tools/drivers/compilers.py --check
  check "compilers: matrix units with the shaders of this build" matrix_rows
  check "compilers: pinned shaders are those of the sources" tools/pin_shaders.py --check
}
