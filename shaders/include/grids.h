// The memory layout of rows of ggml's IQ2 and IQ3, for GLSL and C++
// (docs/internals/quantization.md). An entry of the type's table (grid_tables.h), its grid, has the
// magnitudes of 8 or 4 neighbours; the row has the entries' numbers, and signs. A row is four runs
// of 32-bit words, and padding to 16 bytes:
//   indices       per 32 elements a byte for each entry, the lower eight bits of its number
//   signs         per 32 elements a word: a bit for each element; or seven of eight bits, of which
//                 an even number is set, and from bit 28 on the scale of the 32 (IQ2_XXS, IQ3_XXS)
//                 or the ninth bits of the entries' numbers (IQ2_XS)
//   block scales  per 32 elements a nibble for either half; of IQ2_S and IQ3_S a byte more, with
//                 the higher bits of the entries' numbers, two or one of each
//   super scales  per super-block of 256 elements an f32
// A value is super scale * (2 * block scale + 1) * magnitude, with its sign.
#ifndef MULCIBER_GRIDS_H
#define MULCIBER_GRIDS_H

// Values of WEIGHT_FORMAT (blocks.h) in rows for these types.
#define GRID_IQ2_XXS 1u
#define GRID_IQ2_XS 2u
#define GRID_IQ2_S 3u
#define GRID_IQ3_XXS 4u
#define GRID_IQ3_S 5u

// Elements per entry.
#define GRID_LENGTH(FORMAT) ((FORMAT) <= GRID_IQ2_S ? 8u : 4u)
#define GRID_INDEX_WORDS(FORMAT) ((FORMAT) <= GRID_IQ2_S ? 1u : 2u)
#define GRID_PACKS_SIGNS(FORMAT) ((FORMAT) != GRID_IQ2_S && (FORMAT) != GRID_IQ3_S)
// Bits of the block scales of 32 elements.
#define GRID_SCALE_BITS(FORMAT) ((FORMAT) == GRID_IQ2_XS ? 8u : GRID_PACKS_SIGNS(FORMAT) ? 0u : 16u)

// Words from the start of a row of DEPTH elements to its runs.
#define GRID_SIGNS_AT(FORMAT, DEPTH) ((DEPTH) / 32 * GRID_INDEX_WORDS(FORMAT))
#define GRID_SCALES_AT(FORMAT, DEPTH) (GRID_SIGNS_AT(FORMAT, DEPTH) + (DEPTH) / 32)
#define GRID_SUPER_SCALES_AT(FORMAT, DEPTH) \
  (GRID_SCALES_AT(FORMAT, DEPTH) + (DEPTH) / 32 * GRID_SCALE_BITS(FORMAT) / 32)
#define GRID_ROW_WORDS(FORMAT, DEPTH) \
  ((GRID_SUPER_SCALES_AT(FORMAT, DEPTH) + (DEPTH) / 256 + 3) / 4 * 4)

#endif
