// The extents in which a product's tiles need no checks: specialization constant of kernels whose
// tiles may exceed the matrices. Include before matmul_operands.glsl.
#ifndef MULCIBER_WHOLE_TILES_GLSL
#define MULCIBER_WHOLE_TILES_GLSL

layout(constant_id = MATMUL_WHOLE) const uint WHOLE_EXTENTS = 0;
#define WHOLE_ROWS ((WHOLE_EXTENTS & MATMUL_WHOLE_ROWS) != 0)
#define WHOLE_COLUMNS ((WHOLE_EXTENTS & MATMUL_WHOLE_COLUMNS) != 0)
#define WHOLE_DEPTH ((WHOLE_EXTENTS & MATMUL_WHOLE_DEPTH) != 0)

// Definitions for matmul_operands.glsl.
#define WITHIN_COLUMNS(COLUMN) (WHOLE_COLUMNS || (COLUMN) < params.columns)
#define BEYOND_Y(ROW, COLUMN) (!WHOLE_ROWS && (ROW) >= params.rows || !WITHIN_COLUMNS(COLUMN))

#endif
