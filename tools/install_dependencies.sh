#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that building and running Mulciber needs, and only those
# that are missing; with --tests also what the tests use. Asks before it calls sudo, except with
# --yes; needs no network when everything is there.
#   tools/install_dependencies.sh [--tests] [--yes]
set -euo pipefail

packages=(g++ cmake ninja-build ccache pkg-config libvulkan-dev libvulkan1
  mesa-vulkan-drivers glslang-tools spirv-tools libfmt-dev libglm-dev nlohmann-json3-dev libcli11-dev
  libpcre2-dev libutf8proc-dev libzstd-dev zstd libcurl4-openssl-dev nettle-dev
  libsndfile1-dev libsamplerate0-dev zlib1g-dev libpng-dev libjpeg-dev libwebp-dev
  libcpp-httplib-dev)
test_packages=(catch2 vulkan-validationlayers vulkan-tools shellcheck git python3 clang lld clang-format clang-tidy
  libsdl2-dev xvfb xauth libglfw3-dev libimgui-dev fonts-dejavu-core python3-jsonschema)
yes=0
for argument in "$@"; do
  case $argument in
    --tests) packages+=("${test_packages[@]}") ;;
    --yes) yes=1 ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install_dependencies: there is no apt here, so this script cannot install anything."
  echo "Install the equivalents of these Debian packages, then build as docs/internals/building.md says:"
  printf '  %s\n' "${packages[*]}"
  for tool in c++ cmake ninja; do
    command -v "$tool" >/dev/null || { echo "Missing at least: $tool"; exit 1; }
  done
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | sort -u) || true
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "install_dependencies: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "install_dependencies: missing: ${missing[*]}"
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "There is no sudo. Run this as root, then start again:"
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
  if ((!yes)); then
    if ! read -r -p "Install them with sudo apt-get? [y/N] " answer || [[ $answer != [yY]* ]]; then
      echo "Nothing installed. With --yes nothing is asked."
      exit 1
    fi
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1
}
# The package lists may be old, or missing in a container image: then fetch them and try again.
if ! install; then
  "${as_root[@]}" apt-get update </dev/null >"$log" 2>&1 || true
  if ! install; then
    tail -n 5 "$log"
    echo "install_dependencies: apt-get could not install them. On Ubuntu the component universe"
    echo "must be enabled; without a network, install the packages named above first."
    exit 1
  fi
fi
echo "install_dependencies: installed ${#missing[@]} packages"
