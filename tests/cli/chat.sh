#!/usr/bin/env bash
# `mulciber chat`: turns, commands, what is kept between turns, Ctrl-C in a terminal. MULCIBER and MULCIBER_SOURCE come
# from ctest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"
cp -r "$MULCIBER_SOURCE/tests/data/gemma3" model
echo "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }} {% endfor %}[assistant]" >model/chat_template.jinja

printf 'The red hammer\nAnd then?\n/history\n/reset\nThe red hammer\n/unknown\n/exit\nnever asked\n' >lines
exits 0 "$MULCIBER" chat -m model -n 6 --stats <lines
[[ -s out ]] || fail "no answers"
grep -c '^\[.* held, .* taken in' err >count || true
[[ $(<count) == 3 ]] || fail "three questions, not three answers: $(cat err)"
# The second turn holds the whole first one; after /reset, the same question is held but for its last token.
sed -n 's/^\[\([0-9]*\) tokens.* held, \([0-9]*\) taken.*/\1 \2/p' err >turns
{ read -r first taken; read -r held _; read -r again fresh; } <turns
((first == 0 && held >= taken && again == taken - 1 && fresh == 1)) || fail "held and taken in: $(cat turns)"
for line in '^user: The red hammer$' '^assistant: '; do
  grep -q "$line" err || fail "/history: $(cat err)"
done
grep -q 'There is no command /unknown' err || fail "an unknown command goes unsaid"

# Without a template: a transcript.
exits 0 "$MULCIBER" chat -m "$MULCIBER_SOURCE/tests/data/gemma3" -n 6 <lines
grep -q 'no chat template' err || fail "a model without a template goes unsaid"
# A question too long is told, and the conversation goes on.
{ printf 'word %.0s' {1..300}; printf '\nThe red hammer\n'; } >long
exits 0 "$MULCIBER" chat -m model -n 6 --context 64 --stats <long
for words in 'context of 64' 'taken in'; do
  grep -q "$words" err || fail "a question that does not fit: $(cat err)"
done
exits 2 "$MULCIBER" chat -m "$MULCIBER_SOURCE/tests/data/marian" </dev/null

# Room for an answer that takes long.
sed -i 's/"max_position_embeddings": 128/"max_position_embeddings": 4096/' model/config.json
python3 "$here/chat_terminal.py" "$MULCIBER" model
