#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy over C++ sources of the rooms; exit code 77 where it is not installed.
#   tools/tidy.sh [--all] [--jobs N]
#   --all   every source; otherwise those that differ from the last commit but MULCIBER_TIDY_COMMITS (10)
set -euo pipefail

cd "$(dirname "$0")/.."
rooms=(base runtime ops layers checkpoints text models conformance apps)
all=0 jobs=$(nproc)
while (($# > 0)); do
  case $1 in
    --all) all=1 ;;
    --jobs) jobs=$2; shift ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done

tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [[ -z $tidy ]] || ! command -v clang++ >/dev/null; then
  echo "clang-tidy and clang are not installed"
  exit 77
fi
patterns=("${rooms[@]/%//*.cpp}")
if ((all)); then
  mapfile -t files < <(git ls-files "${patterns[@]}")
else
  base=$(git rev-parse --verify --quiet "HEAD~${MULCIBER_TIDY_COMMITS:-10}" ||
    git rev-list --max-parents=0 HEAD | tail -n 1)
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- "${patterns[@]}")
fi
# A folder of its own: clang-tidy reads neither GCC's precompiled headers nor its flags.
cmake -S . -B build-tidy -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
  -DMULCIBER_PRECOMPILE=OFF -DMULCIBER_TESTS=OFF >/dev/null
echo "clang-tidy: ${#files[@]} files"
((${#files[@]} == 0)) || printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$jobs" "$tidy" -p build-tidy --quiet 2>/dev/null
