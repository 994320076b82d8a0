# An installed library and its size, for test.sh to source.

consumer() {
  local stage=$root/build/stage
  rm -rf "$stage" build/consumer
  cmake --install build --strip --prefix "$stage" &&
    cmake -S tests/install -B build/consumer -G Ninja -DCMAKE_PREFIX_PATH="$stage" &&
    cmake --build build/consumer &&
    [[ -n $(build/consumer/consumer "$stage/share/mulciber/en-de") ]] &&
    [[ $(build/consumer/attention | head -n 1) == '1 0 0 0 ' ]] || return 1
  # A program catches what the library throws.
  local status=0
  build/consumer/consumer "$stage/no-such-model" || status=$?
  ((status == 1))
}
installed_size() {
  local bytes
  bytes=$(find build/stage/bin build/stage/lib* -type f \( -name mulciber -o -name '*.so*' \) \
    -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
  echo "installed command and library: $bytes bytes, limit 14000000"
  ((bytes > 0 && bytes < 14000000))
}
run_install() {
  on_driver lvp check "find_package consumer" consumer
  check "pkg-config of a moved library" tests/install/pkg_config.sh build/stage build/pkg-config
  check "exported symbols" bash -c 'tests/install/exported_symbols.sh build/stage/lib*/libmulciber.so'
  check "installed size under 14 MB" installed_size
  tail -n 1 "$logs/installed-size-under-14-MB.log"
}
