// Checks whether a tokenizer and a model belong together.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace mulciber {

/// Throws ModelError with both numbers when the tokenizer's base vocabulary is larger than the
/// embedding table. rows: rows of the embedding table; where: the model, for the message.
///
/// An embedding table may have more rows than there are ids, because many are padded. Tokens that
/// were added to a vocabulary later may have no row: transformers loads such models, which work as
/// long as no text has one of these tokens. A text that has one is refused when its request is
/// submitted.
void check_vocabulary(const Tokenizer& tokenizer, uint32_t rows, const std::string& where);

/// Throws ModelError naming the first token that differs between a draft model and the model.
void check_same_tokens(const Tokenizer& model, const Tokenizer& draft);

}  // namespace mulciber
