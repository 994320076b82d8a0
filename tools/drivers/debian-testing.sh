#!/usr/bin/env bash
# Sets up a folder with Debian testing in it, for a Mesa whose lavapipe has cooperative matrices and
# a glslang that compiles them: ${MULCIBER_DEBIAN_TESTING:-~/.cache/debian-testing}. Needs root, the
# package debootstrap and about 1.5 GB; about 3 minutes the first time, idempotent.
# in_debian_testing.sh runs commands in it.
set -euo pipefail

folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/debian_folder.bash
source "$here/../debian_folder.bash"
packages=(mesa-vulkan-drivers vulkan-tools g++ cmake ninja-build pkg-config libvulkan-dev
  glslang-tools spirv-tools catch2 nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
  libfmt-dev libglm-dev libpcre2-dev libutf8proc-dev libzstd-dev zstd)
say() { echo "debian-testing: $*"; }
fail() { say "$*"; exit 1; }

why_not=$(debian_why_not)
[[ -z $why_not ]] || fail "$why_not"
if [[ ! -x $folder/usr/bin/apt-get ]]; then
  say "unpacking Debian testing into $folder"
  debian_unpack testing "$folder" || fail "debootstrap failed (log: $folder.log)"
fi
debian_install "$folder" "${packages[@]}" || fail "apt-get failed inside $folder (log: $folder.log)"
"$here/in_debian_testing.sh" bash -c \
  'vulkaninfo --summary 2>/dev/null | sed -n "s/.*driverInfo *= /debian-testing: lavapipe, /p"'
