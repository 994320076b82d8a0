#!/usr/bin/env bash
# Sets up a folder with Debian testing in it, for a Mesa whose lavapipe has cooperative matrices and
# a glslang that compiles them: ${MULCIBER_DEBIAN_TESTING:-~/.cache/debian-testing}. Needs root, the
# package debootstrap and about 1.5 GB; about 3 minutes the first time, idempotent.
# in_debian_testing.sh runs commands in it.
set -euo pipefail

folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
here=$(cd "$(dirname "$0")" && pwd)
packages=(mesa-vulkan-drivers vulkan-tools g++ cmake ninja-build pkg-config libvulkan-dev
  glslang-tools spirv-tools catch2 nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
  libfmt-dev libglm-dev libpcre2-dev libutf8proc-dev libzstd-dev zstd)
say() { echo "debian-testing: $*"; }
fail() { say "$*"; exit 1; }

((EUID == 0)) || fail "making a Debian folder needs root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [[ ! -x $folder/usr/bin/apt-get ]]; then
  mirror=$("$here/debian_mirror.sh") ||
    fail "no Debian mirror among this machine's apt sources; set MULCIBER_DEBIAN_MIRROR"
  command -v debootstrap >/dev/null ||
    apt-get install -y --no-install-recommends debootstrap >"$log" 2>&1 ||
    { tail -n 3 "$log"; fail "the package debootstrap cannot be installed"; }
  say "unpacking Debian testing into $folder"
  mkdir -p "$folder"
  debootstrap --variant=minbase testing "$folder" "$mirror" >"$log" 2>&1 ||
    { tail -n 3 "$log"; fail "debootstrap failed; remove $folder before the next try"; }
fi

missing=()
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016 # dpkg-query expands its own fields
  status=$(chroot "$folder" dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null |
    sort -u) || true
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  say "installing ${missing[*]}"
  "$here/in_debian_testing.sh" bash -c \
    'export DEBIAN_FRONTEND=noninteractive
     # A mirror that lags behind is good enough for a folder of tests.
     apt-get -o Acquire::Check-Valid-Until=false update || true
     apt-get install -y --no-install-recommends "$@"' - "${missing[@]}" \
    >"$log" 2>&1 || { tail -n 3 "$log"; fail "apt-get failed inside $folder"; }
fi
"$here/in_debian_testing.sh" bash -c \
  'vulkaninfo --summary 2>/dev/null | sed -n "s/.*driverInfo *= /debian-testing: lavapipe, /p"'
