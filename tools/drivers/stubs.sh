#!/usr/bin/env bash
# Prepares stub devices in the folder of debian-testing.sh: the real Vulkan drivers of absent GPUs, for on_stub.sh. AMD,
# Adreno and Apple come with Debian's package mesa-drm-shim; Intel, NVIDIA, Mali and Raspberry Pi are built from Debian
# stable's source of Mesa with stubs.patch (about 11 minutes on two cores; no LLVM, no Rust), or taken from the folder
# MULCIBER_STUBS, if it has them. Idempotent. Needs root.
set -euo pipefail

folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
here=$(cd "$(dirname "$0")" && pwd)
libraries=(libintel_noop_drm_shim.so libnouveau_noop_drm_shim.so libpanfrost_noop_drm_shim.so
  libv3d_noop_drm_shim.so libvulkan_panfrost.so libvulkan_broadcom.so)
say() { echo "stubs: $*"; }
in_folder() { "$here/in_debian_testing.sh" "$@"; }
complete() {
  local library
  for library in "${libraries[@]}"; do [[ -e $folder/opt/stubs/$library ]] || return 1; done
}

"$here/debian-testing.sh"
in_folder sh -c 'dpkg -s mesa-drm-shim >/dev/null 2>&1 || {
  apt-get -o Acquire::Check-Valid-Until=false update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mesa-drm-shim; }' >/dev/null

mkdir -p "$folder/opt/stubs"
if ! complete && [[ -n ${MULCIBER_STUBS:-} ]]; then
  say "taking the built ones from $MULCIBER_STUBS"
  for library in "${libraries[@]}"; do cp "$MULCIBER_STUBS/$library" "$folder/opt/stubs/"; done
fi
if ! complete; then
  say "building Mesa's (about 11 minutes)"
  mkdir -p "$folder/opt/stubs-build/lists/partial"
  cp "$here/stubs.patch" "$folder/opt/stubs-build/"
  awk '/^deb /{print "deb-src", $2, "trixie main"; exit}' "$folder/etc/apt/sources.list" \
    >"$folder/opt/stubs-build/sources.list"
  # Variables expand inside the folder.
  # shellcheck disable=SC2016
  in_folder bash -euc '
    cd /opt/stubs-build
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends dpkg-dev meson ninja-build gcc g++ python3-mako \
      python3-yaml python3-packaging bison flex pkg-config patch libdrm-dev zlib1g-dev \
      libexpat1-dev glslang-tools >/dev/null
    source_of_stable=(-o Dir::Etc::sourcelist=/opt/stubs-build/sources.list
      -o Dir::Etc::sourceparts=- -o Dir::State::lists=/opt/stubs-build/lists
      -o APT::Sandbox::User=root)
    if ! ls mesa_*.orig.tar.xz >/dev/null 2>&1; then
      apt-get "${source_of_stable[@]}" update >/dev/null
      apt-get "${source_of_stable[@]}" source --download-only mesa >/dev/null
    fi
    rm -rf mesa-* build
    tar xf mesa_*.orig.tar.xz
    mv mesa-25.0.* mesa-source
    patch -d mesa-source -p1 <stubs.patch
    meson setup build mesa-source --buildtype=release -Dtools=drm-shim,intel \
      -Dvulkan-drivers=broadcom,panfrost -Dgallium-drivers= -Dplatforms= -Dllvm=disabled \
      -Dopengl=false -Dgles1=disabled -Dgles2=disabled -Degl=disabled -Dglx=disabled \
      -Dgbm=disabled -Dzstd=disabled -Dvalgrind=disabled -Dlibunwind=disabled \
      -Dlmsensors=disabled -Dintel-elk=false -Dvideo-codecs= -Dbuild-tests=false \
      -Dxmlconfig=disabled -Dvulkan-layers= >/dev/null
    built=(src/intel/tools/libintel_noop_drm_shim.so
      src/panfrost/drm-shim/libpanfrost_noop_drm_shim.so
      src/broadcom/drm-shim/libv3d_noop_drm_shim.so
      src/broadcom/drm-shim/libnouveau_noop_drm_shim.so
      src/panfrost/vulkan/libvulkan_panfrost.so src/broadcom/vulkan/libvulkan_broadcom.so)
    ninja -C build "${built[@]}" | tail -n 1
    for library in "${built[@]}"; do strip -s -o "/opt/stubs/${library##*/}" "build/$library"; done
    rm -rf mesa-source build'
fi
for driver in panfrost broadcom; do
  printf '{"file_format_version": "1.0.1", "ICD": {"api_version": "1.3.0", "library_path": "%s"}}\n' \
    "/opt/stubs/libvulkan_$driver.so" >"$folder/opt/stubs/${driver}_icd.json"
done
say "$(grep -vc '^#' "$here/stub_devices.txt") devices are ready; tools/drivers/on_stub.sh --list"
