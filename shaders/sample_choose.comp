// Chooses one token for each row among those that the filters leave: one workgroup per row.
//
// A filter keeps the ids whose rank is at least a threshold; ranks are the bits of a float as an
// ordered integer. The threshold is the smallest rank such that the ids above it weigh less than a
// target (a count for top k, a probability for top p and typical). It is found by a search with 7
// probes per pass, exactly and without a sort. The chunks' largest logits alone give a first bound;
// chunks below it are never read again. An invocation reads whole chunks, and the chunks of a row
// are divided among 128 invocations: some software drivers stop an invocation after 65,535
// iterations of all its loops, and three searches over 2^19 ids stay below that.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "sample.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

PARAMS(SampleParams)
BUFFER(0, readonly, logits, float)
BUFFER(1, , control, uint)
BUFFER(1, readonly, settings, SampleSettings)  // shares the binding of control
BUFFER(2, readonly, stats, vec2)
BUFFER(3, writeonly, progress, uint)

#include "logits.glsl"

const uint PROBES = 7;
const uint PIECES = 32;  // pieces of a chunk, and of the list of chunks

shared float chunk_largest[SAMPLE_MOST_CHUNKS];
shared float chunk_weight[SAMPLE_MOST_CHUNKS];
shared float piece_weight[PIECES];
shared uint chosen_chunk;
shared float chosen_rest;
shared bool lost;  // a logit of the row is NaN or infinity

#include "reduce.glsl"
#define LANE gl_LocalInvocationIndex

// Ids are below 2^24, so floats represent them exactly.
uint workgroup_min(uint value) { return uint(-workgroup_max(-float(value))); }

shared float probe_scratch[PROBES * LOCAL_SIZE];
void add_probes(inout float sums[PROBES]) {
  // No barrier is needed here: readers of an earlier call's values have passed its last barrier.
  // scratch is read before that barrier, and piece_weight is written after the next one.
  [[unroll]] for (uint i = 0; i < PROBES; ++i) probe_scratch[i * LOCAL_SIZE + LANE] = sums[i];
  barrier();
  if (LANE < PROBES) {
    float sum = 0.0;
    for (uint other = 0; other < LOCAL_SIZE; ++other)
      sum += probe_scratch[LANE * LOCAL_SIZE + other];
    piece_weight[LANE] = sum;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < PROBES; ++i) sums[i] = piece_weight[i];
}

uint row;

#define SETTINGS AT(settings, params.settings + row)

// Larger numbers have larger ranks; both zeros have one.
uint rank_of(float value) {
  uint bits = floatBitsToUint(value);
  if (bits == 0x80000000u) bits = 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Facts about the row, and the filters so far: they keep logits of rank `least` and above whose
// surprisal's distance from the entropy (typical sampling) has rank `least_typical` and above.
float largest, inverse_temperature, entropy;
uint least = 0, least_typical = 0;

float weight_of(float logit) { return exp((logit - largest) * inverse_temperature); }
// The smaller the distance from the entropy, the larger the rank.
uint typical_rank(float logit) {
  return ~floatBitsToUint(abs(entropy - (logit - largest) * inverse_temperature));
}
bool kept(float logit) {
  return logit > NEVER && rank_of(logit) >= least &&
         (least_typical == 0 || typical_rank(logit) >= least_typical);
}
float logit_at(uint id) { return AT(logits, row * params.vocabulary + id); }

// Runs BODY for every logit of a chunk, four per iteration.
#define FOR_EACH_LOGIT(CHUNK, BODY)                                   \
  {                                                                   \
    uint end_ = min(((CHUNK) + 1) * params.chunk, params.vocabulary); \
    uint id_ = (CHUNK)*params.chunk;                                  \
    for (; id_ + 4 <= end_; id_ += 4) {                               \
      [[unroll]] for (uint j_ = 0; j_ < 4; ++j_) {                    \
        float logit = logit_at(id_ + j_);                             \
        BODY                                                          \
      }                                                               \
    }                                                                 \
    for (; id_ < end_; ++id_) {                                       \
      float logit = logit_at(id_);                                    \
      BODY                                                            \
    }                                                                 \
  }

#define BY_COUNT 0    // ranks of logits, each with weight 1
#define BY_WEIGHT 1   // ranks of logits
#define BY_TYPICAL 2  // typical ranks

void probe(inout float sums[PROBES], float logit, uint mode, uint first, uint stride) {
  uint rank = mode == BY_TYPICAL ? typical_rank(logit) : rank_of(logit);
  if (rank <= first || rank_of(logit) < least || logit == NEVER) return;
  float weight = mode == BY_COUNT ? 1.0 : weight_of(logit);
  [[unroll]] for (uint i = 0; i < PROBES; ++i) {
    // Probes are `stride` apart, limited to the largest number.
    uint at = first + min(i * stride, 0xffffffffu - first);
    sums[i] += rank > at ? weight : 0.0;
  }
}

// The smallest rank in [from, to] such that the ids above it weigh less than `target`; `to` must
// satisfy this.
uint search(uint from, uint to, float target, uint mode, bool only_chunks) {
  while (from < to) {
    uint stride = (to - from) / (PROBES + 1) + 1;
    float sums[PROBES];
    [[unroll]] for (uint i = 0; i < PROBES; ++i) sums[i] = 0.0;
    if (only_chunks) {
      for (uint c = LANE; c < params.chunks; c += LOCAL_SIZE)
        probe(sums, chunk_largest[c], mode, from, stride);
    } else {
      for (uint c = LANE; c < params.chunks; c += LOCAL_SIZE) {
        uint highest = rank_of(chunk_largest[c]);
        if (highest < least || (mode != BY_TYPICAL && highest <= from)) continue;
        FOR_EACH_LOGIT(c, probe(sums, logit, mode, from, stride);)
      }
    }
    add_probes(sums);
    uint low = from, high = to;
    [[unroll]] for (uint i = 0; i < PROBES; ++i) {
      uint at = from + min(i * stride, 0xffffffffu - from);
      if (at < to) {
        if (sums[i] < target) {
          high = min(high, at);
        } else {
          low = max(low, at + 1);
        }
      }
    }
    from = low;
    to = high;
  }
  return to;
}

// Ranks of logits: the chunks' largest logits bound the threshold from below.
uint search_logits(float target, uint mode) {
  uint highest = rank_of(largest);
  return search(search(least, highest, target, mode, true), highest, target, mode, false);
}

// Weights of the kept ids by chunk, and their sum: each lane sums its own chunks.
float weigh_chunks() {
  float sum = 0.0;
  for (uint c = LANE; c < params.chunks; c += LOCAL_SIZE) {
    float weight = 0.0;
    if (least == 0 && least_typical == 0) {
      vec2 whole = AT(stats, row * params.chunks + c);
      weight = whole.x == NEVER ? 0.0 : whole.y * weight_of(whole.x);
    } else if (rank_of(chunk_largest[c]) >= least) {
      FOR_EACH_LOGIT(c, if (kept(logit)) weight += weight_of(logit);)
    }
    chunk_weight[c] = weight;  // draw() reads it, after the barriers of the sum
    sum += weight;
  }
  return workgroup_add(sum);
}

// Sum of weight * logit over the kept ids; logits minus the largest, over the temperature.
float sum_surprisal() {
  float sum = 0.0;
  for (uint c = LANE; c < params.chunks; c += LOCAL_SIZE) {
    if (rank_of(chunk_largest[c]) < least) continue;
    float part = 0.0;
    FOR_EACH_LOGIT(
        c, if (kept(logit)) part += weight_of(logit) * (logit - largest) * inverse_temperature;)
    sum += part;
  }
  return workgroup_add(sum);
}

// The first word of Philox 4x32-10 of (step, stream, 0, 0), as a number in (0, 1).
float random_number(uint step, uint stream, uvec2 key) {
  uvec4 counter = uvec4(step, stream, 0, 0);
  for (uint round = 0; round < 10; ++round) {
    uint high_x, low_x, high_z, low_z;
    umulExtended(0xD2511F53u, counter.x, high_x, low_x);
    umulExtended(0xCD9E8D57u, counter.z, high_z, low_z);
    counter = uvec4(high_z ^ counter.y ^ key.x, low_z, high_x ^ counter.w ^ key.y, low_x);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return (float(counter.x >> 9) + 0.5) * 1.1920928955078125e-7;  // 2^-23
}

// Subtracts weights until `rest` is negative; where rounding leaves a rest, finds the last nonzero
// weight.
#define TAKE_WEIGHTS(COUNT, WEIGHT_OF_I, FOUND) \
  for (uint i = 0; i < (COUNT); ++i) {          \
    float weight_ = WEIGHT_OF_I;                \
    if (weight_ > 0.0) {                        \
      FOUND = i;                                \
      rest_before = rest;                       \
      rest -= weight_;                          \
      if (rest < 0.0) break;                    \
    }                                           \
  }

// The id at which the sum of weights exceeds share * total.
uint draw(float share) {
  // First the piece of the list of chunks, then the chunk in the piece.
  uint per_piece = (params.chunks + PIECES - 1) / PIECES;
  for (uint p = LANE; p < PIECES; p += LOCAL_SIZE) {
    float sum = 0.0;
    uint end = min((p + 1) * per_piece, params.chunks);
    for (uint c = p * per_piece; c < end; ++c) sum += chunk_weight[c];
    piece_weight[p] = sum;
  }
  barrier();
  if (LANE == 0) {
    float total = 0.0;
    for (uint p = 0; p < PIECES; ++p) total += piece_weight[p];
    float rest = share * total, rest_before = rest;
    uint p = 0, c = 0;
    TAKE_WEIGHTS(PIECES, piece_weight[i], p)
    rest = rest_before;
    uint first = p * per_piece;
    TAKE_WEIGHTS(min(per_piece, params.chunks - first), chunk_weight[first + i], c)
    chosen_chunk = first + c;
    chosen_rest = rest_before;
  }
  barrier();

  // First the piece of the chunk, then the id in the piece.
  uint begin = chosen_chunk * params.chunk, ids = params.chunk / PIECES;
  for (uint p = LANE; p < PIECES; p += LOCAL_SIZE) {
    float sum = 0.0;
    uint end = min(begin + (p + 1) * ids, params.vocabulary);
    for (uint id = begin + p * ids; id < end; ++id) {
      float logit = logit_at(id);
      if (kept(logit)) sum += weight_of(logit);
    }
    piece_weight[p] = sum;
  }
  barrier();
  uint found = 0;
  if (LANE == 0) {
    float rest = chosen_rest, rest_before = rest;
    uint p = 0, step = 0;
    TAKE_WEIGHTS(PIECES, piece_weight[i], p)
    rest = rest_before;
    begin += p * ids;
    TAKE_WEIGHTS(min(ids, params.vocabulary - begin),
                 kept(logit_at(begin + i)) ? weight_of(logit_at(begin + i)) : 0.0, step)
    found = begin + step;
  }
  return found;
}

// The smallest id with the largest logit.
uint greedy() {
  uint c = NO_ID >> 8;
  for (uint i = LANE; i < params.chunks; i += LOCAL_SIZE) {
    if (chunk_largest[i] == largest) c = min(c, i);
  }
  c = workgroup_min(c);
  uint best = NO_ID >> 8, end = min((c + 1) * params.chunk, params.vocabulary);
  for (uint id = c * params.chunk + LANE; id < end; id += LOCAL_SIZE) {
    if (logit_at(id) == largest) best = min(best, id);
  }
  return workgroup_min(best);
}

uint choose() {
  float temperature = SETTINGS.temperature;
  if (largest == NEVER) return 0;
  if (!(temperature > 0.0)) return greedy();
  inverse_temperature = 1.0 / temperature;

  uint k = SETTINGS.top_k;
  if (k > 0 && k < params.vocabulary) least = search_logits(float(k), BY_COUNT);
  float total = weigh_chunks();
  float top_p = SETTINGS.top_p, typical_p = SETTINGS.typical_p;
  float min_p = SETTINGS.min_p;
  bool changed = false;
  if (top_p < 1.0) {
    least = search_logits(top_p * total, BY_WEIGHT);
    changed = true;
  }
  if (min_p > 0.0) {
    least = max(least, min(rank_of(largest), rank_of(largest + log(min_p) * temperature)));
    changed = true;
  }
  if (changed) total = weigh_chunks();
  if (typical_p < 1.0) {
    entropy = sum_surprisal() / total;
    least_typical = search(~0x7f800000u, NO_ID, typical_p * total, BY_TYPICAL, false);
    weigh_chunks();
  }
  uvec2 seed = uvec2(SETTINGS.seed_low, SETTINGS.seed_high);
  uint step = AT(control, params.counts + row);
  return draw(random_number(step, SETTINGS.stream, seed));
}

// Feeds the choice to the next step.
void advance(uint token) {
  uint count = AT(control, params.counts + row), position = AT(control, params.positions + row);
  position += AT(control, params.fed + row);
  AT(control, params.tokens + row) = token;
  AT(control, params.positions + row) = position;
  AT(control, params.history + row * params.history_capacity + count % params.history_capacity) =
      token;
  AT(control, params.counts + row) = count + 1;
  AT(progress, 2 * params.rows + row * params.ring + count % params.ring) = token;
  bool last = position >= SETTINGS.last_position || count + 1 >= SETTINGS.last_count;
  uint stopped = last ? SAMPLE_LIMIT : SAMPLE_RUNNING;
  uint stops = min(AT(control, params.stops), params.stop_capacity);
  for (uint i = 1; i <= stops; ++i) {
    if (AT(control, params.stops + i) == token) stopped = SAMPLE_STOP_ID;
  }
  AT(control, params.stopped + row) = stopped;
  AT(control, params.fed + row) = stopped == SAMPLE_RUNNING ? 1 : 0;
}

void serve_row() {
  bool running = AT(control, params.stopped + row) == SAMPLE_RUNNING;
  largest = NEVER;
  least = least_typical = 0;
  for (uint c = LANE; c < params.chunks; c += LOCAL_SIZE) {
    vec2 chunk = AT(stats, row * params.chunks + c);
    chunk_largest[c] = chunk.x;
    largest = max(largest, chunk.x);
    if (chunk.y < 0.0) lost = true;
  }
  barrier();
  bool chooses = running && !lost;
  largest = workgroup_max(largest);
  uint token = chooses ? choose() : 0;
  if (LANE == 0) {
    if (chooses) {
      advance(token);
    } else if (running) {
      AT(control, params.stopped + row) = SAMPLE_NOT_FINITE;
    }
    lost = false;
    AT(progress, 2 * row) = AT(control, params.counts + row);
    AT(progress, 2 * row + 1) = AT(control, params.stopped + row);
  }
}

void main() {
  if (LANE == 0) lost = false;
  barrier();
  for (row = gl_WorkGroupID.x; row < params.rows; row += gl_NumWorkGroups.x) {
    serve_row();
    barrier();
  }
}
