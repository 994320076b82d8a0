// The three notations of grammars, and walks over the masks of the compiled grammars.
#include <random>

#include "mulciber/grammar.h"
#include "tests/fuzz/fuzz.h"
#include "text/grammar/token_masks.h"

using namespace mulciber;

namespace {

std::shared_ptr<const TokenTree> tokens() {
  static const auto tree = [] {
    std::vector<std::string> all;
    for (int byte = 0; byte < 256; ++byte) all.push_back({static_cast<char>(byte)});
    for (const char* text :
         {"ab", "abc", "{\"", "\":", "\",", "\"}", "},", "[[", "]]", "10", "true", "false", "null",
          "\xc3\xa9", "\xf0\x9f", "aaaa", "    ", "((", "))"})
      all.push_back(text);
    return std::make_shared<const TokenTree>(all);
  }();
  return tree;
}

/// Checks that each token that a mask allows can be taken, that no other can, and that the text can
/// always go on or end.
void walk(const Grammar& grammar, std::mt19937& random) {
  TokenMasks masks(grammar.automaton(), tokens(), static_cast<uint32_t>(tokens()->size()));
  TokenMasks::Position position = masks.begin();
  for (int step = 0; step < 40; ++step) {
    const TokenMask mask = masks.allowed(position);
    std::vector<uint32_t> allowed;
    for (uint32_t token = 0; token < tokens()->size(); ++token) {
      TokenMasks::Position after = position;
      const bool in = (mask[token / 32] >> (token % 32) & 1) != 0;
      if (in) allowed.push_back(token);
      // A matcher still reads text nested deeper than masks allow.
      if (in && !masks.push(after, token)) std::abort();
    }
    if (allowed.empty()) {
      if (!masks.accepts(position)) std::abort();
      return;
    }
    masks.push(position, allowed[random() % allowed.size()]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text = fuzz::text(bytes + 2, size - 2);
  std::mt19937 random(bytes[1]);
  fuzz::accepts([&] {
    const Grammar grammar = bytes[0] % 3 == 0   ? Grammar::json_schema(text)
                            : bytes[0] % 3 == 1 ? Grammar::regex(text)
                                                : Grammar::gbnf(text);
    walk(grammar, random);
  });
  return 0;
}
