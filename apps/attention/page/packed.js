// Weights as the command packs them: little-endian 16-bit fixed point, where 65534 is 1 and 65535
// is missing. Row i of a triangle has i + 1 weights. The page of `mulciber serve` uses this file
// too.

function fixedOf(kind) {
  if (!kind.fixed) {
    const bytes = atob(kind.packed);
    kind.fixed = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < kind.fixed.length; ++i)
      kind.fixed[i] = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
    kind.packed = "";
  }
  return kind.fixed;
}

const sizeOfMap = (kind) => kind.triangle ? kind.keys * (kind.keys + 1) / 2 : kind.keys * kind.queries;

// Calls visit(row, key, weight) for every weight that a map has.
function visitMap(kind, layer, head, visit) {
  const fixed = fixedOf(kind);
  let at = (layer * kind.heads + head) * sizeOfMap(kind);
  for (let q = 0; q < kind.queries; ++q)
    for (let k = 0, end = kind.triangle ? q + 1 : kind.keys; k < end; ++k, ++at)
      visit(q, k, fixed[at] === 65535 ? NaN : fixed[at] / 65534);
}
