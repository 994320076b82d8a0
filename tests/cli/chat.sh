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

# Without a template: a transcript, which is said; other templates by name or out of a file.
base=$MULCIBER_SOURCE/tests/data/gemma3
exits 0 "$MULCIBER" chat -m "$base" -n 6 --shift <lines  # its words are spelled, and its context is short
grep -q 'no chat template.*--template dialogue' err || fail "a model without a template goes unsaid: $(cat err)"
cp out transcript
(($(wc -l <transcript) >= 3)) || fail "three questions, not three answers: $(cat out)"
exits 0 "$MULCIBER" chat -m "$base" -n 6 --shift --template dialogue <lines
cmp -s out transcript || fail "dialogue is not what is taken by itself"
[[ ! -s err ]] || ! grep -q 'no chat template' err || fail "told what was asked for: $(cat err)"
exits 0 "$MULCIBER" chat -m "$base" -n 6 --template model/chat_template.jinja --stats <lines
cp out by_file
exits 0 "$MULCIBER" chat -m model -n 6 --stats <lines
cmp -s out by_file || fail "a template out of a file is not the same as in the model's folder"
exits 2 "$MULCIBER" chat -m "$base" --template nonsense <lines
grep -q 'chatml, dialogue, gemma, llama3, mistral' err || fail "the names of templates are not told: $(cat err)"
echo '{% for %}' >broken.jinja
exits 2 "$MULCIBER" chat -m "$base" --template broken.jinja <lines
grep -q 'line 1' err || fail "a template that cannot be read: $(cat err)"
exits 2 "$MULCIBER" chat -m "$base" --template . <lines
exits 0 "$MULCIBER" chat -m "$base" </dev/null
[[ ! -s out ]] || fail "an answer without a question: $(cat out)"

# Where the files ask for nothing, what was said becomes less likely; the command line wins.
exits 0 "$MULCIBER" chat -m model -n 6 <lines
grep -q '^sampling: the likeliest token, repeat penalty 1.1$' err || fail "the penalty goes unsaid: $(cat err)"
exits 0 "$MULCIBER" chat -m model -n 6 --repeat-penalty 1 <lines
grep -q '^sampling' err && fail "a word on no penalty: $(cat err)"

# A question too long is told, and the conversation goes on.
{ printf 'word %.0s' {1..300}; printf '\nThe red hammer\n'; } >long
exits 0 "$MULCIBER" chat -m model -n 6 --context 64 --stats <long
for words in 'context of 64' 'taken in'; do
  grep -q "$words" err || fail "a question that does not fit: $(cat err)"
done
# With --shift the conversation goes on without its oldest tokens, and says so.
exits 0 "$MULCIBER" chat -m model -n 6 --context 64 --stats --shift <long
grep -q 'no longer sees the [0-9]* oldest tokens' err || fail "what is left out goes unsaid: $(cat err)"
[[ $(grep -c ' taken in at' err) == 2 ]] || fail "a question was not answered: $(cat err)"
for keep in 61 64 5000; do
  exits 2 "$MULCIBER" chat -m model -n 6 --context 64 --shift --keep "$keep" <lines
  grep -q "keep: is $keep of a context of 64" err || fail "keeps more than there is: $(cat err)"
done
"$MULCIBER" chat -m model --keep 3 <lines >out 2>err && fail "--keep without --shift is taken"
printf 'The red hammer\n' | "$MULCIBER" chat -m model --context 64 >out 2>err
grep -q 'chat --shift' err || fail "--shift is not named where the context is full: $(cat err)"
exits 2 "$MULCIBER" chat -m "$MULCIBER_SOURCE/tests/data/marian" </dev/null

# Room for an answer that takes long.
sed -i 's/"max_position_embeddings": 128/"max_position_embeddings": 4096/' model/config.json
python3 "$here/chat_terminal.py" "$MULCIBER" model
