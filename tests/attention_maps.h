// Attention maps that the tests of pages, figures and files are made from.
#pragma once

#include <string>
#include <vector>

#include "apps/attention/page.h"

namespace mulciber::tests {

using apps::SentenceMaps;

/// A kind whose weights are all different, so that a transposed or shifted index shows.
inline SentenceMaps::Kind kind_of(const std::string& name, std::size_t layers, std::size_t heads,
                                  std::size_t queries, std::size_t keys) {
  SentenceMaps::Kind kind{name, layers, heads, queries, keys, {}};
  const std::size_t count = layers * heads * queries * keys;
  for (std::size_t i = 0; i < count; ++i)
    kind.weights.push_back(static_cast<float>(i + 1) / static_cast<float>(count));
  return kind;
}

inline SentenceMaps example() {
  SentenceMaps maps;
  maps.source_tokens = {"\u2581two", "\u2581dog", "s", ".", "</s>"};
  maps.target_tokens = {"\u2581zwei", "\u2581Hunde", "</s>"};
  maps.decoder_input_tokens = {"<pad>", "\u2581zwei", "\u2581Hunde"};
  maps.source_text = "two dogs.";
  maps.target_text = "zwei Hunde";
  maps.model = "en-de";
  maps.device = "test device";
  maps.kinds = {kind_of("encoder", 2, 3, 5, 5), kind_of("decoder", 2, 3, 3, 3),
                kind_of("cross", 2, 3, 3, 5)};
  return maps;
}

/// Texts that break writers which escape too little, and bytes that are not UTF-8.
inline const std::vector<std::string> kHostile = {"</script><script>alert(1)</script>",
                                                  "<!--",
                                                  "]]>",
                                                  "\"q' & &amp;",
                                                  "\\u0041\\",
                                                  "${x}`",
                                                  "\u05e9\u05dc\u05d5\u05dd",
                                                  "\U0001F469\u200D\U0001F680",
                                                  "\u2028",
                                                  "\u2029",
                                                  std::string("\0\x01\x1b", 3),
                                                  "\xff\xc3",
                                                  "\xed\xa0\x80",
                                                  "\uffff",
                                                  "\u2581",
                                                  "",
                                                  " ",
                                                  "\u200b",
                                                  "[/*maps*/]"};

inline SentenceMaps hostile() {
  SentenceMaps maps;
  maps.source_tokens = kHostile;
  maps.target_tokens = {kHostile.rbegin(), kHostile.rend()};
  for (const std::string& token : kHostile) maps.source_text += token;
  maps.target_text = maps.model = maps.device = maps.source_text;
  const std::size_t n = kHostile.size();
  maps.kinds = {kind_of("encoder", 1, 1, n, n), kind_of("decoder", 1, 2, n, n),
                kind_of("cross", 2, 1, n, n)};
  return maps;
}

/// Maps of a decoder-only model: causal, the first of two layers with a window.
inline SentenceMaps causal() {
  SentenceMaps maps;
  maps.target_tokens = {"<s>", "\u2581a", "\n"};
  maps.prompt_tokens = 2;
  maps.source_text = "a";
  maps.kinds = {kind_of("decoder", 2, 1, 3, 3)};
  for (const std::size_t above : {1, 2, 5, 10, 11, 14}) maps.kinds[0].weights[above] = 0;
  maps.kinds[0].windows = {2, 0};
  return maps;
}

/// How often `part` occurs in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace mulciber::tests
