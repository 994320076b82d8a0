// Patterns of keys for sparse attention, made on the CPU, for AttentionOptions::pattern and global
// tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

/// A pattern and its words for control. Time and memory of attention grow with pairs().
struct BlockSparseKeys {
  KeyPattern pattern;
  std::vector<uint32_t> words;    // at AttentionControl::pattern
  std::vector<uint32_t> globals;  // at AttentionControl::globals; empty: no global tokens

  /// Pairs of position and key in the lists.
  uint64_t pairs() const;
};

/// Makes a pattern from lists. lists[b]: numbers of the key blocks that positions [b *
/// block_queries, (b + 1) * block_queries) see, in ascending order. With blocks of 1 by 1 a list
/// has the neighbours of a node of a graph. Throws ShapeError on a list that is not ascending, or
/// an empty block.
BlockSparseKeys block_sparse_keys(uint32_t block_queries, uint32_t block_keys,
                                  const std::vector<std::vector<uint32_t>>& lists);

/// A window and global tokens; set AttentionOptions::window to `window`, along with global_tokens.
/// The lists name every block of `block` keys of which a query in a block of `block` positions sees
/// one. Source: Beltagy et al. 2020, arXiv:2004.05150.
BlockSparseKeys longformer_keys(uint32_t length, uint32_t window,
                                const std::vector<uint32_t>& global_tokens, uint32_t block = 64);

/// Window, random and global blocks. Source: Zaheer et al. 2020, arXiv:2007.14062.
BlockSparseKeys bigbird_keys(uint32_t length, const BigBird& bigbird);

}  // namespace mulciber
