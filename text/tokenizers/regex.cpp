#include "text/tokenizers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

// A tokenizer's pattern takes a few steps per character. The bound ends patterns that backtrack
// exponentially.
constexpr std::uint32_t kMostSteps = 1'000'000;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

std::string message_of(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
  std::unique_ptr<pcre2_code, Free> pattern;
};

Regex::Regex(std::string_view pattern, const std::string& where) : where_(where) {
  const auto fail = [&](const std::string& problem) {
    throw ModelError(where, "the regular expression '" + printable(pattern) + "' " + problem,
                     "the tokenizer cannot be used");
  };
  // Set intersection exists in Oniguruma; PCRE2 would read two ampersands.
  if (pattern.find("&&[") != pattern.npos)
    fail("intersects character classes, which is not supported");
  int error = 0;
  PCRE2_SIZE at = 0;
  auto code = std::make_shared<Code>();
  code->pattern.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                    PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
  if (!code->pattern)
    fail("does not compile: " + message_of(error) + " at byte " + std::to_string(at));
  code_ = std::move(code);
}

std::vector<TextRange> Regex::find_all(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, Free> data(
      pcre2_match_data_create_from_pattern(code_->pattern.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  if (!data || !context) throw std::bad_alloc();
  pcre2_set_match_limit(context.get(), kMostSteps);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::vector<TextRange> matches;
  for (std::size_t at = 0; at <= text.size();) {
    const int result = pcre2_match(code_->pattern.get(), subject, text.size(), at,
                                   PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0)
      throw ModelError(where_, "a regular expression failed on the text: " + message_of(result),
                       "the tokenizer's pattern is not fit for this text");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = range[0], end = range[1];
    // An empty match counts, except at the end of the previous match, where it would repeat
    // forever. (\K can move a match's begin, even past its end.)
    const bool again = begin == end && !matches.empty() && matches.back().second == end;
    if (begin >= at && end >= begin && !again) {
      matches.emplace_back(begin, end);
      at = end;
    } else {
      at = std::min(std::max(at, end), text.size());
      at += std::max<std::size_t>(1, first_code_point(text.substr(at)).length);
    }
  }
  return matches;
}

}  // namespace mulciber
