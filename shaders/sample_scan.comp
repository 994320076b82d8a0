// Applies penalties, biases, banned ids and masks to the logits, then computes the largest logit
// and the sum of exponentials of each chunk of a row, or 0 and -1 where a logit is NaN or infinity.
// One workgroup per chunk. Counts and bans of the chunk's ids are first collected in shared memory
// as integers, whose order does not matter.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef ROW_PER_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "interface.h"
#include "sample.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

PARAMS(SampleParams)
BUFFER(0, , logits, float)
BUFFER(1, readonly, control, uint)
BUFFER(1, readonly, settings, SampleSettings)  // shares the binding of control
BUFFER(2, writeonly, chunks, vec2)

#include "logits.glsl"
#ifdef ROW_PER_SUBGROUP
#define LANE gl_SubgroupInvocationID
#define LANES gl_SubgroupSize
float chunk_add(float value) { return subgroupAdd(value); }
float chunk_max(float value) { return subgroupMax(value); }
void settle() {
  subgroupMemoryBarrierShared();
  subgroupBarrier();
}
#else
#include "reduce.glsl"
#define LANE gl_LocalInvocationIndex
#define LANES LOCAL_SIZE
float chunk_add(float value) { return workgroup_add(value); }
float chunk_max(float value) { return workgroup_max(value); }
void settle() { barrier(); }
#endif

const uint BANNED = 0x80000000u;
shared uint marks[SAMPLE_MOST_CHUNK];   // per id: its count in the window, and whether it is banned
shared float added[SAMPLE_MOST_CHUNK];  // addend of each id

uint row;

#define SETTINGS AT(settings, params.settings + row)

void serve_chunk(uint chunk) {
  uint first = row * params.vocabulary;
  uint begin = chunk * params.chunk, end = min(begin + params.chunk, params.vocabulary);

  float repetition = SETTINGS.repetition_penalty, presence = SETTINGS.presence_penalty;
  float frequency = SETTINGS.frequency_penalty;
  uint count = AT(control, params.counts + row);
  uint window = min(min(count, params.history_capacity), SETTINGS.penalty_window);
  if (repetition == 1.0 && presence == 0.0 && frequency == 0.0) window = 0;
  uint banned = min(AT(control, params.banned), params.banned_capacity);
  bool marked = window > 0 || banned > 0;
  if (marked) {
    for (uint i = LANE; i < params.chunk; i += LANES) marks[i] = 0;
    settle();
    for (uint age = LANE; age < window; age += LANES) {
      uint token = AT(control, params.history + row * params.history_capacity +
                                   (count - 1 - age) % params.history_capacity);
      if (token >= begin && token < end) atomicAdd(marks[token - begin], 1);
    }
    settle();
    for (uint i = LANE; i < banned; i += LANES) {
      uint id = AT(control, params.banned + 1 + i);
      if (id >= begin && id < end) atomicOr(marks[id - begin], BANNED);
    }
    settle();
  }

  uint biases = params.biases + row * (1 + 2 * params.bias_capacity), biased = 0;
  if (params.bias_capacity > 0) biased = min(AT(control, biases), params.bias_capacity);
  if (biased > 0) {
    for (uint i = LANE; i < params.chunk; i += LANES) added[i] = 0.0;
    settle();
    for (uint i = LANE; i < biased; i += LANES) {
      uint id = AT(control, biases + 1 + i);
      if (id >= begin && id < end)
        added[id - begin] = uintBitsToFloat(AT(control, biases + 1 + params.bias_capacity + i));
    }
    settle();
  }

  uint mask = params.masks + row * (1 + params.mask_words);
  bool masked = params.mask_words > 0 && AT(control, mask) != 0;

  float largest = NEVER;
  bool lost = false;
  for (uint id = begin + LANE; id < end; id += LANES) {
    float value = AT(logits, first + id);
    lost = lost || not_a_logit(value);
    if (marked && marks[id - begin] != 0) {
      uint mark = marks[id - begin];
      value = value > 0.0 ? value / repetition : value * repetition;
      value = min(value - (presence + frequency * float(mark)), LARGEST);
      if ((mark & BANNED) != 0) value = NEVER;
      AT(logits, first + id) = value;
    }
    if (biased > 0 && added[id - begin] != 0.0 && value != NEVER) {
      float bias = added[id - begin];
      value = bias < -LARGEST ? NEVER : clamp(value + bias, -LARGEST, LARGEST);
      AT(logits, first + id) = value;
    }
    if (masked && (AT(control, mask + 1 + id / 32) >> (id % 32) & 1) == 0) {
      value = NEVER;
      AT(logits, first + id) = value;
    }
    if (!lost) largest = max(largest, value);  // max() of a NaN is undefined
  }
  largest = chunk_max(largest);
  float temperature = SETTINGS.temperature;
  float inverse_temperature = temperature > 0.0 ? 1.0 / temperature : 1.0;
  float origin = largest == NEVER ? 0.0 : largest;
  float sum = 0.0;
  for (uint id = begin + LANE; id < end; id += LANES) {
    sum += exp((AT(logits, first + id) - origin) * inverse_temperature);
  }
  sum = chunk_add(lost ? -LOST : sum);
  if (LANE == 0)
    AT(chunks, row * params.chunks + chunk) = sum < 0.0 ? vec2(0.0, -1.0) : vec2(largest, sum);
}

void main() {
  for (row = gl_WorkGroupID.y; row < params.rows; row += gl_NumWorkGroups.y) {
    for (uint chunk = params.first_chunk + gl_WorkGroupID.x; chunk < params.end_chunk;
         chunk += gl_NumWorkGroups.x) {
      serve_chunk(chunk);
      settle();
    }
  }
}
