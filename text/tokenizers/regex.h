// Regular expressions over UTF-8 text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber {

/// Begin and end of a match, in bytes.
using TextRange = std::pair<std::size_t, std::size_t>;

/// A compiled pattern with Unicode properties (\w, \s, \d and \p{...} by code point), which
/// tokenizer files use.
class Regex {
 public:
  /// Throws ModelError naming `where` when the pattern does not compile.
  Regex(std::string_view pattern, const std::string& where);

  /// All matches from left to right; an empty one only at positions where no match ends.
  /// Throws ModelError when the pattern needs too many steps on this text.
  std::vector<TextRange> find_all(std::string_view valid_text) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string where_;
};

}  // namespace mulciber
