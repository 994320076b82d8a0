// The k best log probabilities of each row: one workgroup per row, shared memory only.
//
// Each invocation owns every LOCAL_SIZE-th id and knows the best of its ids that is not taken yet.
// A round takes the best of the workgroup; only its owner searches its own ids again.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "beam.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

PARAMS(TopKParams)
BUFFER(0, readonly, logits, float)
#define LOGIT(I) AT(logits, I)
BUFFER(1, readonly, control, uint)
BUFFER(2, writeonly, result, uint)

#include "reduce.glsl"
#include "logits.glsl"
#include "top_k.glsl"

shared float shared_value[LOCAL_SIZE];
shared uint shared_id[LOCAL_SIZE];

Choice workgroup_best(Choice choice) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  shared_value[lane] = choice.value;
  shared_id[lane] = choice.id;
  barrier();
  for (uint step = LOCAL_SIZE / 2; step > 0; step /= 2) {
    if (lane < step) {
      Choice best = better(Choice(shared_value[lane], shared_id[lane]),
                           Choice(shared_value[lane + step], shared_id[lane + step]));
      shared_value[lane] = best.value;
      shared_id[lane] = best.id;
    }
    barrier();
  }
  return Choice(shared_value[0], shared_id[0]);
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  for (uint row = gl_WorkGroupID.x; row < params.rows; row += gl_NumWorkGroups.x) {
    uint first = params.first + row * params.row_stride;
    uint out_row = (params.result_row + row) * params.k;
    read_rules(row);
    uint forced = forced_id();
    if (forced != NO_ID) {
      for (uint rank = lane; rank < params.k; rank += LOCAL_SIZE)
        write_forced(out_row, rank, forced);
      continue;
    }

    // Finds the maximum, and the best id that the rules allow.
    float highest = NEVER;
    Choice own = Choice(NEVER, NO_ID);
    for (uint id = lane; id < params.vocabulary; id += LOCAL_SIZE) {
      float value = sanitized(LOGIT(first + id));
      highest = max(highest, value);
      consider(own, value, id);
    }
    highest = workgroup_max(highest);
    float origin = highest == NEVER ? 0.0 : highest, sum = 0;
    bool lost = false;
    for (uint id = lane; id < params.vocabulary; id += LOCAL_SIZE) {
      float value = LOGIT(first + id);
      lost = lost || not_a_logit(value);
      sum += exp(value - origin);
    }
    sum = workgroup_add(lost ? -LOST : sum);
    if (sum < 0.0) {
      for (uint rank = lane; rank < params.k; rank += LOCAL_SIZE) write_lost(out_row, rank);
      continue;
    }
    float log_sum = log(sum);

    uint rank = 0;
    for (; rank < params.k; ++rank) {
      Choice best = workgroup_best(own);
      if (best.id == NO_ID) break;
      if (lane == 0) write_choice(out_row, rank, best.value - highest - log_sum, best.id);
      if (best.id == own.id) {
        own = Choice(NEVER, NO_ID);
        for (uint id = lane; id < params.vocabulary; id += LOCAL_SIZE) {
          float value = sanitized(LOGIT(first + id));
          if (follows(value, id, best)) consider(own, value, id);
        }
      }
    }
    if (lane == 0) write_impossible(first, out_row, rank);
  }
}
