#!/usr/bin/env bash
# The room of texts links without Vulkan: a program of its own tokenizes and renders a chat template, needs no
# library of Vulkan's, and neither has nor lacks one of its symbols. TEXT_ALONE and MULCIBER_SOURCE come from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}" >"$work/chat.jinja"
"$TEXT_ALONE" "$MULCIBER_SOURCE/tests/data/gemma3" "$work/chat.jinja" 'The red hammer' >"$work/out" || fail "it does not run"
mapfile -t lines <"$work/out"
[[ ${lines[0]} =~ ^[0-9]+(\ [0-9]+)+\ $ && ${lines[2]} =~ ^[0-9]+(\ [0-9]+)+\ $ ]] || fail "no ids: $(<"$work/out")"
[[ ${lines[1]} == '<bos>The red hammer' && ${lines[3]} == '<bos>[user]The red hammer' ]] ||
  fail "the ids stand for other texts: $(<"$work/out")"
[[ ${lines[4]} == '<bos>[user]The red hammer' ]] || fail "rendered otherwise: $(<"$work/out")"

# Vulkan's functions are called vkCreateInstance and so on.
vulkan='(^|[^[:alnum:]_])vk[A-Z][[:alnum:]]*'
nm "$TEXT_ALONE" >"$work/symbols" || fail "nm cannot read $TEXT_ALONE"
grep -q ' main$' "$work/symbols" || fail "the program has no symbols to look at"
! grep -E "$vulkan" "$work/symbols" || fail "the program has or lacks symbols of Vulkan"
! ldd "$TEXT_ALONE" | grep -i vulkan || fail "the program needs Vulkan's library"
! grep -c 'mulciber6Device' "$work/symbols" || fail "the program holds the runtime's device"
