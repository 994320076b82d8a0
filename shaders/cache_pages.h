// A paged cache of keys and values: a row's positions are in pages of one pool; control holds the
// page numbers in the order of the positions (Kwon et al. 2023, arXiv:2309.06180).
#ifndef MULCIBER_SHADERS_CACHE_PAGES_H
#define MULCIBER_SHADERS_CACHE_PAGES_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Positions per page, if a row consists of whole pages; 0: a row's positions are contiguous. A
// constant of every op that reads or writes a cache.
#define CONSTANT_CACHE_PAGE (CONSTANT_OP + 29)

#ifndef __cplusplus
layout(constant_id = CONSTANT_CACHE_PAGE) const uint CACHE_PAGE = 0;
const uint PAGE_POSITIONS = CACHE_PAGE == 0u ? 1u : CACHE_PAGE;

// Word of control with the page of a position. table: first page of the first row; length:
// positions of a row.
#define PAGE_WORD(TABLE, ROW, LENGTH, POSITION) \
  ((TABLE) + (ROW) * ((LENGTH) / PAGE_POSITIONS) + (POSITION) / PAGE_POSITIONS)
// Index of a position in the pool.
#define PLACE_IN_PAGE(PAGE, POSITION) ((PAGE)*PAGE_POSITIONS + (POSITION) % PAGE_POSITIONS)
#endif

#endif
