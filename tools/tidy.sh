#!/usr/bin/env bash
# Runs clang-tidy 14 with the checks of .clang-tidy over the C++ files of rooms, apps and examples/graphics, and
# prints each finding once; fails where there is one. Exit code 77 where it is not installed.
#   tools/tidy.sh [--recent] [--jobs N] [FILE...]
#   --recent   what the last five commits changed, and an eighth of the rest, another one with each commit
set -euo pipefail

cd "$(dirname "$0")/.."
# The rooms as the build lists them.
read -r -a rooms < <(sed -n 's/^set(MULCIBER_ROOMS \(.*\))$/\1 apps examples\/graphics/p' CMakeLists.txt)
headers="/(include/mulciber|$(tr ' ' '|' <<<"${rooms[*]}")|shaders)/[^.]*\.h\$"
jobs=$(nproc) recent=0 files=()
while (($# > 0)); do
  case $1 in
    --recent) recent=1 ;;
    --jobs) jobs=${2:?}; shift ;;
    -*) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done

tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
# Other versions have other findings.
if [[ -z $tidy ]] || ! "$tidy" --version | grep -q 'version 14\.'; then
  echo "clang-tidy 14 is not installed"
  exit 77
fi

all_files() { find "${rooms[@]}" -name '*.cpp' | LC_ALL=C sort; }

# A changed header is checked through the file of its name. Without a history: all files.
recent_files() {
  local base count
  if ! base=$(git rev-parse --verify --quiet HEAD~5) || ! count=$(git rev-list --count HEAD); then
    all_files
    return
  fi
  { git diff --name-only "$base" -- "${rooms[@]}" | sed -n 's/\.\(cpp\|h\)$/.cpp/p' | grep -Fxf <(all_files) || true
    all_files | awk -v turn=$((count % 8)) 'NR % 8 == turn'
  } | LC_ALL=C sort -u
}

if ((${#files[@]} == 0 && recent)); then
  mapfile -t files < <(recent_files)
elif ((${#files[@]} == 0)); then
  mapfile -t files < <(all_files)
fi

# Configured but not built: clang cannot read GCC's precompiled headers, and CMake writes the files that sources
# include.
cmake -S . -B build-tidy -G Ninja -DMULCIBER_UNITY=OFF -DMULCIBER_TESTS=OFF >/dev/null
# The viewer's shaders are headers too.
if grep -q mulciber_viewer_shaders build-tidy/build.ninja; then
  cmake --build build-tidy --target mulciber_viewer_shaders >/dev/null
fi
# shellcheck disable=SC2016 # expanded by the shell of each file
one='found=$("$0" -p build-tidy --quiet --header-filter="$1" "$2" 2>&1) || { printf "%s\n" "$found"; exit 1; }'
# A finding in a header is reported for every file that includes it.
# shellcheck disable=SC2016 # awk's
once='BEGIN { shown = 1 }
  /^[0-9]+ warnings?( and [0-9]+ errors?)? generated\.$/ { next }
  index($0, root "/") == 1 { $0 = substr($0, length(root) + 2) }
  /^[^ :]+:[0-9]+:[0-9]+: (error|warning): / { shown = !said[$0]++ }
  shown'
status=0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -c "$one" "$tidy" "$headers" | awk -v root="$PWD" "$once" || status=1
if ((status)); then
  echo "clang-tidy found something in ${#files[@]} files"
else
  echo "clang-tidy found nothing in ${#files[@]} files"
fi
exit "$status"
