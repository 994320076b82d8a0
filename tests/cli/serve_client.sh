#!/usr/bin/env bash
# `mulciber serve`, asked with OpenAI's own client (serve.py), which comes from PyPI into an environment of its own.
set -euo pipefail
. "$(dirname "$0")/server.bash"
if ! openai_client; then
  echo "skipped: OpenAI's client cannot be installed: $(tail -n 1 pip.log)"
  exit 77
fi
chat_model chat
# The template that Qwen's models have, made short: it writes tools where there are some.
chat_model tools
cat >tools/chat_template.jinja <<'JINJA'
{{ bos_token }}{% if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}{% for m in messages %}[{{ m.role }}] {{ m.content }} {% for call in m.tool_calls or [] %}{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}[model]
JINJA
models=(-m chat -m tools)
fixtures=${MULCIBER_FIXTURES:-}
if [[ -n $fixtures ]]; then
  models+=(-m "vectors=$fixtures/models/bert" -m "speech=$fixtures/models/whisper")
else
  echo "skipped in part: MULCIBER_FIXTURES is not set: no vectors, no speech"
fi
MULCIBER_API_KEY=secret serve "${models[@]}" --responses 20
"$python" "$here/serve.py" "$url" || fail "OpenAI's client is not content: $(tail -n 5 log)"
"$python" "$here/serve_responses.py" "$url" || fail "OpenAI's client is not content with responses: $(tail -n 5 log)"
stop_server
