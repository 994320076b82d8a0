#include "apps/heads/bleu.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "mulciber/error.h"

namespace mulciber::apps {
namespace {

constexpr int kLongest = 4;  // n-grams

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }
/// ASCII punctuation except the apostrophe, the hyphen, the period and the comma.
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Puts `between` into every pair of neighbours that `matches`. A pair's second character begins no
/// further pair, as with a regular expression that consumes both.
template <typename Matches, typename Replace>
std::string rewrite_pairs(const std::string& text, Matches matches, Replace replace) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      replace(result, text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string lower_case(std::string_view text) {
  std::string result;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t letter = 0;
    utf8proc_ssize_t bytes = utf8proc_iterate(at, left, &letter);
    if (bytes <= 0) {  // bytes that are not UTF-8 stay
      result += static_cast<char>(*at);
      bytes = 1;
    } else {
      utf8proc_uint8_t encoded[4];
      const utf8proc_ssize_t count = utf8proc_encode_char(utf8proc_tolower(letter), encoded);
      result.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(count));
    }
    at += bytes;
    left -= bytes;
  }
  return result;
}

using Counts = std::map<std::vector<std::string>, int>;

Counts count_ngrams(const std::vector<std::string>& tokens, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= tokens.size(); ++i) {
    ++counts[{tokens.begin() + static_cast<ptrdiff_t>(i),
              tokens.begin() + static_cast<ptrdiff_t>(i + n)}];
  }
  return counts;
}

}  // namespace

std::vector<std::string> tokenize_13a(std::string_view given) {
  std::string text(given);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string spaced = " ";
  for (char c : text + " ") {
    if (stands_alone(c)) {
      spaced += ' ';
      spaced += c;
      spaced += ' ';
    } else {
      spaced += c;
    }
  }
  // Bytes of letters outside ASCII are not digits, so that bytes do as well as letters.
  const auto apart = [](std::string& out, char first, char second) {
    out += fmt::format("{} {} ", first, second);
  };
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return !is_digit(a) && is_point(b); }, apart);
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_point(a) && !is_digit(b); },
      [](std::string& out, char first, char second) {
        out += fmt::format(" {} {}", first, second);
      });
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, apart);

  std::vector<std::string> tokens(1);
  for (char c : spaced) {
    if (c != ' ' && !(c >= '\t' && c <= '\r')) {
      tokens.back() += c;
    } else if (!tokens.back().empty()) {
      tokens.emplace_back();
    }
  }
  if (tokens.back().empty()) tokens.pop_back();
  return tokens;
}

double corpus_bleu(std::span<const std::string> translations,
                   std::span<const std::string> references) {
  if (translations.size() != references.size()) {
    throw ShapeError(
        "BLEU",
        fmt::format("{} translations and {} references", translations.size(), references.size()),
        "give one reference for each translation");
  }
  std::array<double, kLongest> matched = {}, total = {};
  double length = 0, reference_length = 0;
  for (size_t i = 0; i < translations.size(); ++i) {
    const std::vector<std::string> tokens = tokenize_13a(lower_case(translations[i]));
    const std::vector<std::string> expected = tokenize_13a(lower_case(references[i]));
    length += static_cast<double>(tokens.size());
    reference_length += static_cast<double>(expected.size());
    for (size_t n = 1; n <= kLongest; ++n) {
      const Counts wanted = count_ngrams(expected, n);
      for (const auto& [ngram, count] : count_ngrams(tokens, n)) {
        total[n - 1] += count;
        const auto found = wanted.find(ngram);
        if (found != wanted.end()) matched[n - 1] += std::min(count, found->second);
      }
    }
  }
  if (matched[0] == 0) return 0;
  double logarithms = 0, smoothing = 1;
  for (int n = 0; n < kLongest; ++n) {
    if (total[n] == 0) return 0;  // no text has so many tokens
    double precision = matched[n] / total[n];
    if (matched[n] == 0) {
      smoothing *= 2;
      precision = 1 / (smoothing * total[n]);
    }
    logarithms += std::log(precision) / kLongest;
  }
  const double brevity = length < reference_length ? std::exp(1 - reference_length / length) : 1;
  return 100 * brevity * std::exp(logarithms);
}

}  // namespace mulciber::apps
