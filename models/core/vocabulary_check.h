// Whether a tokenizer and a model belong together.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace mulciber {

/// Throws ModelError with both numbers where the pieces that texts are cut into have ids which the
/// embedding has no row for. rows: of the embedding; where: the model, for the message.
///
/// An embedding may have more rows than there are ids: many are padded. Tokens added to a
/// vocabulary afterwards may lie behind its rows: transformers loads such models, which answer well
/// as long as no text holds one of these tokens; one that does is refused when it is taken in.
void check_vocabulary(const Tokenizer& tokenizer, uint32_t rows, const std::string& where);

/// Throws ModelError naming the first token of a draft model that is another than the model's.
void check_same_tokens(const Tokenizer& model, const Tokenizer& draft);

}  // namespace mulciber
