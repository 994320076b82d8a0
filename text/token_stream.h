// Streams text from tokens, in whole characters, and detects stop texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace mulciber {

/// The text of tokens that a model chose. Ids beyond the vocabulary give no text: an embedding may
/// have more rows than tokens, because models are padded to round numbers.
std::string written_text(const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                         bool skip_special = true);

/// Turns tokens into text piece by piece. The results of push() and finish(), joined, are the text
/// of all tokens.
class TokenStream {
 public:
  /// before: tokens that precede the text; a tokenizer may spell a word depending on them.
  TokenStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before,
              bool skip_special = true);

  /// Returns the text that is final now; nothing while a character is incomplete.
  std::string push(std::int32_t id);
  /// Returns the rest, complete or not.
  std::string finish();

 private:
  std::string decode(std::size_t from, std::size_t to) const;

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::vector<std::int32_t> ids_;
  // Text up to token `shown_` was returned. Decoding starts at token `begin_`, so that the start of
  // a word is decoded in its context.
  std::size_t begin_ = 0, shown_ = 0;
};

/// A token for display: U+2581 for a space that begins a word, and the vocabulary's piece for
/// special tokens and for incomplete characters. Empty for an id without a token.
std::string token_text(const Tokenizer& tokenizer, std::int32_t id);

/// The bytes that a token adds to a text. decoded: the token's decoded text, in which an incomplete
/// character appears as U+FFFD.
std::string token_bytes(const Tokenizer& tokenizer, std::int32_t id, std::string decoded);

/// Holds text back while it may be the beginning of a stop text.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops);
  /// Returns the text that may be shown now; nothing after a stop text.
  std::string push(const std::string& text);
  /// Returns the text held back, if no stop text came.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace mulciber
