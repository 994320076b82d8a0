// Reorders the columns of each row, bit by bit.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "permute_columns.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

PARAMS(PermuteColumnsParams)
BUFFER(0, readonly, x, uint)
BUFFER(1, readonly, column_order, uint)
BUFFER(2, writeonly, y, uint)

void main() {
  uint at = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * LOCAL_SIZE +
            gl_LocalInvocationIndex;
  if (at >= params.count) return;
  uint column = at % params.columns;
  AT(y, at) = AT(x, at - column + AT(column_order, column));
}
