// What an answer may go on with by its grammar.
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

/// The tokens of a model, and the grammars used last over them. Not thread-safe.
class GrammarVocabulary {
 public:
  /// vocabulary: of the model's logits. The tokens' bytes are looked up when they are first needed.
  GrammarVocabulary(std::shared_ptr<const Tokenizer> tokenizer, uint32_t vocabulary)
      : tokenizer_(std::move(tokenizer)), vocabulary_(vocabulary) {}

  std::shared_ptr<TokenMasks> masks(const Grammar& grammar);

 private:
  static constexpr size_t kKept = 4;

  std::shared_ptr<const Tokenizer> tokenizer_;
  uint32_t vocabulary_;
  std::shared_ptr<const TokenTree> tree_;
  /// The one used last first. Grammars are kept so that no other gets an address of theirs.
  std::list<std::pair<std::shared_ptr<const Automaton>, std::shared_ptr<TokenMasks>>> kept_;
};

/// An answer that grows token by token.
class AnswerGrammar {
 public:
  /// ends: ids that end a text.
  AnswerGrammar(std::shared_ptr<TokenMasks> masks, std::vector<uint32_t> ends);

  /// A bit for each id that may come next, until the next call; none: the answer is complete, and
  /// nothing may follow. Throws ModelError where nothing may follow and it is not complete.
  std::optional<std::span<const uint32_t>> next();
  /// Whether next() allowed an id.
  bool allows(uint32_t id) const {
    return id / 32 < mask_.size() && (mask_[id / 32] >> (id % 32) & 1) != 0;
  }
  /// Throws ModelError where the grammar does not allow the id, which is chosen only where no
  /// allowed one is possible.
  void take(uint32_t id);

 private:
  std::shared_ptr<TokenMasks> masks_;
  std::vector<uint32_t> ends_;
  TokenMasks::Position position_;
  TokenMask mask_;
};

}  // namespace mulciber
