# Form: scripts, formatting, long files, links and code of the documents and Doxygen's pages, for test.sh to source.

# Tables, which may have any length, each with its reason.
tables=(
  "tools/fixtures/chat_template_families.py   data: conversations and templates"
  "shaders/kernels.def   a table with a row a kernel variant, which readers and CMake take from one place"
)

# A note for each file of code over 500 lines that is no table: a question to its author, and no failure.
note_long_files() {
  local file lines
  while IFS= read -r -d '' file; do
    lines=$(wc -l <"$file")
    if ((lines <= 500)) || printf '%s\n' "${tables[@]%% *}" | grep -qxF -- "$file"; then continue; fi
    echo "note: $file has $lines lines, more than 500: which two things is it?"
  done < <(git ls-files -z '*.cpp' '*.h' '*.c' '*.comp' '*.glsl' '*.def' '*.py' '*.sh' '*.bash' '*.js' '*.css' '*.cmake')
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
    check "shellcheck" shellcheck -x "${files[@]}" .ci/run tools/hooks/pre-commit
  fi
  if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    skip "format, Docker's context and long files: not a git checkout"
    return
  fi
  check "format" formatting
  check "Docker's context" docker_context
  check "links of documents" tests/source/links.py
  check "one thing, one name" tests/source/glossary.py
  check "code of the embedding guide" tests/source/guide_code.py
  check "the C interface as recorded" tools/abi.py
  check "pages of the interface" tools/api_pages.sh --check
  note_long_files
}
