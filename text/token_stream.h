// Text out of tokens as they come, character by whole character, and texts that end it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace mulciber {

/// The text of tokens that a model chose. Its embedding may have rows that no token has (models are
/// filled up to round numbers): their ids are no text.
std::string written_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                         bool skip_special = true);

/// Turns tokens into text piece by piece. What push() and finish() return is, joined, the text of
/// all tokens.
class TokenStream {
 public:
  /// before: what the text follows; a tokenizer may spell a word by what stands in front of it.
  TokenStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before,
              bool skip_special = true);

  /// The text that is certain now. Nothing while a character is incomplete.
  std::string push(std::int32_t id);
  /// What is left, complete or not.
  std::string finish();

 private:
  std::string decode(std::size_t from, std::size_t to) const;

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> ids_;
  // Text up to `shown_` was returned; it is decoded from `begin_` on, so that a word's start is
  // seen.
  std::size_t begin_ = 0, shown_ = 0;
};

/// A token as a person sees it: U+2581 for a space that begins a word, and the vocabulary's piece
/// for special tokens and for what is no whole character alone. Empty for an id that no token has.
std::string token_text(const Tokenizer& tokenizer, std::int32_t id);

/// The bytes that a token adds to a text, given the text that it is decoded to: of one that is no
/// whole character alone, decoding shows U+FFFD.
std::string token_bytes(const Tokenizer& tokenizer, std::int32_t id, std::string decoded);

/// Holds text back while it may be the beginning of a text that ends everything.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops);
  /// What may be shown now. Once a stop text has come, nothing more.
  std::string push(const std::string& text);
  /// What was held back, where no stop text came.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace mulciber
