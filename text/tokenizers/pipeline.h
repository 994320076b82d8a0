// The stages of tokenizer.json around a tokenizer's model.
// Source: Hugging Face tokenizers, https://huggingface.co/docs/tokenizers/components
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/config_reader.h"
#include "text/tokenizers/regex.h"
#include "text/tokenizers/vocabulary.h"

namespace mulciber {

/// Maps valid UTF-8 to valid UTF-8.
using Normalizer = std::function<std::string(std::string)>;

/// A part of a text on its way to the model.
struct Word {
  std::string text;
  bool at_start = false;  // it begins the text
};
using PreTokenizer = std::function<void(std::vector<Word>&)>;

/// Turns pieces into text: the remaining pieces are joined without spaces.
using Decoder = std::function<void(std::vector<std::string>&)>;

/// The positions of special tokens around one text (A) or two (A and B).
struct Template {
  struct Item {
    enum class Kind { kSpecial, kFirst, kSecond } kind;
    std::int32_t type_id = 0;
    std::vector<std::int32_t> ids;  // for a special item
  };
  std::vector<Item> single, pair;
};

// Each function reads one component; a null or missing one gives an empty function (an empty
// template). All throw ModelError naming the file and a component that is malformed or not
// supported.
Normalizer read_normalizer(const Json& component, const ConfigReader& file);
PreTokenizer read_pre_tokenizer(const Json& component, const ConfigReader& file);
Decoder read_decoder(const Json& component, const ConfigReader& file);
Template read_post_processor(const Json& component, const ConfigReader& file,
                             std::int64_t vocab_size);

/// A pattern of tokenizer.json: {"String": ...} or {"Regex": ...}.
class Pattern {
 public:
  Pattern(const Json& json, const ConfigReader& file);
  explicit Pattern(std::string literal) : literal_(std::move(literal)) {}

  std::vector<TextRange> find_all(std::string_view text) const;
  /// Throws ModelError when the result would be excessively longer than the text.
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::string literal_;
  std::vector<Regex> regex_;  // one, or none if the pattern is a literal
  std::string where_;
};

/// The 256 characters that represent bytes in byte-level vocabularies.
/// Source: Radford et al. 2019 (GPT-2), bytes_to_unicode.
std::string bytes_to_characters(std::string_view bytes);
/// The bytes of a piece of such characters; the piece itself when it contains others.
std::string characters_to_bytes(std::string_view piece);

/// Reader for one component of `file`, whose messages name the component.
ConfigReader component_reader(const Json& component, const ConfigReader& file, const char* stage);

}  // namespace mulciber
