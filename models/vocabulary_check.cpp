#include "models/vocabulary_check.h"

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {

void check_vocabulary(const Tokenizer& tokenizer, uint32_t rows, const std::string& where) {
  if (tokenizer.base_size() <= static_cast<int64_t>(rows)) return;
  throw ModelError(where,
                   fmt::format("has a tokenizer of {} tokens and an embedding of {} rows",
                               tokenizer.base_size(), rows),
                   "they do not belong together: download both from one revision");
}

}  // namespace mulciber
