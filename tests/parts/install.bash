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
# The library alone, without what options leave out: few libraries, and a program that links it in both ways.
left_out() {
  local stage=$root/build/stage-left-out made=build/consumer-left-out library program
  rm -rf "$stage" "$made"
  cmake -S . -B build-left-out -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULCIBER_TESTS=OFF -DMULCIBER_PROGRAMS=OFF \
    -DMULCIBER_SHADERS=pinned -DMULCIBER_STATIC=ON -DMULCIBER_AUDIO=OFF -DMULCIBER_IMAGES=OFF -DMULCIBER_SELF_TEST=OFF &&
    cmake --build build-left-out -j "$jobs" &&
    cmake --install build-left-out --strip --prefix "$stage" &&
    cmake -S tests/install/left_out -B "$made" -G Ninja -DCMAKE_PREFIX_PATH="$stage" &&
    cmake --build "$made" || return 1
  library=$(echo "$stage"/lib*/libmulciber.so)
  tests/install/exported_symbols.sh "$library" || return 1
  ls -l "$stage"/lib*/libmulciber.*
  readelf -d "$library" "$made/left_out_static" | grep NEEDED
  if readelf -d "$library" | grep -E 'NEEDED.*(sndfile|samplerate|png|jpeg|webp)'; then return 1; fi
  if readelf -d "$made/left_out_static" | grep 'NEEDED.*mulciber'; then return 1; fi
  for program in left_out_mulciber left_out_static; do "$made/$program" docs/images/viewer.png || return 1; done
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
  if minutes_are_left 5; then
    check "a library without its optional parts" left_out
  else
    leave_out "install: a library without its optional parts, whose build takes minutes"
  fi
}
