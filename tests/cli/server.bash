# For the tests of `mulciber serve`: what reads it with `.` works in a folder of its own, $work, which goes at the end,
# as does the server. $here is the folder of the tests.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/exits.bash"
command -v curl >/dev/null || { echo "skipped: curl is not installed"; exit 77; }
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -KILL $server 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit
exec </dev/null
# serve OPTIONS...: starts a server on a free port; its address is in $url, its number in $server, its log in the file log.
serve() {
  : >log
  "$MULCIBER" serve --port 0 "$@" 2>log &
  server=$!
  awaits "the server does not listen" listens
}
# listens: it does; $url says where.
listens() {
  runs
  url=$(sed -n 's/.*listening on \(http:[^ "]*\).*/\1/p' log)
  [[ -n $url ]]
}
runs() { kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat log)"; }
# Lets it end by itself, which must be a success.
stop_server() { server_stops_with 0; }
# server_stops_with CODE: lets it end by itself, with that exit code.
server_stops_with() {
  kill -TERM "$server"
  server_ends "$1"
}
# server_ends CODE: waits for its end.
server_ends() {
  local status=0
  wait "$server" || status=$?
  server=
  [[ $status == "$1" ]] || fail "the server ends with $status, not $1: $(tail -n 3 log)"
}
# openai_client: $python has OpenAI's client, in an environment of its own where the machine has none. What cannot be
# reached ends it, and not the time that it takes.
openai_client() {
  python=python3
  ! python3 -c 'import openai' 2>/dev/null || return 0
  python3 -m venv client >pip.log 2>&1 && client/bin/pip install --quiet --timeout 30 --retries 2 openai >>pip.log 2>&1 ||
    return 1
  # shellcheck disable=SC2034  # the scripts that read this file run it
  python=client/bin/python
}
# ask PATH JSON [CURL OPTIONS...]: the body goes to answer, the status to $status.
ask() { status=$(curl -sS -o answer -w '%{http_code}' -H 'Content-Type: application/json' "${@:3}" -d "$2" "$url$1"); }
# refuses STATUS CODE PARAM PATH JSON [CURL OPTIONS...]: an error object with these.
refuses() {
  ask "${@:4}"
  [[ $status == "$1" ]] || fail "status $status, expected $1: ${*:4} $(head -c 300 answer)"
  python3 - "$2" "$3" <<'PYTHON' || fail "error object: ${*:4} $(head -c 300 answer)"
import json, sys
error = json.load(open("answer"))["error"]
assert set(error) == {"message", "type", "param", "code"} and error["message"] and error["type"], error
assert (error["code"] or "") == sys.argv[1] and (error["param"] or "") == sys.argv[2], error
PYTHON
}
# metric NAME: its value, for the model of that name or without one.
metric() { curl -sS "$url/metrics" | sed -n "s/^$1 //p"; }
# becomes NAME VALUE: waits until the metric is that.
becomes() { awaits "$1 does not become $2" is "$1" "$2"; }
is() {
  runs
  [[ $(metric "$1") == "$2" ]]
}
# arrives FILE: waits until something is in it, which curl -N writes.
arrives() { awaits "nothing comes to $1" test -s "$1"; }
# A model for conversations: the small one, with a template, and a context that takes seconds to fill.
chat_model() {
  cp -r "$MULCIBER_SOURCE/tests/data/gemma3" "$1"
  sed -i 's/"max_position_embeddings": 128/"max_position_embeddings": 4096/' "$1/config.json"
  echo "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}[model]" >"$1/chat_template.jinja"
}
