// Pre-tokenizers: split a text into words before the model sees it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"
#include "text/tokenizers/pipeline.h"
#include "text/tokenizers/text.h"

namespace mulciber {
namespace {

// GPT-2's pattern (Radford et al. 2019).
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The treatment of the matching parts of a text.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  std::size_t begin, end;
  bool match;
};

std::vector<Part> parts_of(std::size_t size, const std::vector<TextRange>& matches, bool invert) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const auto& [begin, end] : matches) {
    if (begin > at) parts.push_back({at, begin, invert});
    parts.push_back({begin, end, !invert});
    at = end;
  }
  if (at < size) parts.push_back({at, size, invert});
  return parts;
}

std::vector<Part> apply(Behavior behavior, std::vector<Part> parts) {
  std::vector<Part> out;
  bool after_match = false;
  switch (behavior) {
    case Behavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.match; });
      return parts;
    case Behavior::kIsolated: return parts;
    case Behavior::kMergedWithPrevious:
      for (const Part& part : parts) {
        if (part.match && !after_match && !out.empty()) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
        after_match = part.match;
      }
      return out;
    case Behavior::kMergedWithNext:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->match && !after_match && !out.empty()) {
          out.back().begin = part->begin;
        } else {
          out.push_back(*part);
        }
        after_match = part->match;
      }
      std::reverse(out.begin(), out.end());
      return out;
    case Behavior::kContiguous:
      for (const Part& part : parts) {
        if (!out.empty() && part.match == after_match) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
        after_match = part.match;
      }
      return out;
  }
  return out;
}

/// Splits every word by the matches of `find` in it.
template <typename Find>
void split(std::vector<Word>& words, Find&& find, Behavior behavior, bool invert = false) {
  std::vector<Word> out;
  for (const Word& word : words)
    for (const Part& part : apply(behavior, parts_of(word.text.size(), find(word.text), invert)))
      if (part.begin < part.end)
        out.push_back({word.text.substr(part.begin, part.end - part.begin),
                       word.at_start && part.begin == 0});
  words = std::move(out);
}

/// Finds single characters as matches.
template <typename Is>
auto characters(Is is) {
  return [is](std::string_view text) {
    std::vector<TextRange> ranges;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = first_code_point(text.substr(at));
      const std::size_t length = std::max<std::size_t>(1, c.length);
      if (is(c.value)) ranges.emplace_back(at, at + length);
      at += length;
    }
    return ranges;
  };
}

Behavior read_behavior(const ConfigReader& reader, const char* fallback) {
  const std::string name = reader.text_or("behavior", fallback);
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  reader.fail("behavior", "is '" + printable(name) + "', which is not supported");
}

PreTokenizer byte_level(const ConfigReader& reader) {
  const bool add_space = reader.boolean_or("add_prefix_space", true);
  const bool use_regex = reader.boolean_or("use_regex", true);
  const Regex regex(kGpt2Pattern, reader.where());
  return [=](std::vector<Word>& words) {
    if (add_space)
      for (Word& word : words)
        if (!word.text.empty() && word.text[0] != ' ') word.text.insert(0, " ");
    if (use_regex)
      split(
          words, [&](std::string_view text) { return regex.find_all(text); }, Behavior::kIsolated);
    for (Word& word : words) word.text = bytes_to_characters(word.text);
  };
}

PreTokenizer metaspace(const ConfigReader& reader) {
  const std::string space = reader.text_or("replacement", std::string(kSpaceSymbol));
  if (count_code_points(space) != 1) reader.fail("replacement", "is not one character");
  // Older files have add_prefix_space instead of prepend_scheme.
  const std::string scheme = reader.text_or(
      "prepend_scheme", reader.boolean_or("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "never" && scheme != "first")
    reader.fail("prepend_scheme", "is '" + printable(scheme) + "', which is not supported");
  const bool splits = reader.boolean_or("split", true);
  const Pattern pattern(space);
  return [=](std::vector<Word>& words) {
    for (Word& word : words) {
      word.text = replace_all(word.text, " ", space);
      if (!word.text.empty() && !word.text.starts_with(space) &&
          (scheme == "always" || (scheme == "first" && word.at_start)))
        word.text.insert(0, space);
    }
    if (splits)
      split(
          words, [&](std::string_view text) { return pattern.find_all(text); },
          Behavior::kMergedWithNext);
  };
}

}  // namespace

PreTokenizer read_pre_tokenizer(const Json& component, const ConfigReader& file) {
  if (component.is_null()) return {};
  const ConfigReader reader = component_reader(component, file, "pre_tokenizer");
  const std::string type = reader.text("type");
  if (type == "Sequence") {
    std::vector<PreTokenizer> steps;
    for (const Json& step : reader.list("pretokenizers"))
      if (PreTokenizer pre_tokenizer = read_pre_tokenizer(step, file))
        steps.push_back(std::move(pre_tokenizer));
    return [steps](std::vector<Word>& words) {
      for (const PreTokenizer& step : steps) step(words);
    };
  }
  if (type == "ByteLevel") return byte_level(reader);
  if (type == "Metaspace") return metaspace(reader);
  if (type == "Split") {
    const Pattern pattern(reader.value("pattern"), reader);
    const Behavior behavior = read_behavior(reader, "Removed");
    const bool invert = reader.boolean_or("invert", false);
    return [=](std::vector<Word>& words) {
      split(
          words, [&](std::string_view text) { return pattern.find_all(text); }, behavior, invert);
    };
  }
  const auto by = [](auto find, Behavior behavior) {
    return [=](std::vector<Word>& words) { split(words, find, behavior); };
  };
  if (type == "Whitespace") {
    const Regex regex(R"(\w+|[^\w\s]+)", reader.where());
    return [=](std::vector<Word>& words) {
      split(
          words, [&](std::string_view text) { return regex.find_all(text); }, Behavior::kRemoved,
          true);
    };
  }
  if (type == "WhitespaceSplit") return by(characters(is_white_space), Behavior::kRemoved);
  if (type == "BertPreTokenizer")
    return [](std::vector<Word>& words) {
      split(words, characters(is_white_space), Behavior::kRemoved);
      split(words, characters(is_bert_punctuation), Behavior::kIsolated);
    };
  if (type == "Punctuation")
    return by(characters(is_bert_punctuation), read_behavior(reader, "Isolated"));
  if (type == "Digits")
    return by(characters(is_numeric), reader.boolean_or("individual_digits", false)
                                          ? Behavior::kIsolated
                                          : Behavior::kContiguous);
  if (type == "CharDelimiterSplit") {
    const Pattern pattern(reader.text("delimiter"));
    if (count_code_points(reader.text("delimiter")) != 1)
      reader.fail("delimiter", "is not one character");
    return [=](std::vector<Word>& words) {
      split(
          words, [&](std::string_view text) { return pattern.find_all(text); }, Behavior::kRemoved);
    };
  }
  reader.fail("type", "is '" + printable(type) + "', which is not supported");
}

}  // namespace mulciber
