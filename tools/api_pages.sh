#!/usr/bin/env bash
# Builds HTML pages of the headers in include/mulciber, with Doxygen, into build/api. A warning is an error; without
# Doxygen the exit code is 77. --check: into a folder that is removed again.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v doxygen >/dev/null || { echo "api_pages: doxygen is not installed"; exit 77; }
folder=build/api
if [[ ${1:-} == --check ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $folder"; } | doxygen -
echo "api_pages: $folder/html/index.html"
