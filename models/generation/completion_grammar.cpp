#include "models/generation/completion_grammar.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// The end of a text, for a message.
std::string tail_of(const std::string& text) {
  constexpr size_t kShown = 40;
  return text.empty()
             ? std::string("at the beginning")
             : fmt::format("behind '{}'", printable(std::string_view(text).substr(
                                              text.size() - std::min(text.size(), kShown))));
}

}  // namespace

std::shared_ptr<TokenMasks> GrammarVocabulary::masks(const Grammar& grammar) {
  const auto known = std::ranges::find(
      kept_, grammar.automaton(), [](const auto& pair) -> const auto& { return pair.first; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front().second;
  }
  if (!tree_) tree_ = std::make_shared<const TokenTree>(*tokenizer_);
  kept_.emplace_front(grammar.automaton(),
                      std::make_shared<TokenMasks>(grammar.automaton(), tree_, vocabulary_));
  if (kept_.size() > kKept) kept_.pop_back();
  return kept_.front().second;
}

CompletionGrammar::CompletionGrammar(std::shared_ptr<TokenMasks> masks, std::vector<uint32_t> ends)
    : masks_(std::move(masks)), ends_(std::move(ends)), position_(masks_->begin()) {}

std::optional<std::span<const uint32_t>> CompletionGrammar::next() {
  mask_ = masks_->allowed(position_);
  const bool complete = masks_->accepts(position_);
  const bool goes_on = std::ranges::any_of(mask_, [](uint32_t word) { return word != 0; });
  if (!goes_on && complete) return std::nullopt;
  for (const uint32_t end : ends_) {
    if (end / 32 >= mask_.size()) continue;
    // An id that is a piece of text as well ends the completion all the same.
    mask_[end / 32] &= ~(1u << (end % 32));
    if (complete) mask_[end / 32] |= 1u << (end % 32);
  }
  const bool possible = std::ranges::any_of(mask_, [](uint32_t word) { return word != 0; });
  if (possible) return mask_;
  throw ModelError("grammar",
                   fmt::format("no token of the model leads on {}", tail_of(position_.text())),
                   "let the grammar allow texts that the model's tokens can spell, with no more "
                   "than 500 rules open in one another");
}

void CompletionGrammar::take(uint32_t id) {
  const bool ends = std::ranges::find(ends_, id) != ends_.end();
  if (ends && masks_->accepts(position_)) return;
  if (!masks_->push(position_, id))
    throw ModelError(
        "grammar",
        fmt::format("the tokens that it allows {} have no probability", tail_of(position_.text())),
        "take away biases and banned words that stand against it");
}

}  // namespace mulciber
