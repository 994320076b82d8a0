// The exact bytes that each token adds to a text.
#include <algorithm>

#include "text/grammar/token_masks.h"
#include "text/token_stream.h"
#include "text/tokenizer.h"

namespace mulciber {
namespace {

/// Decodes tokens after another token, so that leading blanks of words are kept.
class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    before_ = tokenizer.encode("a", {.add_special = false});
    if (before_.size() > 1) before_.erase(before_.begin(), before_.end() - 1);
    shown_ = tokenizer.decode(before_, false);
  }

  std::string operator()(int32_t id) {
    const std::string_view piece = tokenizer_.piece(id);
    const auto& special = tokenizer_.special();
    if (piece.empty() || tokenizer_.is_special(id) || id == special.unk || id == special.pad)
      return {};
    before_.push_back(id);
    const std::string both = tokenizer_.decode(before_, false);
    before_.pop_back();
    if (!both.starts_with(shown_)) return {};
    return token_bytes(tokenizer_, id, both.substr(shown_.size()));
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> before_;
  std::string shown_;
};

std::vector<std::string> all_bytes(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens(static_cast<size_t>(tokenizer.vocab_size()));
  TokenBytes bytes(tokenizer);
  for (size_t id = 0; id < tokens.size(); ++id) tokens[id] = bytes(static_cast<int32_t>(id));
  return tokens;
}

}  // namespace

TokenTree::TokenTree(const Tokenizer& tokenizer) : TokenTree(all_bytes(tokenizer)) {}

}  // namespace mulciber
