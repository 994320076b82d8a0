// Patterns of keys for sparse attention, made on the host: what AttentionOptions::pattern and
// global tokens read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

/// A pattern and the words that go to control. Time and memory of attention grow with pairs().
struct BlockSparseKeys {
  KeyPattern pattern;
  std::vector<uint32_t> words;    // at AttentionControl::pattern
  std::vector<uint32_t> globals;  // at AttentionControl::globals; empty: no global tokens

  /// Pairs of position and key that the lists hold.
  uint64_t pairs() const;
};

/// lists[b]: numbers of the key blocks that positions [b * block_queries, (b + 1) * block_queries)
/// look at, in ascending order. With blocks of 1 by 1: the neighbours of each node of a graph.
/// Throws ShapeError on a list that is not ascending, or a block of nothing.
BlockSparseKeys block_sparse_keys(uint32_t block_queries, uint32_t block_keys,
                                  const std::vector<std::vector<uint32_t>>& lists);

/// Window and global tokens; `window` as AttentionOptions::window, which must be set along with
/// global_tokens. Lists name every block of `block` keys in which a query of a block of as many
/// positions sees one. Source: Beltagy et al. 2020, arXiv:2004.05150.
BlockSparseKeys longformer_keys(uint32_t length, uint32_t window,
                                const std::vector<uint32_t>& global_tokens, uint32_t block = 64);

/// Source: Zaheer et al. 2020, arXiv:2007.14062.
BlockSparseKeys bigbird_keys(uint32_t length, const BigBird& bigbird);

}  // namespace mulciber
