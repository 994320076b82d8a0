// Where the rows of W are of up to three block types, the workgroups of a dispatch are shared out
// over them: a kernel defines multiply(), and its main() calls multiply_part(). Each type's code is
// compiled by itself.
#ifndef MULCIBER_MATMUL_PARTS_GLSL
#define MULCIBER_MATMUL_PARTS_GLSL

// Columns [first, end) of y; the rows of W for them are of `format` and begin at word `at`. group:
// the number of this workgroup among those that share them.
void multiply(uint format, uint first, uint end, uint at, uint group);

#ifdef WEIGHT_BLOCKS
layout(constant_id = MATMUL_SECOND_FORMAT) const uint SECOND_FORMAT = 0;
layout(constant_id = MATMUL_THIRD_FORMAT) const uint THIRD_FORMAT = 0;

// tile: columns of a workgroup.
void multiply_part(uint tile) {
  uint group = gl_WorkGroupID.x;
  if (SECOND_FORMAT == 0) {
    multiply(FORMAT, 0, params.columns, 0, group);
  } else {
    uint second_end = THIRD_FORMAT != 0 ? params.third_column : params.columns;
    uint first_groups = (params.second_column + tile - 1) / tile;
    uint second_groups = (second_end - params.second_column + tile - 1) / tile;
    if (group < first_groups) {
      multiply(FORMAT, 0, params.second_column, 0, group);
    } else if (THIRD_FORMAT == 0 || group < first_groups + second_groups) {
      multiply(SECOND_FORMAT, params.second_column, second_end, params.second_at,
               group - first_groups);
    } else {
      multiply(THIRD_FORMAT, params.third_column, params.columns, params.third_at,
               group - first_groups - second_groups);
    }
  }
}
#else
void multiply_part(uint tile) { multiply(0, 0, params.columns, 0, gl_WorkGroupID.x); }
#endif

#endif
