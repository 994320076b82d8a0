#!/usr/bin/env bash
# Runs a Vulkan program on a stub device: the real driver of an absent GPU, whose kernel calls a
# preloaded library answers. Pipelines are compiled to machine code and limits are real, but
# dispatches do nothing. It runs in the folder of debian-testing.sh and stubs.sh, with this checkout
# as /mulciber and build-testing on the PATH. A program in build/ comes from this machine, with
# those of its libraries that the folder lacks.
#   tools/drivers/on_stub.sh --list
#   tools/drivers/on_stub.sh 7900xtx mulciber kernels --kernel 'matmul*'
#   tools/drivers/on_stub.sh 7900xtx build/mulciber devices -v
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
if [[ ${1:-} == --list ]]; then
  grep -v '^#' "$here/stub_devices.txt" | awk -F' *[|] *' '{printf "%-12s %s\n", $1, $2}'
  exit
fi
(($# > 1)) || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
name=$1
shift
line=$(grep -v '^#' "$here/stub_devices.txt" | awk -F' *[|] *' -v name="$name" '$1 == name')
[[ -n $line ]] || { echo "on_stub: no device $name; --list names them" >&2; exit 2; }
IFS='|' read -r _ _ shim driver variables <<<"$line"
shim=${shim// /} driver=${driver// /}

# first FILE FOLDER...: the path of a file in the first folder that has it.
first() {
  local file=$1 place
  shift
  for place; do
    if [[ -e $folder/$place/$file ]]; then echo "/$place/$file" && return; fi
  done
}
library=$(first "lib${shim}_noop_drm_shim.so" opt/stubs usr/lib/x86_64-linux-gnu)
icd=$(first "${driver}_icd.json" opt/stubs usr/share/vulkan/icd.d)
[[ -n $library && -n $icd ]] ||
  { echo "on_stub: no shim or driver for $name in $folder; run tools/drivers/stubs.sh" >&2; exit 1; }

libraries=()
if [[ $1 == build/* ]]; then
  checkout=$here/../..
  mkdir -p "$checkout/build/libraries"
  for needed in $(ldd "$checkout/$1" | awk '$2 == "=>" && $3 ~ "/" { print $3 }'); do
    [[ -e $folder/usr/lib/x86_64-linux-gnu/${needed##*/} ]] || cp -L "$needed" "$checkout/build/libraries"
  done
  libraries=(LD_LIBRARY_PATH=/mulciber/build/libraries)
fi

# Words, not one argument: each is a separate variable. A value may be a glob.
set -f
# shellcheck disable=SC2086
exec "$here/in_debian_testing.sh" env "PATH=/mulciber/build-testing:$PATH" XDG_RUNTIME_DIR=/tmp \
  MESA_SHADER_CACHE_DISABLE=1 VK_DRIVER_FILES="$icd" $variables "${libraries[@]}" LD_PRELOAD="$library" "$@"
