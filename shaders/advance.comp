// Every running sequence takes its best candidate: it is the token to be fed next, and the host may read it. One
// workgroup serves all rows, because the running ones are counted.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "sequence.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

PARAMS(AdvanceParams)
BUFFER(0, readonly, candidates, uint)
BUFFER(1, , state, uint)
BUFFER(2, writeonly, progress, uint)

shared uint running;

bool ends(uint id) {
  uint count = min(AT(state, params.stops), params.stop_capacity);
  for (uint i = 1; i <= count; ++i) {
    if (AT(state, params.stops + i) == id) return true;
  }
  return false;
}

// Returns the row's state afterwards.
uint take(uint row) {
  uint id = AT(candidates, row * params.candidates * 2 + 1);
  uint position = AT(state, params.positions + row) + AT(state, params.fed + row);
  uint count = AT(state, params.counts + row);
  AT(state, params.tokens + row) = id;
  AT(state, params.positions + row) = position;
  AT(state, params.fed + row) = 1;
  AT(state, params.counts + row) = count + 1;
  uint entry = SEQUENCE_PROGRESS_ROWS + 2 * params.rows + row * params.ring + count % params.ring;
  AT(progress, entry) = id;
  if (ends(id)) return SEQUENCE_STOPPED;
  return count + 1 >= AT(state, params.limits + row) || position >= params.capacity ? SEQUENCE_LIMITED
                                                                                   : SEQUENCE_RUNNING;
}

void main() {
  if (gl_LocalInvocationID.x == 0) running = 0;
  memoryBarrierShared();
  barrier();
  for (uint row = gl_LocalInvocationID.x; row < params.rows; row += LOCAL_SIZE) {
    uint now = AT(state, params.states + row);
    if (now == SEQUENCE_RUNNING) {
      now = take(row);
      AT(state, params.states + row) = now;
    }
    if (now == SEQUENCE_RUNNING) atomicAdd(running, 1);
    AT(progress, SEQUENCE_PROGRESS_ROWS + row) = AT(state, params.counts + row);
    AT(progress, SEQUENCE_PROGRESS_ROWS + params.rows + row) = now;
  }
  memoryBarrierShared();
  barrier();
  if (gl_LocalInvocationID.x == 0) {
    uint steps = AT(state, params.steps) + 1;
    AT(state, params.steps) = steps;
    AT(progress, 0) = steps;
    AT(progress, 1) = running;
  }
}
