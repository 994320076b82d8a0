#!/usr/bin/env bash
# Lays software Vulkan drivers side by side in ${MULCIBER_DRIVERS:-~/.cache/vulkan-drivers}, one ICD
# file each, for VK_DRIVER_FILES:
#   lvp.json            lavapipe of this distribution (package mesa-vulkan-drivers)
#   lvp-backports.json  lavapipe of Debian's backports, a newer Mesa, unpacked and not installed
#   swiftshader.json    SwiftShader, unpacked from Debian's package of Chromium
# Drivers that are not available here are named and left out. Idempotent; no root needed.
set -euo pipefail

drivers=${MULCIBER_DRIVERS:-$HOME/.cache/vulkan-drivers}
mkdir -p "$drivers"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
say() { echo "drivers: $*"; }

# write_icd NAME LIBRARY API_VERSION
write_icd() {
  printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "%s"}}\n' \
    "$2" "$3" >"$drivers/$1.json"
}

# usable NAME: whether the library of an ICD file finds everything that it links to.
usable() {
  local library
  library=$(sed -n 's/.*"library_path": *"\([^"]*\)".*/\1/p' "$drivers/$1.json" 2>/dev/null)
  [[ -n $library && -e $library && $(ldd "$library") != *"not found"* ]]
}

# extract PACKAGE FILE TARGET [APT_OPTION...]: takes one file out of a package without installing
# it.
extract() {
  local package=$1 file=$2 target=$3 found
  shift 3
  mkdir -p "$scratch/$package"
  (cd "$scratch/$package" && apt-get "$@" download "$package" >/dev/null 2>&1) || return 1
  dpkg-deb -x "$scratch/$package"/*.deb "$scratch/$package/files"
  found=$(find "$scratch/$package/files" -name "$file" -print -quit)
  [[ -n $found ]] || return 1
  mkdir -p "$(dirname "$target")"
  cp "$found" "$target"
}

lavapipe() {
  local icd
  for icd in /usr/share/vulkan/icd.d/lvp_icd.*json; do
    [[ -e $icd ]] || continue
    ln -sf "$icd" "$drivers/lvp.json"
    say "lvp.json: lavapipe of this distribution"
    return
  done
  rm -f "$drivers/lvp.json"
  say "no lavapipe: install the package mesa-vulkan-drivers"
}

swiftshader() {
  local library=$drivers/libvk_swiftshader.so
  if [[ ! -e $library ]]; then
    if ! command -v apt-get >/dev/null || ! grep -qi '^ID=debian' /etc/os-release; then
      say "no SwiftShader: only Debian packages it (inside chromium)"
      return
    fi
    say "fetching SwiftShader from the package chromium"
    if ! extract chromium libvk_swiftshader.so "$library" &&
       ! extract chromium-common libvk_swiftshader.so "$library"; then
      say "no SwiftShader: the packages chromium and chromium-common cannot be fetched"
      return
    fi
  fi
  write_icd swiftshader "$library" 1.3.0
  if usable swiftshader; then
    say "swiftshader.json: SwiftShader"
  else
    rm -f "$drivers/swiftshader.json"
    say "no SwiftShader: a library that it needs is missing"
  fi
}

backports() {
  local library=$drivers/mesa25/libvulkan_lvp.so codename mirror
  if [[ ! -e $library ]]; then
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mirror=$("$(dirname "$0")/debian_mirror.sh" || true)
    if [[ -z $mirror || -z $codename ]]; then
      say "no lavapipe of backports: there are no Debian package sources here"
      return
    fi
    say "fetching lavapipe from $codename-backports"
    mkdir -p "$scratch/lists/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $codename-backports main" \
      >"$scratch/backports.list"
    # Separate lists, so that the system's package sources stay unchanged.
    local options=(-o "Dir::Etc::sourcelist=$scratch/backports.list" -o Dir::Etc::sourceparts=-
      -o "Dir::State::Lists=$scratch/lists" -o APT::Sandbox::User=root)
    if ! apt-get "${options[@]}" update >/dev/null 2>&1 ||
       ! extract mesa-vulkan-drivers libvulkan_lvp.so "$library" "${options[@]}" \
         -t "$codename-backports"; then
      say "no lavapipe of backports: it cannot be fetched"
      return
    fi
  fi
  write_icd lvp-backports "$library" 1.4.305
  if usable lvp-backports; then
    say "lvp-backports.json: lavapipe of backports"
  else
    rm -f "$drivers/lvp-backports.json"
    say "no lavapipe of backports: a library that it needs is missing"
  fi
}

lavapipe
swiftshader
backports
say "use one with VK_DRIVER_FILES=$drivers/NAME.json"
