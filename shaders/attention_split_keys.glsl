// Flash decoding (Dao, Haziza, Massa and Sizov 2023, https://pytorch.org/blog/flash-decoding/) in
// one dispatch: the keys of a query, and of the heads that share them, are split over several
// workgroups. Each writes its maximum, its total and its partial sums, and the last one to finish
// combines them. It does so in the order of the keys, so results repeat bit for bit whichever
// workgroup is last. No workgroup waits for another, so this works on devices that run workgroups
// one after the other. The counters of finished workgroups are in control; the last workgroup
// resets them to zero.
#ifndef MULCIBER_ATTENTION_SPLIT_KEYS_GLSL
#define MULCIBER_ATTENTION_SPLIT_KEYS_GLSL

ROW_CONSTANT(LEAST_KEYS, MIN_KEYS_PER_SPLIT);
layout(constant_id = CONSTANT_SPLIT_COUNTERS) const uint SPLIT_COUNTERS = 0;

BUFFER(3, coherent, split_counters, uint)
BUFFER(4, coherent, partials, vec4)

struct Split {
  uint index, count;
  uvec2 keys;  // [x, y)
};

/// The keys of this workgroup. block: keys per step; a split is whole steps, except the last.
Split split_of(uvec2 range, uint block) {
  uint keys = max(range.x, range.y) - range.x;
  uint size = (max(LEAST_KEYS, (keys + NUM_SPLITS - 1) / NUM_SPLITS) + block - 1) / block * block;
  Split split;
  split.index = gl_WorkGroupID.x % NUM_SPLITS;
  split.count = max((keys + size - 1) / size, 1);
  // Splits past the last are empty and begin at the end.
  split.keys =
      min(uvec2(range.x + split.index * size, range.x + (split.index + 1) * size), uvec2(range.y));
  return split;
}

/// Index of the first vec4 of query n's partial sums; its maximum and total follow them.
uint partial_at(uint kv_row, uint n, uint split) {
  return ((kv_row * query_heads() + query_head(n)) * NUM_SPLITS + split) * (VALUE_SIZE / 4 + 1);
}

/// first_query: the workgroup's. With one position, a query is a head.
uint split_counter_at(uint kv_row, uint first_query) {
  return SPLIT_COUNTERS + (params.first_kv_row + kv_row) * query_heads() + query_head(first_query);
}

/// Combines four columns of the partial sums of all splits, and their divisor: earlier sums,
/// maximum and total are rescaled with each split, so that every split is read once.
struct Combined {
  vec4 sums;
  float maximum, total;
};
Combined combined(uint kv_row, uint n, uint count, uint quad) {
  Combined all = Combined(vec4(0), kMasked, 0);
  for (uint s = 0; s < count; ++s) {
    const uint at = partial_at(kv_row, n, s);
    const vec4 sums = AT(partials, at + quad);
    const vec2 part = AT(partials, at + VALUE_SIZE / 4).xy;
    const float next = max(all.maximum, part.x);
    const float before = exp(all.maximum - next), now = exp(part.x - next);
    all = Combined(all.sums * before + sums * now, next, all.total * before + part.y * now);
  }
  return all;
}

#endif
