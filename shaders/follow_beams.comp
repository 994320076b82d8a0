// Moves the state of every hypothesis into the row to which beam search moved the hypothesis. One
// column of one item per invocation, which loads all rows before it stores the first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "beam.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

layout(constant_id = BEAM_BEAMS) const uint BEAMS = 1;

PARAMS(FollowBeamsParams)
// Control, under the types of its contents.
BUFFER(0, readonly, state, uint)
BUFFER(0, readonly, items, BeamItem)
BUFFER(1, , rows, uint)

void main() {
  const uint column = gl_GlobalInvocationID.x;
  if (column >= params.columns) return;
  // Several states of the whole batch may follow one another.
  const uint group = gl_WorkGroupID.y;
  const uint item = group % params.batch;
  if (AT(items, params.items + item).status != BEAM_SEARCHES) return;
  const uint position = AT(state, params.positions + item * BEAMS);
  const uint parents = params.history_parents + (position * params.batch + item) * BEAMS;
  uint from[BEAMS];
  [[unroll]] for (uint beam = 0; beam < BEAMS; ++beam) {
    const uint parent = AT(state, parents + beam) - item * BEAMS;
    from[beam] = AT(rows, (group * BEAMS + parent) * params.columns + column);
  }
  [[unroll]] for (uint beam = 0; beam < BEAMS; ++beam) {
    AT(rows, (group * BEAMS + beam) * params.columns + column) = from[beam];
  }
}
