// Collects a completion's tokens, decodes them to text and ends the completion at a stop text.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mulciber/text_generator.h"
#include "text/token_stream.h"
#include "text/tokenizer.h"

namespace mulciber {

class Completion {
 public:
  Completion(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
             const std::vector<std::string>& stops, std::function<void(std::string_view)> on_text);

  /// Sets the prompt of the result, where the constructor was given only its last part.
  void set_prompt(std::span<const uint32_t> ids) {
    result_.prompt_ids.assign(ids.begin(), ids.end());
  }

  /// Appends a token; the text of one that ends_text is not shown. Returns false once a stop text
  /// has been found: later tokens are not part of the completion.
  bool push(uint32_t id, bool ends_text);

  /// Appends the log probabilities of the token that was pushed last.
  void push_probabilities(TokenProbabilities probabilities) {
    result_.log_probabilities.push_back(std::move(probabilities));
  }

  /// The tokens pushed so far, and their text.
  const Generation& so_far() const { return result_; }
  /// Ends the completion. end: why its last token is the last, unless a stop text was found or the
  /// completion was cancelled.
  Generation finish(GenerateEnd end, bool cancelled);

 private:
  void show(const std::string& text);

  TokenStream stream_;
  StopFilter filter_;
  std::function<void(std::string_view)> on_text_;
  Generation result_;
};

}  // namespace mulciber
