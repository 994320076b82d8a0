#!/usr/bin/env bash
# exported_symbols.sh LIBRARY: it exports what include/mulciber marks with MULCIBER_API, all of it
# and nothing else; and every error that a public header speaks of is among that, for programs to
# catch.
set -euo pipefail

library=$1
headers=$(dirname "$0")/../../include/mulciber
marked=$(grep -hv '^#' "$headers"/*.h "$headers"/c/*.h | tr '\n' ' ')
classes=$(grep -oE '(class|struct) MULCIBER_API \w+' <<<"$marked" | awk '{ print $3 }')
functions=$(grep -oE 'MULCIBER_API [^(;{}]*\(' <<<"$marked" | grep -oE '\w+\($' | tr -d '(')
versioned=$(nm -D --defined-only -C "$library" | cut -d ' ' -f 3- | grep -v '^MULCIBER_')
exported=$(cut -d @ -f 1 <<<"$versioned")

failed=0
of_class() { echo "^((typeinfo|typeinfo name|vtable) for mulciber::$1\$|mulciber::$1::)"; }
# The name of a function that returns a string carries the tag of libstdc++'s ABI.
of_function() { echo "^(mulciber::$1(\[abi:cxx11\])?\(|$1\$)"; }
unknown=$exported
expect() {
  if ! grep -qE "$2" <<<"$exported"; then
    echo "$1 is marked, but $library does not export it"
    failed=1
  fi
  unknown=$(grep -vE "$2" <<<"$unknown" || true)
}
while read -r name; do
  if ! grep -qx "$name" <<<"$classes"; then
    echo "$name is named in $headers, but none of its classes marked with MULCIBER_API"
    failed=1
  fi
done < <(grep -ohE '\w+Error\b' "$headers"/*.h "$headers"/c/*.h | sort -u)
for name in $classes; do expect "$name" "$(of_class "$name")"; done
for name in $functions; do expect "$name" "$(of_function "$name")"; done
if grep '^mulciber_' <<<"$versioned" | grep -v '@@MULCIBER_[0-9.]*$'; then
  echo "these C functions lack the version that cmake/exports.map gives them"
  failed=1
fi
if [[ -n $unknown ]]; then
  echo "$library exports what no public header marks:"
  echo "$unknown"
  failed=1
fi
echo "$(wc -l <<<"$exported") symbols of $(wc -w <<<"$classes") classes and $(wc -w <<<"$functions") functions"
exit $failed
