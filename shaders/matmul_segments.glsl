// A grouped GEMM: the rows of W are up to three segments, each of its own block type, and the
// workgroups of a dispatch are divided among them. A kernel defines multiply(), and its main()
// calls multiply_segment(), which compiles the code of each type separately.
#ifndef MULCIBER_MATMUL_SEGMENTS_GLSL
#define MULCIBER_MATMUL_SEGMENTS_GLSL

// Computes columns [first, end) of y, whose rows of W have `format` and begin at word `at`. group:
// index of this workgroup among those of the segment.
void multiply(uint format, uint first, uint end, uint at, uint group);

#ifdef WEIGHT_BLOCKS
layout(constant_id = MATMUL_SECOND_FORMAT) const uint SECOND_FORMAT = 0;
layout(constant_id = MATMUL_THIRD_FORMAT) const uint THIRD_FORMAT = 0;

// tile: columns per workgroup.
void multiply_segment(uint tile) {
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
void multiply_segment(uint tile) { multiply(0, 0, params.columns, 0, gl_WorkGroupID.x); }
#endif

#endif
