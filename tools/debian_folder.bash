# Functions to source for folders with a bare Debian: unpack one, install packages there and run commands in it. They
# need root and a Debian mirror (drivers/debian_mirror.sh).
debian_mirror_script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/drivers/debian_mirror.sh

# debian_why_not: prints why no folder can be made here, or nothing.
debian_why_not() {
  if ((EUID != 0)); then
    echo "making a Debian folder needs root"
  elif ! "$debian_mirror_script" >/dev/null; then
    echo "no Debian mirror among this machine's apt sources; set MULCIBER_DEBIAN_MIRROR"
  elif ! unshare --mount true 2>/dev/null; then
    echo "this machine allows no mounts"
  elif ! command -v debootstrap >/dev/null &&
    ! apt-get install -y --no-install-recommends debootstrap >/dev/null 2>&1; then
    echo "the package debootstrap cannot be installed"
  fi
}

# debian_unpack SUITE FOLDER: makes the folder, which appears when it is complete. The log is FOLDER.log.
debian_unpack() {
  local suite=$1 folder=$2
  [[ ! -x $folder/usr/bin/apt-get ]] || return 0
  rm -rf "$folder.part"  # an earlier try was cut off
  mkdir -p "$(dirname "$folder")"
  if ! debootstrap --variant=minbase "$suite" "$folder.part" "$("$debian_mirror_script")" >"$folder.log" 2>&1; then
    tail -n 3 "$folder.log"
    return 1
  fi
  # An outdated mirror is good enough for a folder of tests.
  echo 'Acquire::Check-Valid-Until "false";' >"$folder.part/etc/apt/apt.conf.d/90-mirror"
  mv "$folder.part" "$folder"
}

# debian_exec FOLDER [HERE:THERE...] -- COMMAND...: executes the command in the folder, where each HERE appears as
# THERE. Its mounts live in a mount namespace of their own and vanish with it, and it starts with an empty environment
# but for PATH, TERM, CI and proxies.
debian_exec() {
  local inner
  # Variables expand inside the namespace.
  # shellcheck disable=SC2016
  inner='
    folder=$1
    shift
    for kernel in proc sys; do
      mountpoint -q "$folder/$kernel" || mount --rbind "/$kernel" "$folder/$kernel"
    done
    mountpoint -q "$folder/dev" || mount --rbind /dev "$folder/dev"
    while [[ $1 != -- ]]; do
      mkdir -p "$folder${1#*:}"
      mount --bind "${1%%:*}" "$folder${1#*:}"
      shift
    done
    shift
    cp -L /etc/resolv.conf "$folder/etc/resolv.conf" 2>/dev/null || true
    mapfile -t passed < <(env | grep -E "^(CI|TERM|[a-z]*_proxy)=")
    exec chroot "$folder" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/tmp LANG=C.UTF-8 "${passed[@]}" "$@"'
  exec unshare --mount --propagation private bash -euc "$inner" - "$@"
}
debian_run() { (debian_exec "$@"); }

# debian_install FOLDER PACKAGE...: installs packages that are missing there, and names them. The log is FOLDER.log.
debian_install() {
  local folder=$1 package status missing=()
  shift
  for package in "$@"; do
    # shellcheck disable=SC2016 # dpkg-query expands its own fields
    status=$(chroot "$folder" dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | sort -u) || true
    [[ $status == installed ]] || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  echo "installing ${missing[*]}"
  if ! debian_run "$folder" -- bash -c 'export DEBIAN_FRONTEND=noninteractive
      apt-get update || true
      apt-get install -y --no-install-recommends "$@"' - "${missing[@]}" >"$folder.log" 2>&1 </dev/null; then
    tail -n 3 "$folder.log"
    return 1
  fi
}
