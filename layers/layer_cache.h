// What a layer keeps of the tokens of a sequence between passes. Everything that allocates, pages,
// shares, saves or truncates such memory reads this description and knows no kind of layer.
#pragma once

#include "runtime/tensor.h"

namespace mulciber {

struct LayerCache {
  enum class Kind {
    /// Columns for each token, which passes append: keys and values. They can be cut behind any
    /// token, and kept in pages that sequences share.
    kTokens,
    /// Columns for each sequence, which passes replace: a recurrent state, the tail of a
    /// convolution. They cannot return to an earlier token.
    kState,
  };
  Kind kind = Kind::kTokens;
  uint64_t columns = 0;  // kState: rounded up so that every row is aligned for a descriptor
  DataType type = DataType::kF32;
  /// kTokens: tokens that a token sees, itself included; 0: all before it.
  uint32_t window = 0;

  bool keeps_tokens() const { return kind == Kind::kTokens; }
  /// Rows of a sequence of `tokens` tokens.
  uint64_t rows(uint64_t tokens) const { return keeps_tokens() || tokens == 0 ? tokens : 1; }
  /// Bytes of such a sequence.
  uint64_t bytes(uint64_t tokens) const { return rows(tokens) * row_bytes(type, columns); }

  /// The tensor of `sequences` contexts, without memory: (sequences, context, columns), or
  /// (sequences, 1, columns) of states.
  Tensor contexts(uint64_t sequences, uint64_t context) const;
  /// The tensor of kTokens in pages, without memory: (pages, positions, columns).
  Tensor pages(uint64_t pages, uint64_t positions) const;
};

}  // namespace mulciber
