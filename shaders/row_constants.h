// Names of what a row of kernels.def says in CONSTANTS(NAME = value, ...), for both languages: GLSL
// declares a constant of a row by ROW_CONSTANT(NAME, default), C++ reads it by
// kernel.constant(RowConstant::NAME).
#ifndef MULCIBER_SHADERS_ROW_CONSTANTS_H
#define MULCIBER_SHADERS_ROW_CONSTANTS_H

// Ids of specialization constants. The runtime sets LOCAL_SIZE for every kernel; an op's own begin
// at CONSTANT_OP (interface.h) and end below 64.
#define ID_OF_LOCAL_SIZE 0   // invocations per workgroup; 0 stands for the subgroup size
#define ID_OF_TILE_M 64      // rows of y per workgroup
#define ID_OF_TILE_N 65      // columns of y per workgroup
#define ID_OF_TILE_K 66      // depth of the tiles in shared memory
#define ID_OF_THREAD_M 67    // rows of y per invocation
#define ID_OF_THREAD_N 68    // columns of y per invocation
#define ID_OF_BLOCK_M 69     // rows of y per subgroup
#define ID_OF_WIDE_LOADS 70  // 1: W is read 16 bytes at a time, 0: word by word
#define ID_OF_WORDS 71       // of the four of a group of a block type, read at a time
#define ID_OF_MOST_WORDS 72  // as WORDS; narrow subgroups take fewer
#define ID_OF_TILE_Q 73      // queries per workgroup
#define ID_OF_LANE_KEYS 74   // keys per lane and block of keys
#define ID_OF_UNROLL 75      // loads per invocation and loop iteration
#define ID_OF_TILE_ROWS 76   // rows per workgroup
#define ID_OF_CHUNK 77       // ids per chunk of the vocabulary
// Sizes of the fragments of matrix units: A is M x K, B is K x N, sums are M x N.
#define ID_OF_FRAGMENT_M 78
#define ID_OF_FRAGMENT_N 79
#define ID_OF_FRAGMENT_K 80
#define ID_OF_PLAIN_LANES 81  // invocations that share fragments where there are no matrix units
#define ID_OF_NORM_LANES 82   // invocations whose order a sum of squares keeps
#define ID_OF_LEAST_KEYS 83   // keys that a split has at least

// Facts for the op's host code alone, which no module knows.
#define ID_OF_HOST_FACTS 128   // the first
#define ID_OF_MOST_ROWS 128    // rows of y per workgroup are the op's choice, up to so many
#define ID_OF_BLOCK_TYPES 129  // block types that one W may be of; 1 where nothing is said
#define ID_OF_KEEPS_ROWS 130   // 1: whole rows stay in registers, so their length is compiled in
#define ID_OF_ELEMENTS 131     // of the result per invocation
// Workgroups that keep the device busy: the keys of a tile of queries are split until there are so
// many, or parts have the fewest keys that pay.
#define ID_OF_WORKGROUPS 132
// Of a workgroup: LOCAL_SIZE is no more than so many of the device's, for a subgroup's share of the
// tile must not become too small.
#define ID_OF_MOST_SUBGROUPS 133

#ifdef __cplusplus
// clang-format off
// All of them, for the tables that runtime/kernel.h and kernel.cpp make of the names.
#define ROW_CONSTANTS(X) \
  X(LOCAL_SIZE) X(TILE_M) X(TILE_N) X(TILE_K) X(THREAD_M) X(THREAD_N) X(BLOCK_M) X(WIDE_LOADS) \
  X(WORDS) X(MOST_WORDS) X(TILE_Q) X(LANE_KEYS) X(UNROLL) X(TILE_ROWS) X(CHUNK) X(MOST_ROWS) \
  X(BLOCK_TYPES) X(KEEPS_ROWS) X(ELEMENTS) X(WORKGROUPS) X(MOST_SUBGROUPS) \
  X(FRAGMENT_M) X(FRAGMENT_N) X(FRAGMENT_K) X(PLAIN_LANES) X(NORM_LANES) X(LEAST_KEYS)
// clang-format on
#else
#define ROW_CONSTANT(NAME, DEFAULT) layout(constant_id = ID_OF_##NAME) const uint NAME = DEFAULT
#endif

#endif
