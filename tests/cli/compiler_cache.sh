#!/usr/bin/env bash
# A clone in another folder compiles nothing that the compiler cache holds from the first one: two rooms, the second of
# them with several files compiled as one, built in two folders with a cache of their own.
set -euo pipefail
for tool in ccache cmake ninja; do
  if ! command -v "$tool" >/dev/null; then
    echo "there is no $tool here"
    exit 77
  fi
done
if ! git -C "$MULCIBER_SOURCE" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  echo "not a git checkout"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset CCACHE_DISABLE CCACHE_BASEDIR CCACHE_NOHASHDIR
export CCACHE_DIR=$PWD/cache

# statistics NAME...: their sum.
statistics() {
  local names
  names=$(printf '|%s' "$@")
  ccache --print-stats | awk -v names="^(${names:1})\$" '$1 ~ names { sum += $2 } END { print sum + 0 }'
}
build() {
  mkdir -p "$1"
  git -C "$MULCIBER_SOURCE" ls-files -z --cached --others --exclude-standard |
    (cd "$MULCIBER_SOURCE" && tar --create --null --files-from=- --ignore-failed-read 2>/dev/null) |
    tar --extract --directory "$1"
  cmake -S "$1" -B "$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULCIBER_TESTS=OFF -DMULCIBER_SHADERS=pinned >log
  cmake --build "$1/build" --target mulciber_audio mulciber_layers >>log
}

build first
compiled=$(statistics cache_miss)
if ((compiled < 5)); then
  echo "only $compiled files were compiled in the first folder: the cache is not in use"
  exit 1
fi
ccache --zero-stats >/dev/null
build second/folder
hits=$(statistics direct_cache_hit preprocessed_cache_hit)
missed=$(statistics cache_miss)
if ((hits != compiled || missed > 0)); then
  echo "$hits of $compiled files came from the cache, $missed were compiled anew"
  exit 1
fi
echo "1 passed, 0 failed, 0 skipped"
