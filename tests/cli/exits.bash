# For the scripts beside it, which read it with `.`: they fail with words, and look at exit codes.
fail() { echo "FAILED: $*"; exit 1; }
# exits CODE COMMAND...: the exit code; standard output and error go to out and err.
exits() {
  local code=$1 status=0
  shift
  "$@" >out 2>err || status=$?
  [[ $status == "$code" ]] || fail "exit $status, expected $code: $* ($(tail -n 3 out err))"
}
# awaits WORDS COMMAND...: waits until the command succeeds. Only what hangs takes ten minutes, and fails with the words.
awaits() {
  local words=$1 end=$((SECONDS + 600))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "$words"
    sleep 0.02
  done
}
# says CODE WORDS COMMAND...: the exit code, and at most two lines on standard error, which hold the words.
says() {
  local words=$2
  exits "$1" "${@:3}" </dev/null
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
  (($(wc -l <err) <= 2)) || fail "more than two lines of error: $(cat err)"
}
