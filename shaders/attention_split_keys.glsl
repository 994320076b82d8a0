// Flash decoding (Dao, Haziza, Massa and Sizov 2023, https://pytorch.org/blog/flash-decoding/) in
// one dispatch: the keys of a query, and of the heads that share them, are split over several
// workgroups. Each writes its maximum, its total and its partial sums, and the last to be done
// combines them. It does so in the order of the keys, so results repeat bit for bit whichever
// workgroup is the last. No workgroup waits for another, so this works on devices that run
// workgroups one after the other. The counters of workgroups that are done are in control; the last
// one sets them to zero again.
#ifndef MULCIBER_ATTENTION_SPLIT_KEYS_GLSL
#define MULCIBER_ATTENTION_SPLIT_KEYS_GLSL

layout(constant_id = CONSTANT_SPLIT_COUNTERS) const uint SPLIT_COUNTERS = 0;

BUFFER(3, coherent, split_counters, uint)
BUFFER(4, coherent, partials, vec4)

struct Split {
  uint index, count;
  uvec2 keys;  // [x, y)
};

/// The keys of this workgroup. block: keys of a step; a split is whole steps, except the last.
Split split_of(uvec2 range, uint block) {
  uint keys = max(range.x, range.y) - range.x;
  uint size =
      (max(MIN_KEYS_PER_SPLIT, (keys + NUM_SPLITS - 1) / NUM_SPLITS) + block - 1) / block * block;
  Split split;
  split.index = gl_WorkGroupID.x % NUM_SPLITS;
  split.count = max((keys + size - 1) / size, 1);
  // Splits past the last are empty, and begin at the end.
  split.keys =
      min(uvec2(range.x + split.index * size, range.x + (split.index + 1) * size), uvec2(range.y));
  return split;
}

/// Index of the first vec4 of query n's partial sums; its maximum and total follow them.
uint partial_at(uint kv_row, uint n, uint split) {
  return ((kv_row * query_heads() + query_head(n)) * NUM_SPLITS + split) * (VALUE_SIZE / 4 + 1);
}

/// first_query: of the workgroup. There is one position, so a query is a head.
uint split_counter_at(uint kv_row, uint first_query) {
  return SPLIT_COUNTERS + (params.first_kv_row + kv_row) * query_heads() + query_head(first_query);
}

/// The maximum over all splits, and their totals rescaled to it and added up.
vec2 combined_maximum_and_total(uint kv_row, uint n, uint count) {
  vec2 all = vec2(kMasked, 0);
  for (uint s = 0; s < count; ++s) {
    vec2 part = AT(partials, partial_at(kv_row, n, s) + VALUE_SIZE / 4).xy;
    float next = max(all.x, part.x);
    all = vec2(next, all.y * exp(all.x - next) + part.y * exp(part.x - next));
  }
  return all;
}

/// The partial sums of four columns of all splits, rescaled to the maximum and added up.
vec4 combined_sums(uint kv_row, uint n, uint count, uint quad, float maximum) {
  vec4 sums = vec4(0);
  for (uint s = 0; s < count; ++s) {
    uint at = partial_at(kv_row, n, s);
    sums += AT(partials, at + quad) * exp(AT(partials, at + VALUE_SIZE / 4).x - maximum);
  }
  return sums;
}

#endif
