# Form: scripts, formatting and the length of files, for test.sh to source.

# Files that may be longer than 400 lines, each with its reason.
long_files=(
  "tools/fixtures/chat_template_families.py   data: conversations and templates"
  "shaders/kernels.def   a table with a row a kernel variant, which readers and CMake take from one place"
)

# Each file of code over 400 lines that is not named above; and each that is named without need.
file_lengths() {
  local file lines line status=0
  local -A reasons=() long=()
  for line in "${long_files[@]}"; do reasons[${line%% *}]=${line#* }; done
  while IFS= read -r -d '' file; do
    lines=$(wc -l <"$file")
    if ((lines <= 400)); then continue; fi
    long[$file]=1
    if [[ -z ${reasons[$file]:-} ]]; then
      echo "$file has $lines lines, more than 400: divide it, or name it with a reason in ${BASH_SOURCE[0]}"
      status=1
    fi
  done < <(git ls-files -z '*.cpp' '*.h' '*.c' '*.comp' '*.glsl' '*.def' '*.py' '*.sh' '*.bash' '*.js' '*.css' '*.cmake')
  for file in "${!reasons[@]}"; do
    if [[ -z ${long[$file]:-} ]]; then
      echo "$file is named as longer than 400 lines, and is not: leave it out of ${BASH_SOURCE[0]}"
      status=1
    fi
  done
  return "$status"
}

# 77, a skip, where there is no clang-format 14: other versions break lines elsewhere.
formatting() {
  local clang_format
  clang_format=$(command -v clang-format-14 || command -v clang-format || true)
  if [[ -z $clang_format ]] || ! "$clang_format" --version | grep -q 'version 14\.'; then
    echo "clang-format 14 is not installed"
    return 77
  fi
  git ls-files -z '*.cpp' '*.h' '*.c' '*.comp' '*.glsl' |
    xargs -0 -n 32 -P "$jobs" "$clang_format" --dry-run --Werror
}

# Files that the image's build would miss. Docker reads a pattern with a slash behind it as one without: files match too.
docker_context() {
  local missing patterns=$logs/dockerignore
  sed 's,/$,,' packaging/Dockerfile.dockerignore >"$patterns"
  missing=$(git ls-files --cached --ignored --exclude-from="$patterns")
  echo "left out of the context: ${missing:-nothing}"
  [[ -z $missing ]]
}

run_scripts() {
  if ! command -v shellcheck >/dev/null; then
    skip "scripts: shellcheck is not installed"
  else
    local files
    # The parts are read with test.sh, which sets what they use.
    mapfile -t files < <(find . \( -path './build*' -o -path ./tests/parts \) -prune -o \
      \( -name '*.sh' -o -name '*.bash' \) -print)
    check "shellcheck" shellcheck -x "${files[@]}" .ci/run
  fi
  if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    skip "format and length of files: not a git checkout"
    return
  fi
  check "format" formatting
  check "length of files" file_lengths
  check "Docker's context" docker_context
}
