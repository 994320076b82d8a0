// Names that a row of kernels.def uses in CONSTANTS(NAME = value, ...), for both languages: GLSL
// declares a constant of a row by ROW_CONSTANT(NAME, default), C++ reads it by
// kernel.constant(RowConstant::NAME).
#ifndef MULCIBER_SHADERS_ROW_CONSTANTS_H
#define MULCIBER_SHADERS_ROW_CONSTANTS_H

// Ids of specialization constants. The runtime sets LOCAL_SIZE for every kernel; an op's own ids
// begin at CONSTANT_OP (interface.h) and end below 64.
#define ID_OF_LOCAL_SIZE 0   // invocations per workgroup; 0 stands for the subgroup size
#define ID_OF_TILE_M 64      // rows of y per workgroup
#define ID_OF_TILE_N 65      // columns of y per workgroup
#define ID_OF_TILE_K 66      // depth of the tiles in shared memory
#define ID_OF_THREAD_M 67    // rows of y per invocation
#define ID_OF_THREAD_N 68    // columns of y per invocation
#define ID_OF_BLOCK_M 69     // rows of y per subgroup
#define ID_OF_WIDE_LOADS 70  // 1: W is read 16 bytes at a time, 0: word by word
#define ID_OF_WORDS 71       // words of the four of a block type's group, read at a time
#define ID_OF_MOST_WORDS 72  // like WORDS; narrow subgroups take fewer
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
#define ID_OF_LEAST_KEYS 83   // least number of keys in a split

// Facts for the op's C++ code only, which no module has.
#define ID_OF_HOST_FACTS 128   // the first id
#define ID_OF_MOST_ROWS 128    // the op chooses the rows of y per workgroup, up to this
#define ID_OF_BLOCK_TYPES 129  // block types that one W may mix; 1 by default
#define ID_OF_KEEPS_ROWS 130   // 1: whole rows stay in registers, so their length is a constant
#define ID_OF_ELEMENTS 131     // elements of the result per invocation
// Workgroups that keep the device busy: the keys of a tile of queries are split until there are
// this many, or until a split has the least number of keys that pays.
#define ID_OF_WORKGROUPS 132
// LOCAL_SIZE is at most this many of the device's subgroups, so that a subgroup's share of the tile
// does not become too small.
#define ID_OF_MOST_SUBGROUPS 133

#ifdef __cplusplus
// clang-format off
// All names, for the tables of runtime/kernel.h and kernel.cpp.
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
