// The keys of one query (and of the heads that share them) dealt out to workgroups. Each leaves its
// maximum, total and sums; the one that arrives last adds them up, in the order of the keys whoever
// that is, so results repeat. Nobody waits for another, so devices that run workgroups one after
// the other get through. The counts of arrivals stand in control, and are zero again when a
// dispatch is done.
//
// Flash-Decoding (Dao, Haziza, Massa and Sizov 2023, https://pytorch.org/blog/flash-decoding/), in
// one dispatch.
#ifndef MULCIBER_ATTENTION_SHARES_GLSL
#define MULCIBER_ATTENTION_SHARES_GLSL

layout(constant_id = CONSTANT_ARRIVALS) const uint ARRIVALS = 0;

BUFFER(3, coherent, arrivals, uint)
BUFFER(4, coherent, partials, vec4)

struct Share {
  uint index, count;
  uvec2 keys;  // [x, y)
};

/// block: keys of a step; shares are whole steps, but for the last.
Share share_of(uvec2 range, uint block) {
  uint keys = max(range.x, range.y) - range.x;
  uint size = (max(LEAST_SHARE, (keys + SHARES - 1) / SHARES) + block - 1) / block * block;
  Share share;
  share.index = gl_WorkGroupID.x % SHARES;
  share.count = max((keys + size - 1) / size, 1);
  // A share past the last is empty, and stands at the end.
  share.keys =
      min(uvec2(range.x + share.index * size, range.x + (share.index + 1) * size), uvec2(range.y));
  return share;
}

/// Where query n's sums of a share stand, in fours; its maximum and total behind them.
uint partial_at(uint kv_row, uint n, uint share) {
  return ((kv_row * query_heads() + query_head(n)) * SHARES + share) * (VALUE_SIZE / 4 + 1);
}

/// first_query: of the workgroup. There is one position, so it stands for a head.
uint arrivals_at(uint kv_row, uint first_query) {
  return ARRIVALS + (params.first_kv_row + kv_row) * query_heads() + query_head(first_query);
}

/// The maximum of all shares and the total under it.
vec2 total_of_shares(uint kv_row, uint n, uint count) {
  vec2 all = vec2(kMasked, 0);
  for (uint s = 0; s < count; ++s) {
    vec2 part = AT(partials, partial_at(kv_row, n, s) + VALUE_SIZE / 4).xy;
    float next = max(all.x, part.x);
    all = vec2(next, all.y * exp(all.x - next) + part.y * exp(part.x - next));
  }
  return all;
}

/// Sums of four columns over all shares, under the maximum of all.
vec4 sums_of_shares(uint kv_row, uint n, uint count, uint quad, float maximum) {
  vec4 sums = vec4(0);
  for (uint s = 0; s < count; ++s) {
    uint at = partial_at(kv_row, n, s);
    sums += AT(partials, at + quad) * exp(AT(partials, at + VALUE_SIZE / 4).x - maximum);
  }
  return sums;
}

#endif
