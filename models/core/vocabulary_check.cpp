#include "models/core/vocabulary_check.h"

#include <fmt/format.h>

#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber {

void check_vocabulary(const Tokenizer& tokenizer, uint32_t rows, const std::string& where) {
  if (tokenizer.base_size() <= static_cast<int64_t>(rows)) return;
  throw ModelError(where,
                   fmt::format("has a tokenizer of {} tokens and an embedding of {} rows",
                               tokenizer.base_size(), rows),
                   "they do not belong together: download both from one revision");
}

void check_same_tokens(const Tokenizer& model, const Tokenizer& draft) {
  const auto refuse = [](std::string problem) {
    throw ModelError("draft model", std::move(problem), "take a smaller model of the same family");
  };
  const int32_t count = model.vocab_size(), others = draft.vocab_size();
  if (count != others) refuse(fmt::format("has {} tokens, the model {}", others, count));
  for (int32_t id = 0; id < count; ++id)
    if (model.piece(id) != draft.piece(id))
      refuse(fmt::format("has '{}' for token {}, the model '{}'",
                         printable(std::string(draft.piece(id))), id,
                         printable(std::string(model.piece(id)))));
}

}  // namespace mulciber
