// The tokens by which a completion may continue under its grammar.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mulciber/grammar.h"
#include "text/grammar/token_masks.h"

namespace mulciber {

/// A model's tokens, and the token masks of the grammars used last. Not thread-safe.
class GrammarVocabulary {
 public:
  /// vocabulary: columns of the model's logits. The tokens' bytes are collected when they are first
  /// needed.
  GrammarVocabulary(std::shared_ptr<const Tokenizer> tokenizer, uint32_t vocabulary)
      : tokenizer_(std::move(tokenizer)), vocabulary_(vocabulary) {}

  std::shared_ptr<TokenMasks> masks(const Grammar& grammar);

 private:
  static constexpr size_t kKept = 4;

  std::shared_ptr<const Tokenizer> tokenizer_;
  uint32_t vocabulary_;
  std::shared_ptr<const TokenTree> tree_;
  /// Most recently used first. Each automaton is kept beside its masks, so that no other automaton
  /// can get its address.
  std::list<std::pair<std::shared_ptr<const Automaton>, std::shared_ptr<TokenMasks>>> kept_;
};

/// Follows a completion through its grammar, token by token.
class CompletionGrammar {
 public:
  /// ends: ids that end a text.
  CompletionGrammar(std::shared_ptr<TokenMasks> masks, std::vector<uint32_t> ends);

  /// A bit for each id that may come next, valid until the next call. No value: the text is
  /// complete, and nothing may follow. Throws ModelError where no id may follow an incomplete
  /// text.
  std::optional<std::span<const uint32_t>> next();
  /// Whether next() allowed an id.
  bool allows(uint32_t id) const {
    return id / 32 < mask_.size() && (mask_[id / 32] >> (id % 32) & 1) != 0;
  }
  /// Appends an id. Throws ModelError where the grammar does not allow it; such an id is chosen
  /// only where no allowed id has a probability.
  void take(uint32_t id);

 private:
  std::shared_ptr<TokenMasks> masks_;
  std::vector<uint32_t> ends_;
  TokenMasks::Position position_;
  TokenMask mask_;
};

}  // namespace mulciber
