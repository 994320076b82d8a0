#!/usr/bin/env bash
# Runs a command inside the folder that debian-testing.sh made, in this checkout, which appears
# there as /mulciber (and a folder `shared` beside the checkout as /shared). Build there in
# build-testing: the compilers and libraries differ. Mounts live in a mount namespace of their own
# and vanish with the command. Needs root.
#   tools/drivers/in_debian_testing.sh cmake -S . -B build-testing -G Ninja
set -euo pipefail

folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
checkout=$(cd "$(dirname "$0")/../.." && pwd)
(($# > 0)) || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
[[ -x $folder/usr/bin/apt-get ]] ||
  { echo "in_debian_testing: $folder is not there; run tools/drivers/debian-testing.sh" >&2; exit 1; }

export folder checkout
# Inner variables expand inside the namespace.
# shellcheck disable=SC2016
exec unshare --mount --propagation private bash -euc '
  mkdir -p "$folder/mulciber" "$folder/shared"
  mountpoint -q "$folder/proc" || mount --bind /proc "$folder/proc"
  mountpoint -q "$folder/dev" || mount --rbind /dev "$folder/dev"
  mount --bind "$checkout" "$folder/mulciber"
  if [[ -d $checkout/../shared ]]; then mount --bind "$checkout/../shared" "$folder/shared"; fi
  cp -L /etc/resolv.conf "$folder/etc/resolv.conf" 2>/dev/null || true
  exec chroot "$folder" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/tmp LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    $(env | sed -n "s/^\(MULCIBER_[A-Z_]*=[^ ]*\|CI=[^ ]*\|[a-z]*_proxy=[^ ]*\)\$/\1/p") \
    sh -c "cd /mulciber && exec \"\$@\"" - "$@"
' - "$@"
