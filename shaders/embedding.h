// Token embedding: its parameters.
#ifndef MULCIBER_SHADERS_EMBEDDING_H
#define MULCIBER_SHADERS_EMBEDDING_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constant: 1: position rows are added.
#define EMBEDDING_POSITIONS (CONSTANT_OP + 0)

#define EMBEDDING_NO_POSITIONS 0xffffffffu

// A node serves the tokens whose id is in its slice of the table and whose position is in its slice
// of the positions.
SHADER_STRUCT(EmbeddingParams) {
  uint tokens;  // token rows of y in this node
  uint columns;
  uint first_token;  // index of this node's token 0 in the whole result
  uint row_length;   // tokens per row of the result
  uint ids;          // word of control
  uint vocabulary;
  uint table_begin;  // first id of the slice
  uint table_end;
  uint first_positions;  // word of control, or EMBEDDING_NO_POSITIONS
  uint position_stride;  // 0: one for all rows, 1: one for each
  uint positions;
  uint position_begin;  // first position of the slice
  uint position_end;
  float scale;
}
SHADER_STRUCT_END

#endif
