// Copies columns of one tensor into columns of another, bit by bit.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "copy.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

PARAMS(CopyColumnsParams)
BUFFER(0, readonly, x, uint)
BUFFER(1, writeonly, y, uint)

void main() {
  uint at = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * LOCAL_SIZE +
            gl_LocalInvocationIndex;
  if (at >= params.count) return;
  uint line = at / params.columns, column = at % params.columns;
  uint row = line / params.blocks, block = line % params.blocks;
  AT(y, row * params.y_stride + params.y_first + block * params.y_step + column) =
      AT(x, row * params.x_stride + params.x_first + block * params.x_step + column);
}
