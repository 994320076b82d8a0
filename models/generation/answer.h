// An answer as its tokens come.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mulciber/text_generator.h"
#include "text/token_stream.h"
#include "text/tokenizer.h"

namespace mulciber {

class Answer {
 public:
  Answer(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
         const std::vector<std::string>& stops, std::function<void(std::string_view)> on_text);

  /// Of a result, where the stream's is a part of it alone.
  void set_prompt(std::span<const uint32_t> ids) {
    result_.prompt_ids.assign(ids.begin(), ids.end());
  }

  /// False once a stop text has come: further tokens are no part of it.
  bool push(uint32_t id, bool ends_text);

  /// What was pushed so far.
  const Generation& so_far() const { return result_; }
  /// end: why its last token is the last, unless a stop text came, or it was cancelled.
  Generation finish(GenerateEnd end, bool cancelled);

 private:
  void show(const std::string& text);

  TokenStream stream_;
  StopFilter filter_;
  std::function<void(std::string_view)> on_text_;
  Generation result_;
};

}  // namespace mulciber
