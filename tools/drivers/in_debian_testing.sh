#!/usr/bin/env bash
# Runs a command inside the folder that debian-testing.sh made, in this checkout, which appears
# there as /mulciber (and a folder `shared` beside the checkout as /shared). Build there in
# build-testing: the compilers and libraries differ. Mounts live in a mount namespace of their own
# and vanish with the command. Needs root.
#   tools/drivers/in_debian_testing.sh cmake -S . -B build-testing -G Ninja
set -euo pipefail

folder=${MULCIBER_DEBIAN_TESTING:-$HOME/.cache/debian-testing}
checkout=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tools/debian_folder.bash
source "$checkout/tools/debian_folder.bash"
(($# > 0)) || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
[[ -x $folder/usr/bin/apt-get ]] ||
  { echo "in_debian_testing: $folder is not there; run tools/drivers/debian-testing.sh" >&2; exit 1; }

binds=("$checkout:/mulciber")
if [[ -d $checkout/../shared ]]; then binds+=("$checkout/../shared:/shared"); fi
mapfile -t passed < <(env | grep -E '^MULCIBER_[A-Z_]*=')
debian_exec "$folder" "${binds[@]}" -- env "${passed[@]}" sh -c 'cd /mulciber && exec "$@"' - "$@"
